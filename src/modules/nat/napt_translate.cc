// SPDX-License-Identifier: BSD-3-Clause
// napt_translate.cc - the fast path: bulk lookup of plain TCP and UDP packets of known connections.
#include "modules/nat/napt_translate.h"

#include <algorithm>

namespace batchplane::nat {
namespace {

constexpr uint32_t kChunkPkts = 32;
constexpr uint32_t kMinBulkPkts =
    4;  // for fewer packets, out-of-order execution overlaps as much by itself
constexpr uint8_t kTcpNotable = 7;  // FIN, SYN, RST

// The key of a complete, unfragmented TCP or UDP packet without IP options; for others a key that
// no connection has.
NaptKey plain_key(Packet& pkt) {
  const uint32_t l3 = l3_offset_of(pkt);
  const auto& ip = header_in<net::Ipv4>(pkt, l3);
  const uint32_t sum_at = plain_checksum_at(ip, pkt.len_bytes(), l3);
  if (sum_at == 0) [[unlikely]]
    return {};
  const uint64_t proto = sum_at == kPlainTcpChecksum ? net::kProtoTcp : net::kProtoUdp;
  return {ip.addresses_raw(), proto << 32 | behind<net::Ports>(ip).raw()};
}

// Writes addresses and ports from the connection's other key, and updates the checksums
// incrementally.
inline void rewrite_plain(net::Ipv4& ip, const NaptSession& session, uint32_t direction,
                          bool is_tcp) {
  const NaptKey& other = session.wire[direction ^ 1];
  const uint64_t ends = std::rotl(other.ends, 32);
  const uint32_t ports = std::rotl(static_cast<uint32_t>(other.rest), 16);
  ip.set_addresses_raw(ends);
  behind<net::Ports>(ip).set_raw(ports);
  const uint32_t flip = direction == kIn ? 0xffff : 0;
  auto& checksum = behind<net::Be16>(ip, is_tcp ? kPlainTcpChecksum : kPlainUdpChecksum);
  const uint16_t ip_sum = ip.checksum.raw();
  const uint16_t l4_sum = checksum.raw();
  const uint32_t growth = session.growth_l4 ^ flip;
  ip.checksum.set_raw(mended(ip_sum, session.growth_ip ^ flip));
  checksum.set_raw(is_tcp ? mended(l4_sum, growth) : mended_udp(l4_sum, growth));
}

}  // namespace

// `found` is the index's candidate for the key, which may be wrong.
inline void NaptTranslator::settle(Context& ctx, Batch& batch, uint32_t i, const NaptKey& key,
                                   uint32_t found, uint32_t now) noexcept {
  NaptTimers& timers = table_->timers();
  NaptSession& session = table_->sessions()[found >> 1];
  const uint32_t direction = found & 1;
  const NaptKey& wire = session.wire[direction];
  const NaptStateRule& rule = timers.rules()[static_cast<uint32_t>(session.state)];
  const uint32_t idle = now - session.last_seen;
  const uint64_t differs = (wire.ends ^ key.ends) | (wire.rest ^ key.rest);
  if (differs != 0 || idle >= rule.limit || (session.seen & kIsHairpin) != 0) [[unlikely]] {
    take_care(ctx, batch, i, now);
    return;
  }
  Packet& pkt = *batch.pkts[i];
  auto& ip = header_in<net::Ipv4>(pkt, l3_offset_of(pkt));
  const bool is_tcp = key.proto() == net::kProtoTcp;
  const uint8_t flags = is_tcp ? behind<net::Tcp>(ip).flags & kTcpNotable : 0;
  if (flags != 0 || ((rule.quiet & session.seen) >> direction & 1) == 0) [[unlikely]] {
    timers.track(found >> 1, direction, flags, now);
  } else if (idle != 0 && (rule.refresh >> direction & 1) != 0) {
    put(session.last_seen, now);
  }
  ctx.gates[i] = static_cast<GateIndex>(direction);
  rewrite_plain(ip, session, direction, is_tcp);
}

void NaptTranslator::classify(Context& ctx, Batch& batch) noexcept {
  const uint32_t now = tick_of(ctx.now_ns);
  const uint32_t n = batch.size_pkts;
  const NaptIndex& index = table_->index();
  if (n < kMinBulkPkts) {
    for (uint32_t i = 0; i < n; ++i) {
      const NaptKey key = plain_key(*batch.pkts[i]);
      settle(ctx, batch, i, key, index.candidate(table_->hash(key)), now);
    }
    return;
  }
  for (uint32_t at = 0; at < n; at += kChunkPkts) {
    classify_chunk(ctx, batch, at, std::min(kChunkPkts, n - at), now);
  }
}

// Prefetches all buckets before reading the first, then all connections.
void NaptTranslator::classify_chunk(Context& ctx, Batch& batch, uint32_t first, uint32_t n,
                                    uint32_t now) noexcept {
  const NaptIndex& index = table_->index();
  const NaptSession* const sessions = table_->sessions();
  NaptKey keys[kChunkPkts];
  uint64_t hashes[kChunkPkts];
  uint32_t found[kChunkPkts];
  for (uint32_t i = 0; i < n; ++i) {
    keys[i] = plain_key(*batch.pkts[first + i]);
    hashes[i] = index.hash(keys[i].ends, keys[i].rest);
    index.prefetch(hashes[i]);
  }
  for (uint32_t i = 0; i < n; ++i) {
    found[i] = index.candidate(hashes[i]);
    __builtin_prefetch(&sessions[found[i] >> 1]);
  }
  for (uint32_t i = 0; i < n; ++i) settle(ctx, batch, first + i, keys[i], found[i], now);
}

void NaptTranslator::expire(uint64_t now_ns, uint64_t budget_ns) noexcept {
  constexpr uint64_t kStepNs = 250;  // cost of a connection that is in no cache
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
