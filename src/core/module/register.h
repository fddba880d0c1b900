// SPDX-License-Identifier: BSD-3-Clause
// register.h - registers a class as a module kind: the executor's function pointer to its member, with egress
// metering around it where flows end.
#pragma once

#include <concepts>

#include "core/module/kind.h"
#include "core/module/traits.h"

namespace batchplane {

template <class T>
concept HasProcess = requires(T m, Context& c, Batch& b) {
  { m.process(c, b) } noexcept;
};
template <class T>
concept HasClassify = requires(T m, Context& c, Batch& b) {
  { m.classify(c, b) } noexcept;
};
template <class T>
concept HasConsume = requires(T m, Context& c, Batch& b) {
  { m.consume(c, b) } noexcept;
};
template <class T>
concept HasPoll = requires(T m, Context& c, Packet** p, uint32_t n) {
  { m.poll(c, p, n) } noexcept -> std::same_as<uint32_t>;
};

template <class T>
inline void run_plain(void* module, Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept {
  Batch batch{pkts, n_pkts, exec::kNeverNs};
  T& self = *static_cast<T*>(static_cast<Module*>(module));
  if constexpr (HasProcess<T>) {
    self.process(ctx, batch);
  } else if constexpr (HasClassify<T>) {
    self.classify(ctx, batch);
  } else if constexpr (HasConsume<T>) {
    self.consume(ctx, batch);
  }
}

// One record per packet: for batches of mixed flows or entry times, batches with drops, and packets that
// reach the end of a leg.
struct EgressNotes {
  // For packets about to leave at `self`.
  EgressNotes(const Module& self, Packet* const* pkts, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      const PacketMeta& meta = pkts[i]->meta();
      entry_ns[i] = meta.entry_ns;
      task_entry_delta_ns[i] = meta.task_entry_delta_ns;
      flow[i] = self.has_static_flow() ? self.static_flow() : self.flow_of(meta.path_state);
    }
  }
  void record(exec::FlowMeter& meter, uint32_t i) const {
    meter.record(flow[i], 1, entry_ns[i]);
    if (!meter.has_legs()) return;
    meter.record_leg(meter.last_leg_of(flow[i]), 1, entry_ns[i] + task_entry_delta_ns[i]);
  }
  uint64_t entry_ns[exec::kMaxBatchPkts];
  uint32_t task_entry_delta_ns[exec::kMaxBatchPkts];
  uint16_t flow[exec::kMaxBatchPkts];
};

// Records entry times and flows before the packets are given away, then removes those that the terminal
// drops. Packets of the same flow and entry time share one record.
template <class T>
inline void run_egress(void* module, Context& ctx, Packet** pkts, uint32_t n) noexcept {
  const Module& self = *static_cast<const Module*>(module);
  exec::FlowMeter& meter = *ctx.meter;
  if (meter.is_nearly_full(n)) [[unlikely]]
    meter.flush(ctx.now_ns);
  const uint64_t entry_ns = pkts[0]->meta().entry_ns;
  uint64_t differs = self.has_static_flow() && !meter.has_legs() ? 0 : 1;
  for (uint32_t i = 1; i < n; ++i) differs |= pkts[i]->meta().entry_ns ^ entry_ns;
  if (differs == 0) [[likely]] {
    run_plain<T>(module, ctx, pkts, n);
    if (ctx.n_removed != n) [[likely]]
      meter.record(self.static_flow(), n - ctx.n_removed, entry_ns);
    return;
  }
  const EgressNotes notes(self, pkts, n);
  run_plain<T>(module, ctx, pkts, n);
  for (uint32_t i = 0; i < n; ++i) {
    if (ctx.n_removed != 0 && pkts[i] == nullptr) continue;
    notes.record(meter, i);
  }
}

// const Register<Ttl> kTtl{
//     {.kind = "ttl", .state = StateOf::kNone, .help = "...", .params = {...}, .drops = {&kTtlExpired}}};
template <class T>
struct Register {
  explicit Register(ModuleInfo info) {
    static_assert(std::derived_from<T, Module>);
    constexpr int kShapes = HasProcess<T> + HasClassify<T> + HasConsume<T>;
    static_assert(kShapes == 1 || (kShapes == 0 && HasPoll<T>), "exactly one shape");
    if constexpr (HasProcess<T>) info.shape = Shape::kInPlace;
    if constexpr (HasClassify<T>) info.shape = Shape::kSplitter;
    if constexpr (HasConsume<T>) info.shape = HasPoll<T> ? Shape::kQueue : Shape::kTerminal;
    if constexpr (kShapes == 0) info.shape = Shape::kInput;
    if constexpr (HasPoll<T> && HasConsume<T>) info.feed = Feed::kQueue;
    info.make = [](const Args& args) { return std::make_unique<T>(args); };
    if constexpr (kShapes == 1) info.run = info.is_egress ? &run_egress<T> : &run_plain<T>;
    if constexpr (HasPoll<T>) {
      info.poll = [](Module& module, Context& ctx, Packet** pkts, uint32_t max) noexcept {
        return static_cast<T&>(module).poll(ctx, pkts, max);
      };
    }
    register_module_kind(std::move(info));
  }
};

}  // namespace batchplane
