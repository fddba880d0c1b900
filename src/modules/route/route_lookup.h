// SPDX-License-Identifier: BSD-3-Clause
// route_lookup.h - from packets to routes and on to gates: how lookup modules use one table.
#pragma once

#include <cstring>

#include "core/module/context.h"
#include "modules/headers/flow_key.h"
#include "modules/headers/shared_reasons.h"
#include "modules/route/route_table.h"

namespace batchplane::route_lookup {

// Converts destinations to the FIB's format, and hashes flows to choose a group's member.
template <class Family>
struct Destination;

template <>
struct Destination<Ipv4Family> {
  using Header = net::Ipv4;
  using Key = uint32_t;  // host order

  static void clear(Key& key) noexcept { key = 0; }
  static void read(const Header& ip, Key& key) noexcept { key = ip.dst; }
  static void read_source(const Header& ip, Key& key) noexcept { key = ip.src; }
  static uint64_t hash(Packet& pkt, uint32_t /*l3*/, uint64_t seed) noexcept {
    return hash_flow(pkt, seed);
  }
};

template <>
struct Destination<Ipv6Family> {
  using Header = net::Ipv6;
  using Key = Fib6::Bytes;  // network order

  static void clear(Key& key) noexcept { std::memset(key, 0, sizeof key); }
  static void read(const Header& ip, Key& key) noexcept {
    std::memcpy(key, bytes_of(ip.dst), sizeof key);
  }
  static void read_source(const Header& ip, Key& key) noexcept {
    std::memcpy(key, bytes_of(ip.src), sizeof key);
  }
  static uint64_t hash(Packet& pkt, uint32_t l3, uint64_t seed) noexcept {
    return hash_flow6(header_in<net::Ipv6>(pkt, l3), pkt.len_bytes() - l3, seed);
  }
};

// False if some packet is too short to have a destination.
template <class Family>
bool gather(Batch& batch, typename Destination<Family>::Key* keys) noexcept {
  using To = Destination<Family>;
  using Header = typename To::Header;
  const uint32_t n = batch.size_pkts;
  if (n == 0) __builtin_unreachable();  // else g++ warns about uninitialised addresses
  bool is_complete = true;
  for (uint32_t i = 0; i < n; ++i) {
    Packet& pkt = *batch[i];
    const uint32_t l3 = l3_offset_of(pkt);
    To::clear(keys[i]);
    if (pkt.len_bytes() < l3 + sizeof(Header)) [[unlikely]] {
      is_complete = false;
      continue;
    }
    To::read(header_in<Header>(pkt, l3), keys[i]);
  }
  return is_complete;
}

// Sets gates and next hops of n packets from `first` on; returns all flags seen.
template <class Family>
ForwardWord forward(Batch& batch, GateIndex* gates, uint32_t first, uint32_t n,
                    const RouteTableOf<Family>& table,
                    const typename Destination<Family>::Key* keys, uint64_t* ids) noexcept {
  table.fib().lookup(keys + first, ids + first, n);
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

// Second pass over the same packets, if some are too short, have no route, or belong to a group.
template <class Family>
[[gnu::noinline]] void settle_special(Context& ctx, Batch& batch, uint32_t first, uint32_t n,
                                      const NextHops& hops, const uint64_t* ids,
                                      uint32_t flow_seed) noexcept {
  using To = Destination<Family>;
  for (uint32_t i = first; i < first + n; ++i) {
    Packet& pkt = *batch[i];
    const uint32_t l3 = l3_offset_of(pkt);
    if (pkt.len_bytes() < l3 + sizeof(typename To::Header)) {
      ctx.drop(batch, i, reason::kTooShort);
      continue;
    }
    ForwardWord word = hops.forward(ids[i]);
    if ((word & kForwardGroup) != 0) {
      const NextHop* group = hops.at(static_cast<uint32_t>(word >> 32));
      const uint64_t hash = To::hash(pkt, l3, flow_seed) >> 32;
      // The entry may just have changed; then the word read next is the newer one.
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
