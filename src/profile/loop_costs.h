// SPDX-License-Identifier: BSD-3-Clause
// loop_costs.h - the engine's own costs around modules: polls, scattering, buffers, rings,
// metering. Measured on small pipelines by subtracting the modules' own times.
#pragma once

#include <cstdint>
#include <memory>

#include "base/far_cost.h"
#include "core/packet/packet_pool.h"
#include "profile/hop_meter.h"

namespace batchplane::profile {

// All in ns; none is negative.
struct LoopCosts {
  double clock_read = 0;
  double empty_poll = 0;          // a loop that finds no input
  double poll_per_batch = 0;      // a loop that finds input, without the modules' own costs
  double poll_per_pkt = 0;        // the same per packet, including its metering at egress
  double scatter_per_branch = 0;  // per branch beyond the first that a split batch goes to
  double scatter_per_pkt = 0;
  double firing = 0;               // per firing of a buffer
  double buffered_per_pkt = 0;     // per packet that goes through a buffer
  double ring_take_per_batch = 0;  // polling a queue, without the cost of filling it
  double ring_take_per_pkt = 0;
  double egress_per_pkt = 0;  // booking the delay of a packet that left
  HopCosts hop;               // a queue between workers on two cores
  // Known only if the whole pipeline was measured with its generator on another core; else 0.
  FarCost far;                     // a poll of packets whose cache lines are on another core
  double sampled_per_batch = 0;    // extra time of a module's batch in a sampled run
  double generator_look = 0;       // between looks of the generator at its schedule
  double generator_per_burst = 0;  // per burst of packets due together
  double generator_per_pkt = 0;    // per packet of a burst
  double generator_store = 0;      // until the worker can see it
  Doubts doubts;
};

// Raises what was measured as a whole to what a part of it took alone: an idle loop and a poll read the
// clock, and a packet of a poll is booked at egress.
void raise_to_parts(LoopCosts& costs);

// Owner: one thread, pinned and registered with the packet backend by the caller.
class LoopMeter {
 public:
  // `passes`: number of calls to pass(); `ms_per_pass`: approximate duration of each.
  // `other_core`: for measuring hops between cores; -1 = they are not.
  LoopMeter(PacketPool& pool, uint32_t batch_limit_pkts, uint32_t passes, double ms_per_pass,
            int other_core = -1);
  ~LoopMeter();

  void pass();
  [[nodiscard]] LoopCosts result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace batchplane::profile
