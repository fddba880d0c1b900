// SPDX-License-Identifier: BSD-3-Clause
// traits.h - the data plane's Traits for the executor: access to packets and clock.
#pragma once

#include "base/clock.h"
#include "core/module/context.h"
#include "core/packet/packet.h"
#include "exec/node.h"
#include "exec/run_order.h"

namespace batchplane {

struct CoreTraits {
  using Handle = Packet*;
  using Context = batchplane::Context;
  using Node = exec::Node<CoreTraits>;
  using Order = exec::DepthOrder;

  struct Clock {
    const TscClock* tsc = &TscClock::instance();
    // Set by tests to replace the clock.
    const uint64_t* virtual_ns = nullptr;
    [[nodiscard]] uint64_t now_ns() const {
      return virtual_ns == nullptr ? tsc->now_ns() : *virtual_ns;
    }
  };

  static uint64_t task_entry_ns(Packet* pkt) { return batchplane::task_entry_ns(*pkt); }
  static uint16_t path_state(Packet* pkt) { return pkt->meta().path_state; }
  static void set_path_state(Packet* pkt, uint16_t state) { pkt->meta().path_state = state; }
  static void set_drop_reason(Packet* pkt, uint16_t reason) { pkt->meta().drop_reason = reason; }
  static void prefetch_meta(Packet* pkt) { pkt->prefetch_meta(); }
  static void prefetch_data(Packet* pkt) { pkt->prefetch_data(); }

  static void charge_firing(Context& /*ctx*/, uint32_t /*n_pkts*/) noexcept {}
  static void on_fire(Context& ctx, exec::Cause cause) noexcept {
    ctx.cause = static_cast<uint8_t>(cause);
  }
  // Instrumented runs; defined in core/graph/trace.cc.
  static void begin_chain(Context& ctx) noexcept { ctx.last_cycles = TscClock::cycles(); }
  static void before_run(Context& ctx, Node& node, const Batch& batch) noexcept;
  static void on_run(Context& ctx, Node& node, const Batch& batch) noexcept;
  static void on_hold(Context& ctx, Node& node, Packet* const* pkts, uint32_t n) noexcept;
  static uint16_t overflow_reason() noexcept;
  static uint16_t queue_full_reason() noexcept;
  static uint16_t early_drop_reason() noexcept;
  // Frees a dropped packet.
  static void free(Context& ctx, Node& node, Packet* pkt, uint16_t reason) noexcept;
};

using ExecNode = exec::Node<CoreTraits>;

}  // namespace batchplane
