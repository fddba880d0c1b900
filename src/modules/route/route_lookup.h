// SPDX-License-Identifier: BSD-3-Clause
// route_lookup.h - from packets to routes and on to gates: what lookup modules do with one table.
#pragma once

#include "base/net.h"
#include "core/context.h"
#include "modules/flow_key.h"
#include "modules/route_table.h"
#include "modules/shared_reasons.h"

namespace batchplane::route_lookup {

// Destinations in host order; false when some packet is too short to have one.
inline bool gather(Batch& batch, uint32_t* addresses) noexcept {
  const uint32_t n = batch.size_pkts;
  if (n == 0) __builtin_unreachable();  // else g++ warns of addresses that nobody wrote
  bool is_complete = true;
  for (uint32_t i = 0; i < n; ++i) {
    Packet& pkt = *batch[i];
    const uint32_t l3 = l3_offset_of(pkt);
    addresses[i] = 0;
    if (pkt.len_bytes() < l3 + net::kIpv4Bytes) [[unlikely]] {
      is_complete = false;
      continue;
    }
    addresses[i] = net::load32(pkt.data() + l3 + net::kIpDst);
  }
  return is_complete;
}

// Gates and next hops of n packets from `first` on; returns all flags seen.
inline ForwardWord forward(Batch& batch, GateIndex* gates, uint32_t first, uint32_t n,
                           const RouteTable& table, const uint32_t* addresses,
                           uint64_t* ids) noexcept {
  table.fib().lookup(addresses + first, ids + first, n);
  const NextHops& hops = table.hops();
  ForwardWord seen = 0;
  for (uint32_t i = first; i < first + n; ++i) {
    const ForwardWord word = hops.forward(ids[i]);
    seen |= word;
    gates[i] = static_cast<GateIndex>(word);
    batch[i]->meta().next_hop = static_cast<uint32_t>(word >> 32);
  }
  return seen;
}

// The same packets again, where some are short, have no route, or a group's.
[[gnu::noinline]] inline void settle_special(Context& ctx, Batch& batch, uint32_t first, uint32_t n,
                                             const NextHops& hops, const uint64_t* ids,
                                             uint32_t flow_seed) noexcept {
  for (uint32_t i = first; i < first + n; ++i) {
    Packet& pkt = *batch[i];
    const uint32_t l3 = l3_offset_of(pkt);
    if (pkt.len_bytes() < l3 + net::kIpv4Bytes) {
      ctx.drop(batch, i, reason::kTooShort);
      continue;
    }
    ForwardWord word = hops.forward(ids[i]);
    if ((word & kForwardGroup) != 0) {
      const NextHop* group = hops.at(static_cast<uint32_t>(word >> 32));
      const uint64_t hash = hash_flow(pkt, flow_seed) >> 32;
      // The entry may just have become something else; then the word read next is the newer one.
      word = group != nullptr && !group->buckets.empty()
                 ? hops.forward(group->buckets[hash & (group->buckets.size() - 1)])
                 : hops.forward(ids[i]);
    }
    if ((word & kForwardSpecial) != 0) {
      ctx.drop(batch, i, (word & kForwardDrop) != 0 ? reason::kRouteDrop : reason::kNoRoute);
      continue;
    }
    ctx.gates[i] = static_cast<GateIndex>(word);
    pkt.meta().next_hop = static_cast<uint32_t>(word >> 32);
  }
}

}  // namespace batchplane::route_lookup
