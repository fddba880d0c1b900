// SPDX-License-Identifier: BSD-3-Clause
// ipv4_lookup.cc - sends each packet to the gate of its longest matching route, with the next hop
// in its metadata.
//
// in: 1   out: by route   drops: no_route, route_drop, too_short   thread-safe: table edits while
// workers look up
#include <algorithm>

#include "core/module.h"
#include "modules/route_commands.h"
#include "modules/route_lookup.h"
#include "modules/route_syntax.h"

namespace batchplane {
namespace {

class Ipv4Lookup final : public Module {
 public:
  explicit Ipv4Lookup(const Args& args)
      : commands_(args), table_(&commands_.table()), flow_seed_(args.u32("flow_seed")) {}
  ~Ipv4Lookup() override { table_->forget_module(this); }

  void classify(Context& ctx, Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    alignas(64) uint32_t addresses[exec::kMaxBatchPkts];
    alignas(64) uint64_t ids[exec::kMaxBatchPkts];
    ForwardWord seen = route_lookup::gather(batch, addresses) ? 0 : kForwardSpecial;
    seen |= route_lookup::forward(batch, ctx.gates, 0, n, *table_, addresses, ids);
    if ((seen & kForwardSpecial) != 0) [[unlikely]]
      route_lookup::settle_special(ctx, batch, 0, n, table_->hops(), ids, flow_seed_);
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
  RouteCommands commands_;
  RouteTable* table_;
  const uint32_t flow_seed_;
};

const Register<Ipv4Lookup> kIpv4Lookup{{
    .kind = "ipv4_lookup",
    .help = "Longest-prefix match on the IPv4 destination; the route gives gate and next hop.",
    .params = route_params<Ipv4Family>(),
    .gate_names = {"forward", "local"},
    .drops = {&reason::kNoRoute, &reason::kRouteDrop, &reason::kTooShort},
    .notes = route_notes<Ipv4Family>(),
}};

}  // namespace
}  // namespace batchplane
