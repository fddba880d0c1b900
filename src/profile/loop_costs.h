// SPDX-License-Identifier: BSD-3-Clause
// loop_costs.h - the engine's own costs around modules: polls, scattering, buffers, rings,
// metering. Measured on small pipelines by subtracting the modules' own times.
#pragma once

#include <cstdint>
#include <memory>

#include "base/engine_costs.h"
#include "core/packet/packet_pool.h"
#include "profile/doubts.h"

namespace batchplane::profile {

// Raises what was measured as a whole to what a part of it took alone: an idle loop and a poll read the
// clock, and a packet of a poll is booked at egress.
void raise_to_parts(EngineCosts& costs, Doubts& doubts);

// Owner: one thread, pinned and registered with the packet backend by the caller.
class LoopMeter {
 public:
  // `passes`: number of calls to pass(); `ms_per_pass`: approximate duration of each.
  // `other_core`: for measuring hops between cores; -1 = they are not.
  LoopMeter(PacketPool& pool, uint32_t batch_limit_pkts, uint32_t passes, double ms_per_pass,
            int other_core = -1);
  ~LoopMeter();

  void pass();
  [[nodiscard]] EngineCosts result(Doubts& doubts) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace batchplane::profile
