// SPDX-License-Identifier: BSD-3-Clause
// engine_costs.h - what the engine itself costs around modules: loops, polls, buffers, rings, hops
// between cores, generators.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/value.h"

namespace batchplane {

// What a packet costs more on its way to a worker on another core; 0 = not measured.
struct HopCosts {
  double send_per_pkt_ns = 0;  // the sender writes packets that come back from the other core
  double take_per_pkt_ns = 0;  // the taker is the first on its core to touch a packet
};

// The worker stalls for the first kFarEarlyPkts packets of a poll one after the other; meanwhile the lines of
// later packets arrive.
inline constexpr uint32_t kFarEarlyPkts = 8;

// Extra cost of a poll of n packets whose cache lines lie in another core's caches: per_batch_ns +
// per_pkt_ns n + early_per_pkt_ns min(n, kFarEarlyPkts).
struct FarCost {
  double per_batch_ns = 0;
  double per_pkt_ns = 0;
  double early_per_pkt_ns = 0;

  [[nodiscard]] double ns(double n_pkts) const {
    return per_batch_ns + per_pkt_ns * n_pkts +
           early_per_pkt_ns * std::min<double>(n_pkts, kFarEarlyPkts);
  }
};

// Of a generator's own thread.
struct GeneratorCosts {
  double look_ns = 0;       // between looks at schedule and ring, when nothing is due
  double per_burst_ns = 0;  // putting a burst into the ring
  double per_pkt_ns = 0;    // per packet of it, if the worker had its cache lines last
  double store_ns = 0;      // from the last write of a burst until a polling worker can see it
};

// None is negative. As profiled, polls include the clock reading, and their packets the booking at
// egress; in a simulation they do not.
struct EngineCosts {
  double clock_read_ns = 0;
  double empty_poll_ns = 0;          // a loop that finds no input
  double poll_per_batch_ns = 0;      // a loop that finds input, without the modules' own costs
  double poll_per_pkt_ns = 0;        // the same per packet
  double scatter_per_branch_ns = 0;  // per branch beyond the first that a split batch goes to
  double scatter_per_pkt_ns = 0;
  double firing_ns = 0;               // per firing of a buffer
  double buffered_per_pkt_ns = 0;     // per packet that goes through a buffer
  double ring_take_per_batch_ns = 0;  // polling a queue, without filling it; none in a simulation
  double ring_take_per_pkt_ns = 0;
  double egress_per_pkt_ns = 0;  // booking the delay of a packet that left
  HopCosts hop;                  // a queue between workers on two cores
  // Known only if the whole pipeline was measured with its generator on another core; else 0.
  FarCost far;
  double sampled_per_batch_ns = 0;  // extra time of a module's batch in a sampled run
  GeneratorCosts generator;
};

// A cost and its key in JSON.
struct CostField {
  const char* key;
  double* ns;
};
using HopFields = std::array<CostField, 2>;
using EngineFields = std::array<CostField, 21>;

// The fields point into `costs`.
[[nodiscard]] HopFields fields_of(HopCosts& costs);
[[nodiscard]] EngineFields fields_of(EngineCosts& costs);

// Sets the costs that `given`, a dict under the key `where`, names. Throws ConfigError for other keys, and
// unless costs are 0 to 1e9 ns.
void read_cost_fields(const Value& given, const std::string& where,
                      std::span<const CostField> into);

}  // namespace batchplane
