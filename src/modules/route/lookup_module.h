// SPDX-License-Identifier: BSD-3-Clause
// lookup_module.h - a module for either IP version that sends each packet to the gate of its
// longest matching route and writes the next hop to its metadata.
#pragma once

#include <algorithm>

#include "core/module/module.h"
#include "modules/route/route_commands.h"
#include "modules/route/route_guard.h"
#include "modules/route/route_lookup.h"
#include "modules/route/route_syntax.h"

namespace batchplane {

template <class Family>
class LookupModule final : public Module {
 public:
  explicit LookupModule(const Args& args)
      : commands_(args),
        table_(&commands_.table()),
        guard_(args),
        flow_seed_(args.u32("flow_seed")) {}
  ~LookupModule() override { table_->forget_module(this); }

  void classify(Context& ctx, Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    alignas(64) typename route_lookup::Destination<Family>::Key keys[exec::kMaxBatchPkts];
    alignas(64) uint64_t ids[exec::kMaxBatchPkts];
    ForwardWord seen = route_lookup::gather<Family>(batch, keys) ? 0 : kForwardSpecial;
    seen |= route_lookup::forward<Family>(batch, ctx.gates, 0, n, *table_, keys, ids);
    if ((seen & kForwardSpecial) != 0) [[unlikely]]
      route_lookup::settle_special<Family>(ctx, batch, 0, n, table_->hops(), ids, flow_seed_);
    if (guard_.is_on()) guard_.apply(ctx, batch, 0, n, *table_);
  }

  uint32_t link(uint32_t connected) override {
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
  void inherit(Module& old) override {
    commands_.inherit(static_cast<LookupModule&>(old).commands_);
  }

 private:
  RouteCommandsOf<Family> commands_;
  RouteTableOf<Family>* table_;
  const RouteGuardOf<Family> guard_;
  const uint32_t flow_seed_;
};

template <class Family>
std::vector<ParamSpec> lookup_params() {
  std::vector<ParamSpec> specs = route_params<Family>();
  add_guard_params(specs);
  return specs;
}

}  // namespace batchplane
