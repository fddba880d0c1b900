// SPDX-License-Identifier: BSD-3-Clause
// ipv6_lookup.cc - sends each packet to the gate of its longest matching route, with the next hop
// in its metadata.
//
// in: 1   out: by route   drops: no_route, route_drop, too_short   thread-safe: table edits while
// workers look up
#include <algorithm>

#include "base/net6.h"
#include "core/module.h"
#include "modules/flow_key.h"
#include "modules/route_commands.h"
#include "modules/route_syntax.h"
#include "modules/shared_reasons.h"

namespace batchplane {
namespace {

class Ipv6Lookup final : public Module {
 public:
  explicit Ipv6Lookup(const Args& args)
      : commands_(args), table_(&commands_.table()), flow_seed_(args.u32("flow_seed")) {}
  ~Ipv6Lookup() override { table_->forget_module(this); }

  void classify(Context& ctx, Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    if (n == 0) __builtin_unreachable();  // else g++ warns of addresses that nobody wrote
    alignas(64) Fib6::Bytes addresses[exec::kMaxBatchPkts];
    alignas(64) uint64_t ids[exec::kMaxBatchPkts];
    ForwardWord seen = gather(batch, addresses) ? 0 : kForwardSpecial;
    table_->fib().lookup(addresses, ids, n);
    const NextHops& hops = table_->hops();
    for (uint32_t i = 0; i < n; ++i) {
      const ForwardWord word = hops.forward(ids[i]);
      seen |= word;
      ctx.gates[i] = static_cast<GateIndex>(word);
      batch[i]->meta().next_hop = static_cast<uint32_t>(word >> 32);
    }
    if ((seen & kForwardSpecial) != 0) [[unlikely]]
      settle_special(ctx, batch, ids);
  }

  [[nodiscard]] uint32_t gates_used(uint32_t connected) const override {
    commands_.finish_table();
    const uint32_t n = std::max(connected, table_->hops().highest_gate() + 1);
    table_->limit_gates(this, n);
    return n;
  }
  Value command(const std::string& verb, const Value& args) override {
    return commands_.run(verb, args);
  }
  [[nodiscard]] Value show() const override { return table_->show(); }
  [[nodiscard]] Dict saved_params() const override { return commands_.saved_params(); }
  void inherit(Module& old) override { commands_.inherit(static_cast<Ipv6Lookup&>(old).commands_); }

 private:
  // Destinations as they lie there; false when some packet is too short to have one.
  static bool gather(Batch& batch, Fib6::Bytes* addresses) noexcept {
    bool is_complete = true;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = pkt.meta().l3_offset_bytes;
      if (pkt.len_bytes() < l3 + net::kIpv6Bytes) [[unlikely]] {
        std::memset(addresses[i], 0, sizeof addresses[i]);
        is_complete = false;
        continue;
      }
      std::memcpy(addresses[i], pkt.data() + l3 + net::kIp6Dst, sizeof addresses[i]);
    }
    return is_complete;
  }

  void settle_special(Context& ctx, Batch& batch, const uint64_t* ids) noexcept {
    const NextHops& hops = table_->hops();
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = pkt.meta().l3_offset_bytes;
      if (pkt.len_bytes() < l3 + net::kIpv6Bytes) {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      ForwardWord word = hops.forward(ids[i]);
      if ((word & kForwardGroup) != 0) {
        const NextHop* group = hops.at(static_cast<uint32_t>(word >> 32));
        const uint64_t hash = hash_flow6(pkt.data() + l3, pkt.len_bytes() - l3, flow_seed_) >> 32;
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

  RouteCommands6 commands_;
  RouteTable6* table_;
  const uint32_t flow_seed_;
};

const Register<Ipv6Lookup> kIpv6Lookup{{
    .kind = "ipv6_lookup",
    .help = "Longest-prefix match on the IPv6 destination; the route gives gate and next hop.",
    .params = route_params<Ipv6Family>(),
    .gate_names = {"forward", "local"},
    .drops = {&reason::kNoRoute, &reason::kRouteDrop, &reason::kTooShort},
    .notes = route_notes<Ipv6Family>(),
}};

}  // namespace
}  // namespace batchplane
