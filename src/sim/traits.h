// SPDX-License-Identifier: BSD-3-Clause
// traits.h - the packet and clock operations that the executor needs, for the simulator.
#pragma once

#include "base/rng.h"
#include "exec/context.h"
#include "exec/deadline_order.h"
#include "exec/flow_meter.h"
#include "exec/node.h"
#include "sim/clock.h"
#include "sim/packet.h"
#include "sim/recorder.h"

namespace batchplane::sim {

// Costs of a loop outside the modules, in ticks.
struct LoopCosts {
  uint64_t poll = 0;           // a poll that found packets
  uint64_t poll_pkt = 0;       // per packet of it
  uint64_t far_poll = 0;       // extra cost of a poll from a generator
  uint64_t far_pkt = 0;        // extra cost per packet of it
  uint64_t far_early_pkt = 0;  // and more for each of the first kFarEarlyPkts
  uint64_t empty_poll = 0;     // a loop that found no packets
  uint64_t firing = 0;         // a buffer releases
  uint64_t firing_pkt = 0;     // per packet that it held
  uint64_t split_branch = 0;   // per branch beyond the first that a batch is scattered over
  uint64_t split_pkt = 0;      // per packet of a scattered batch
  uint64_t ring_pkt = 0;       // per packet put into a ring between tasks
  uint64_t hop_send_pkt = 0;   // and more if another worker takes it
  uint64_t hop_take_pkt = 0;   // per packet taken from another worker
  uint64_t egress_pkt = 0;     // per packet metered at an egress
};

class Source;

struct Context : exec::Context<Packet*> {
  Clock clock;
  LoopCosts loop;
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
    ctx.clock.ticks += ctx.loop.firing + ctx.loop.firing_pkt * n_pkts;
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
