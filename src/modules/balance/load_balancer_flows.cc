// SPDX-License-Identifier: BSD-3-Clause
// load_balancer_flows.cc - finds the service of each packet and hashes its flow: plain packets in
// bulk, all others one by one.
#include "modules/balance/load_balancer_flows.h"

#include <algorithm>

#include "modules/headers/flow_key.h"

namespace batchplane {
namespace {

struct Found {
  uint32_t view;
  uint32_t hash;
};

uint32_t upper_half(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

Found find_ipv4(const LoadBalancerTable& table, Packet& pkt, uint64_t seed) {
  const uint32_t l3 = l3_offset_of(pkt);
  if (pkt.len_bytes() < l3 + net::kIpv4Bytes) return {LoadBalancerTable::kTooShort, 0};
  const auto& ip = header_in<net::Ipv4>(pkt, l3);
  const uint32_t header_bytes = ip.header_bytes();
  const uint32_t total_bytes = ip.total_length;
  const uint8_t proto = ip.protocol;
  const bool needs_port =
      !ip.is_later_fragment() && (proto == net::kProtoTcp || proto == net::kProtoUdp);
  if (header_bytes < net::kIpv4Bytes || total_bytes > pkt.len_bytes() - l3 ||
      total_bytes < header_bytes + (needs_port ? sizeof(net::Ports) : 0)) {
    return {LoadBalancerTable::kTooShort, 0};
  }
  const uint32_t port = needs_port ? behind<net::Ports>(ip, header_bytes).dst.raw() : 0;
  return {table.find(service_key4(ip.dst.raw(), proto, port)), upper_half(hash_flow(pkt, seed))};
}

Found find_ipv6(const LoadBalancerTable& table, Packet& pkt, uint64_t seed) {
  const uint32_t l3 = l3_offset_of(pkt);
  if (pkt.len_bytes() < l3 + net::kIpv6Bytes) return {LoadBalancerTable::kTooShort, 0};
  const auto& ip = header_in<net::Ipv6>(pkt, l3);
  const uint32_t total_bytes = net::kIpv6Bytes + ip.payload_length;
  if (total_bytes > pkt.len_bytes() - l3) return {LoadBalancerTable::kTooShort, 0};
  const Extensions6 chain = walk_extensions6<TransportExtensions>(ip, total_bytes);
  const uint8_t proto = chain.protocol;
  const bool needs_port =
      chain.is_first_fragment && (proto == net::kProtoTcp || proto == net::kProtoUdp);
  if (chain.end == Extensions6::End::kTruncated ||
      total_bytes < chain.offset_bytes + (needs_port ? sizeof(net::Ports) : 0)) {
    return {LoadBalancerTable::kTooShort, 0};
  }
  const uint32_t port = needs_port ? behind<net::Ports>(ip, chain.offset_bytes).dst.raw() : 0;
  return {table.find(service_key6(bytes_of(ip.dst), proto, port)),
          upper_half(hash_flow6(ip, total_bytes, seed))};
}

// Slow path: all packets but unfragmented TCP or UDP over IPv4 without options.
[[gnu::noinline]] Found look_closely(const LoadBalancerTable& table, Packet& pkt, uint64_t seed) {
  const uint32_t l3 = l3_offset_of(pkt);
  if (pkt.len_bytes() < net::kEthBytes || pkt.len_bytes() <= l3) {
    return {LoadBalancerTable::kTooShort, 0};
  }
  const uint32_t version = net::ip_version(pkt.data() + l3);
  const uint32_t type = header_in<net::Ethernet>(pkt, 0).type;
  // With VLAN tags the outer EtherType does not tell the protocol, so the IP version decides.
  const bool is_tagged = l3 != net::kEthBytes;
  if (version == 4 && (is_tagged || type == net::kTypeIpv4)) return find_ipv4(table, pkt, seed);
  if (version == 6 && (is_tagged || type == net::kTypeIpv6)) return find_ipv6(table, pkt, seed);
  return {LoadBalancerTable::kNoService, 0};
}

// Fills keys and hashes of plain packets in one pass; lists the others in `odd`, with a key that no
// service has.
uint32_t gather(uint64_t seed, Batch& batch, Key4* keys, uint32_t* hashes, uint16_t* odd) noexcept {
  constexpr uint32_t kMinBytes = net::kIpv4Bytes + sizeof(net::Ports);
  constexpr uint32_t kFragmentBitsRaw = 0xff3f;  // offset and more-fragments bits, in memory order
  Packet* const* const pkts = batch.pkts;
  const uint32_t n = batch.size_pkts;
  uint32_t n_odd = 0;
  for (uint32_t i = 0; i < n; ++i) {
    Packet& pkt = *pkts[i];
    const uint32_t l3 = l3_offset_of(pkt);
    const auto& ip = header_in<net::Ipv4>(pkt, l3);
    const uint32_t len_bytes = pkt.len_bytes();
    keys[i] = {0};
    hashes[i] = 0;
    odd[n_odd] = static_cast<uint16_t>(i);
    if (len_bytes < std::max(l3, net::kEthBytes) + kMinBytes) [[unlikely]] {
      ++n_odd;
      continue;
    }
    const uint32_t first = load32_raw(bytes_of(ip));
    const uint32_t proto = ip.ttl_word_raw() >> 8 & 0xff;
    const uint32_t total_bytes = net::be16(static_cast<uint16_t>(first >> 16));
    const bool is_ipv4 =
        (l3 != net::kEthBytes) | (header_in<net::Ethernet>(pkt, 0).type == net::kTypeIpv4);
    const bool has_good_lengths = (total_bytes >= kMinBytes) & (total_bytes <= len_bytes - l3);
    const bool is_whole = (ip.fragment.raw() & kFragmentBitsRaw) == 0;
    const bool is_plain = ((first & 0xff) == net::Ipv4::kPlain) & is_ipv4 & has_good_lengths &
                          is_whole & ((proto == net::kProtoTcp) | (proto == net::kProtoUdp));
    if (!is_plain) [[unlikely]] {
      ++n_odd;
      continue;
    }
    const uint32_t ports = behind<net::Ports>(ip).raw();
    keys[i] = service_key4(ip.dst.raw(), proto, ports >> 16);
    hashes[i] = upper_half(hash_flow4(ip, proto, ports, seed));
  }
  return n_odd;
}

}  // namespace

void find_slots(const LoadBalancerTable& table, uint64_t seed, Batch& batch,
                const uint16_t** slots) noexcept {
  const uint32_t n = batch.size_pkts;
  Key4 keys[exec::kMaxBatchPkts];
  keys[0] = {0};  // silences g++'s warning about uninitialised keys
  uint32_t hashes[exec::kMaxBatchPkts];
  uint32_t views[exec::kMaxBatchPkts];
  uint16_t odd[exec::kMaxBatchPkts];
  const uint32_t n_odd = gather(seed, batch, keys, hashes, odd);
  table.find_bulk(keys, n, views);
  for (uint32_t o = 0; o < n_odd; ++o) {
    const Found found = look_closely(table, *batch[odd[o]], seed);
    views[odd[o]] = found.view;
    hashes[odd[o]] = found.hash;
  }
  for (uint32_t i = 0; i < n; ++i) {
    slots[i] = table.slot_of(views[i], hashes[i]);
    __builtin_prefetch(slots[i]);
  }
}

}  // namespace batchplane
