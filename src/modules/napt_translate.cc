// SPDX-License-Identifier: BSD-3-Clause
// napt_translate.cc - batches: plain TCP and UDP packets of known connections, looked up in bulk.
#include "modules/napt_translate.h"

#include <algorithm>

namespace batchplane::nat {
namespace {

constexpr uint32_t kChunkPkts = 32;
constexpr uint32_t kPlainHeader = 0x45;  // version 4, no options
constexpr uint32_t kTcpFlags = 13;
constexpr uint8_t kTcpNotable = 7;  // FIN, SYN, RST

// The key of an unfragmented TCP or UDP packet without options, all of whose headers are there;
// else a key that no connection has.
NaptKey plain_key(Packet& pkt) {
  const uint32_t l3 = l3_offset_of(pkt);
  const uint32_t len_bytes = pkt.len_bytes();
  const uint8_t* ip = pkt.data() + l3;
  if (len_bytes < l3 + net::kIpv4Bytes + kUdpChecksum + 2) [[unlikely]]
    return {};
  const uint64_t front = load64_raw(ip);
  const uint32_t proto = load32_raw(ip + net::kIpTtl) >> 8 & 0xff;
  const uint32_t total_bytes = net::be16(static_cast<uint16_t>(front >> 16));
  const bool is_tcp = proto == net::kProtoTcp;
  const uint32_t least_bytes = net::kIpv4Bytes + (is_tcp ? kTcpChecksum : kUdpChecksum) + 2;
  // No fragment: neither an offset nor more to come, in memory order.
  const bool is_plain = (front & 0xff) == kPlainHeader && (front >> 48 & 0xff3f) == 0 &&
                        (is_tcp || proto == net::kProtoUdp) && total_bytes <= len_bytes - l3 &&
                        total_bytes >= least_bytes;
  if (!is_plain) [[unlikely]]
    return {};
  return {load64_raw(ip + net::kIpSrc), uint64_t{proto} << 32 | load32_raw(ip + net::kIpv4Bytes)};
}

// Writes what the other key of the connection says, and mends the checksums by what that changes.
inline void rewrite_plain(uint8_t* ip, const NaptSession& session, uint32_t direction,
                          bool is_tcp) {
  const NaptKey& other = session.wire[direction ^ 1];
  const uint64_t ends = std::rotl(other.ends, 32);
  const uint32_t ports = std::rotl(static_cast<uint32_t>(other.rest), 16);
  std::memcpy(ip + net::kIpSrc, &ends, 8);
  store32_raw(ip + net::kIpv4Bytes, ports);
  const uint32_t flip = direction == kIn ? 0xffff : 0;
  uint8_t* sum = ip + net::kIpv4Bytes + (is_tcp ? kTcpChecksum : kUdpChecksum);
  const uint16_t ip_sum = load16_raw(ip + net::kIpChecksum);
  const uint16_t l4_sum = load16_raw(sum);
  const uint32_t growth = session.growth_l4 ^ flip;
  store16_raw(ip + net::kIpChecksum, mended(ip_sum, session.growth_ip ^ flip));
  store16_raw(sum, is_tcp ? mended(l4_sum, growth) : mended_udp(l4_sum, growth));
}

}  // namespace

void NaptTranslator::classify(Context& ctx, Batch& batch) noexcept {
  const uint32_t now = tick_of(ctx.now_ns);
  const uint32_t n = batch.size_pkts;
  for (uint32_t at = 0; at < n; at += kChunkPkts) {
    classify_chunk(ctx, batch, at, std::min(kChunkPkts, n - at), now);
  }
}

void NaptTranslator::classify_chunk(Context& ctx, Batch& batch, uint32_t first, uint32_t n,
                                    uint32_t now) noexcept {
  NaptTable& table = *table_;
  const NaptIndex& index = table.index();
  NaptSession* const sessions = table.sessions();
  const NaptStateRules& rules = table.timers().rules();
  Packet** const pkts = batch.pkts + first;
  GateIndex* const gates = ctx.gates + first;
  NaptKey keys[kChunkPkts];
  uint64_t hashes[kChunkPkts];
  uint32_t found[kChunkPkts];
  for (uint32_t i = 0; i < n; ++i) {
    keys[i] = plain_key(*pkts[i]);
    hashes[i] = table.hash(keys[i]);
    index.prefetch(hashes[i]);
  }
  for (uint32_t i = 0; i < n; ++i) {
    found[i] = index.candidate(hashes[i]);
    __builtin_prefetch(&sessions[found[i] >> 1]);
  }
  for (uint32_t i = 0; i < n; ++i) {
    NaptSession& session = sessions[found[i] >> 1];
    const uint32_t direction = found[i] & 1;
    const NaptKey& wire = session.wire[direction];
    const NaptStateRule& rule = rules[static_cast<uint32_t>(session.state)];
    const uint32_t idle = now - session.last_seen;
    const uint64_t differs = (wire.ends ^ keys[i].ends) | (wire.rest ^ keys[i].rest);
    if (differs != 0 || idle >= rule.limit || (session.seen & kIsHairpin) != 0) [[unlikely]] {
      take_care(ctx, batch, first + i, now);
      continue;
    }
    Packet& pkt = *pkts[i];
    uint8_t* ip = pkt.data() + l3_offset_of(pkt);
    const bool is_tcp = keys[i].proto() == net::kProtoTcp;
    const uint8_t flags = is_tcp ? ip[net::kIpv4Bytes + kTcpFlags] & kTcpNotable : 0;
    if (flags != 0 || ((rule.quiet & session.seen) >> direction & 1) == 0) [[unlikely]] {
      table.timers().track(found[i] >> 1, direction, flags, now);
    } else if (idle != 0 && (rule.refresh >> direction & 1) != 0) {
      put(session.last_seen, now);
    }
    rewrite_plain(ip, session, direction, is_tcp);
    gates[i] = static_cast<GateIndex>(direction);
  }
}

void NaptTranslator::expire(uint64_t now_ns, uint64_t budget_ns) noexcept {
  constexpr uint64_t kStepNs = 250;  // a connection that no cache has
  table_->timers().turn(tick_of(now_ns), budget_ns / kStepNs + 1, [&](uint32_t index) {
    table_->close(index);
    tallies_.expired.add(1);
  });
}

void NaptTranslator::adopt(NaptTranslator& old) noexcept {
  std::swap(table_, old.table_);
  std::swap(fragments_, old.fragments_);
  table_->pool().change_to(old.table_->pool());
  table_->set_limits(config_.limits);
  table_->timers().set_rules(config_.rules);
  tallies_.expired.set(old.tallies_.expired.value());
  tallies_.hairpinned.set(old.tallies_.hairpinned.value());
  tallies_.errors.set(old.tallies_.errors.value());
  tallies_.fragments.set(old.tallies_.fragments.value());
}

}  // namespace batchplane::nat
