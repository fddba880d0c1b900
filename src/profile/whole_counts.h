// SPDX-License-Identifier: BSD-3-Clause
// whole_counts.h - what a worker has executed, and what the laws of the parts say that it took.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/worker.h"
#include "profile/loop_costs.h"
#include "profile/profile.h"

namespace batchplane::profile {

// Of a time, what is paid per batch and what is paid per packet.
struct Parts {
  double batch_ns = 0;
  double pkt_ns = 0;
};

// By instance of the graph, and of the engine around them; sums of doubles: they are small.
struct WholeCounts {
  struct Ran {
    double batches = 0;
    double pkts = 0;
  };
  std::vector<Ran> modules;
  Ran polls;
  Ran takes;     // polls of queues
  Ran scatters;  // branches, packets
  Ran firings;   // of buffers with a trigger

  void add(const WholeCounts& before, const WholeCounts& after);
};

using ProfileOfModule = std::map<std::string, const ModuleProfile*>;

[[nodiscard]] WholeCounts counts_of(const Graph& graph, const Worker& worker);
[[nodiscard]] Parts parts_of(const WholeCounts& counts, const Graph& graph,
                             const ProfileOfModule& profiles, const LoopCosts& loop);

}  // namespace batchplane::profile
