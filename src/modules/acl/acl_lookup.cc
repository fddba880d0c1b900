// SPDX-License-Identifier: BSD-3-Clause
// acl_lookup.cc - looks up a batch: plain IPv4 in one pass, everything else separately.
#include <cstring>

#include "base/net_headers.h"
#include "modules/acl/acl_tables.h"
#include "modules/headers/ipv4_header.h"

namespace batchplane {
namespace {

// The common case in one pass: IPv4 without options, with ports if rules match them; headers are
// read in place. Returns false if any packet of the batch differs.
template <bool kNeedsPorts>
bool gather(Batch& batch, uint32_t needed_bytes, const uint8_t** headers) noexcept {
  const uint32_t min_bytes = net::kIpv4Bytes + needed_bytes;
  constexpr uint16_t kOffsetBits = 0xff1f;  // of the fragment field, in memory order
  const uint32_t n = batch.size_pkts;
  for (uint32_t i = 0; i < n; ++i) {
    Packet& pkt = *batch[i];
    const uint32_t l3 = l3_offset_of(pkt);
    const uint32_t len_bytes = pkt.len_bytes();
    const auto& ip = header_in<net::Ipv4>(pkt, l3);
    headers[i] = bytes_of(ip);
    if (len_bytes < l3 + min_bytes) [[unlikely]]
      return false;
    const uint32_t first = load32_raw(bytes_of(ip));
    const uint32_t total_bytes = net::be16(static_cast<uint16_t>(first >> 16));
    const bool is_type_good =
        (l3 != net::kEthBytes) | (header_in<net::Ethernet>(pkt, 0).type == net::kTypeIpv4);
    bool is_good =
        is_type_good & ((first & 0xff) == net::Ipv4::kPlain) & (total_bytes <= len_bytes - l3);
    if constexpr (kNeedsPorts) {
      const uint32_t proto = ip.ttl_word_raw() >> 8 & 0xff;
      const uint32_t transport_bytes = proto == net::kProtoTcp ? kAclTcpBytes : kAclPortsBytes;
      is_good &= (ip.fragment.raw() & kOffsetBits) == 0;
      is_good &= (proto == net::kProtoTcp) | (proto == net::kProtoUdp);
      is_good &= total_bytes >= net::kIpv4Bytes + transport_bytes;
    } else {
      is_good &= total_bytes >= net::kIpv4Bytes;
    }
    if (!is_good) [[unlikely]]
      return false;
  }
  return true;
}

// Groups packets by classifier and calls each classifier once.
[[gnu::noinline]] void classify_mixed(const AclTables& tables, Batch& batch,
                                      uint32_t* ids) noexcept {
  alignas(64) uint8_t room[exec::kMaxBatchPkts][kAclRoomBytes];
  const uint8_t* headers[kAclQuestions][exec::kMaxBatchPkts];
  uint16_t who[kAclQuestions][exec::kMaxBatchPkts];
  uint32_t n_asking[kAclQuestions] = {};
  for (uint32_t i = 0; i < batch.size_pkts; ++i) {
    const AclKey key = find_acl_key(*batch[i], tables.needs(), room[i]);
    const auto question = static_cast<uint32_t>(key.question);
    if (question >= kAclQuestions) {
      ids[i] = kAclOtherSlot + question - static_cast<uint32_t>(AclClass::kOther);
      continue;
    }
    headers[question][n_asking[question]] = key.header;
    who[question][n_asking[question]++] = static_cast<uint16_t>(i);
  }
  uint32_t found[exec::kMaxBatchPkts];
  for (uint32_t question = 0; question < kAclQuestions; ++question) {
    const uint32_t n = n_asking[question];
    if (n == 0) continue;
    tables.classify(static_cast<AclClass>(question), headers[question], found, n);
    const uint16_t* const asking = who[question];
    // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.ArraySubscript): n of them were written
    for (uint32_t i = 0; i < n; ++i) ids[asking[i]] = found[i];
  }
}

}  // namespace

void AclTables::find(Batch& batch, uint32_t* slots) const noexcept {
  const uint32_t n = batch.size_pkts;
  if (n == 0) __builtin_unreachable();  // otherwise g++ warns about uninitialised headers
  const uint8_t* headers[exec::kMaxBatchPkts];
  const uint32_t needed_bytes = needs_.ipv4_transport_bytes;
  const bool needs_ports = needed_bytes != 0;
  const bool is_plain = needs_ports ? gather<true>(batch, needed_bytes, headers)
                                    : gather<false>(batch, needed_bytes, headers);
  if (is_plain) [[likely]] {
    classify(needs_ports ? AclClass::kIpv4 : AclClass::kIpv4Portless, headers, slots, n);
  } else {
    classify_mixed(*this, batch, slots);
  }
}

}  // namespace batchplane
