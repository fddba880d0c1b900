// SPDX-License-Identifier: BSD-3-Clause
// ipv4_lookup.cc - sends each packet to the gate of its longest matching route, with the next hop
// in its metadata.
//
// in: 1   out: by route   drops: no_route, route_drop, too_short   thread-safe: table edits while
// workers look up
#include <algorithm>

#include "base/net.h"
#include "core/module.h"
#include "modules/flow_key.h"
#include "modules/route_commands.h"
#include "modules/route_syntax.h"

namespace batchplane {
namespace {

const DropReason kNoRoute{"no_route", "no route leads to the packet's destination",
                          "add a route, or a default route 0.0.0.0/0; on_drop sends unreachable"};
const DropReason kRouteDrop{"route_drop", "the route to the packet's destination says drop",
                            "delete or change that route if this is not wanted"};
const DropReason kTooShort{"too_short", "the packet ends before the headers that are needed here",
                           "look at the sender; put a check module in front"};

class Ipv4Lookup final : public Module {
 public:
  explicit Ipv4Lookup(const Args& args)
      : commands_(args), table_(&commands_.table()), flow_seed_(args.u32("flow_seed")) {}
  ~Ipv4Lookup() override { table_->forget_module(this); }

  void classify(Context& ctx, Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    if (n == 0) __builtin_unreachable();  // else g++ warns of addresses that nobody wrote
    alignas(64) uint32_t addresses[exec::kMaxBatchPkts];
    alignas(64) uint64_t ids[exec::kMaxBatchPkts];
    ForwardWord seen = gather(batch, addresses) ? 0 : kForwardSpecial;
    for (uint32_t i = 0; i < n; ++i) addresses[i] = net::be32(addresses[i]);
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
  void inherit(Module& old) override { commands_.inherit(static_cast<Ipv4Lookup&>(old).commands_); }

 private:
  // Destinations in network order; false when some packet is too short to have one.
  static bool gather(Batch& batch, uint32_t* addresses) noexcept {
    bool is_complete = true;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = l3_offset_of(pkt);
      addresses[i] = 0;
      if (pkt.len_bytes() < l3 + net::kIpv4Bytes) [[unlikely]] {
        is_complete = false;
        continue;
      }
      std::memcpy(&addresses[i], pkt.data() + l3 + net::kIpDst, 4);
    }
    return is_complete;
  }

  void settle_special(Context& ctx, Batch& batch, const uint64_t* ids) noexcept {
    const NextHops& hops = table_->hops();
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = l3_offset_of(pkt);
      if (pkt.len_bytes() < l3 + net::kIpv4Bytes) {
        ctx.drop(batch, i, kTooShort);
        continue;
      }
      ForwardWord word = hops.forward(ids[i]);
      if ((word & kForwardGroup) != 0) {
        const NextHop* group = hops.at(static_cast<uint32_t>(word >> 32));
        const uint64_t hash = hash_flow(pkt, flow_seed_) >> 32;
        // The entry may just have become something else; then the word read next is the newer one.
        word = group != nullptr && !group->buckets.empty()
                   ? hops.forward(group->buckets[hash & (group->buckets.size() - 1)])
                   : hops.forward(ids[i]);
      }
      if ((word & kForwardSpecial) != 0) {
        ctx.drop(batch, i, (word & kForwardDrop) != 0 ? kRouteDrop : kNoRoute);
        continue;
      }
      ctx.gates[i] = static_cast<GateIndex>(word);
      pkt.meta().next_hop = static_cast<uint32_t>(word >> 32);
    }
  }

  RouteCommands commands_;
  RouteTable* table_;
  const uint32_t flow_seed_;
};

const Register<Ipv4Lookup> kIpv4Lookup{{
    .kind = "ipv4_lookup",
    .help = "Longest-prefix match on the IPv4 destination; the route gives gate and next hop.",
    .params = route_params<Ipv4Family>(),
    .gate_names = {"forward", "local"},
    .drops = {&kNoRoute, &kRouteDrop, &kTooShort},
    .notes = route_notes<Ipv4Family>(),
}};

}  // namespace
}  // namespace batchplane
