// SPDX-License-Identifier: BSD-3-Clause
// traits.h - the packet and clock operations that the executor needs, for the simulator.
#pragma once

#include "base/engine_costs.h"
#include "base/rng.h"
#include "exec/context.h"
#include "exec/deadline_order.h"
#include "exec/flow_meter.h"
#include "exec/node.h"
#include "sim/clock.h"
#include "sim/packet.h"
#include "sim/recorder.h"

namespace batchplane::sim {

class Source;

struct Context : exec::Context<Packet*> {
  Clock clock;
  EngineCosts loop;
  PacketPool* pool = nullptr;
  Source* const* closed_loops = nullptr;  // by traffic flow; null if there are none
  exec::FlowMeter* meter = nullptr;
  Recorder* recorder = nullptr;
  double noise_sigma = 0;  // of the random factor on each execution's cost
  Rng noise{1};
  uint64_t chain_start_ticks = 0;  // instrumented runs
  uint8_t cause = exec::kNoCause;  // instrumented runs: why a buffer released the present batch

  // The packet has left.
  void end(Packet* pkt) {
    if (closed_loops != nullptr) [[unlikely]]
      note_left(*pkt);
    pool->put(pkt);
  }

 private:
  void note_left(const Packet& pkt);
};

struct Traits {
  using Handle = Packet*;
  using Context = sim::Context;
  using Clock = sim::Clock;
  using Node = exec::Node<Traits>;
  using Order = exec::EitherOrder;

  static uint64_t task_entry_ns(const Packet* pkt) { return pkt->task_entry_ns; }
  static uint16_t path_state(const Packet* pkt) { return pkt->path_state; }
  static void set_path_state(Packet* pkt, uint16_t state) { pkt->path_state = state; }
  static void set_drop_reason(Packet* /*pkt*/, uint16_t /*reason*/) {}
  static void prefetch_meta(const Packet* /*pkt*/) {}
  static void prefetch_data(const Packet* /*pkt*/) {}
  static uint16_t overflow_reason() noexcept;
  static uint16_t queue_full_reason() noexcept;
  static uint16_t early_drop_reason() noexcept;

  static void charge_firing(Context& ctx, uint32_t n_pkts) {
    ctx.clock.ticks +=
        to_ticks(ctx.loop.firing_ns) + to_ticks(ctx.loop.buffered_per_pkt_ns) * n_pkts;
  }
  static void begin_chain(Context& ctx) noexcept { ctx.chain_start_ticks = ctx.clock.ticks; }
  static void on_fire(Context& ctx, exec::Cause cause) noexcept {
    ctx.cause = static_cast<uint8_t>(cause);
  }
  static void before_run(Context& ctx, Node& node, const exec::Batch<Packet*>& batch) noexcept;
  static void on_run(Context& ctx, Node& node, const exec::Batch<Packet*>& batch) noexcept;
  static void on_hold(Context& ctx, Node& node, Packet* const* pkts, uint32_t n) noexcept;
  static void free(Context& ctx, Node& node, Packet* pkt, uint16_t reason) noexcept;
};

}  // namespace batchplane::sim
