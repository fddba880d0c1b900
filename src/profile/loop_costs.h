// SPDX-License-Identifier: BSD-3-Clause
// loop_costs.h - what the engine itself takes around the modules: polls, scattering, buffers,
// rings, metering; measured on small pipelines by what is left when the modules' own times are
// taken off.
#pragma once

#include <cstdint>
#include <memory>

#include "base/far_cost.h"
#include "core/packet/packet_pool.h"

namespace batchplane::profile {

// All in ns; none is ever negative.
struct LoopCosts {
  double clock_read = 0;
  double empty_poll = 0;          // a loop that finds no input
  double poll_per_batch = 0;      // a loop that finds input, beside the input's and modules' own
  double poll_per_pkt = 0;        // the same for each packet, its metering at egress included
  double scatter_per_branch = 0;  // a branch beyond the first that a split batch goes to
  double scatter_per_pkt = 0;
  double firing = 0;               // a buffer that fires
  double buffered_per_pkt = 0;     // a packet that goes through a buffer
  double ring_take_per_batch = 0;  // polling a queue, beside what filling it took
  double ring_take_per_pkt = 0;
  double egress_per_pkt = 0;  // booking the delay of a packet that left
  // Known when the whole pipeline was measured with its generator on another core; else 0.
  FarCost far;                   // a poll of packets whose lines lie in the caches of another core
  double sampled_per_batch = 0;  // that a sampled run takes longer for a module's batch
  double generator_look = 0;     // from one look of the generator at its schedule to the next
  double generator_per_burst = 0;  // what it finds due together
  double generator_per_pkt = 0;    // and each packet of that
  double generator_store = 0;      // until the worker can see it
};

// Owner: one thread, pinned and registered with the packet backend by the caller.
class LoopMeter {
 public:
  // `passes`: how often pass() will be called, `ms_per_pass` what each takes about.
  LoopMeter(PacketPool& pool, uint32_t batch_limit_pkts, uint32_t passes, double ms_per_pass);
  ~LoopMeter();

  void pass();
  [[nodiscard]] LoopCosts result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace batchplane::profile
