// SPDX-License-Identifier: BSD-3-Clause
// whole_counts.h - what a worker has executed, and what the laws of the parts say that it took.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/worker.h"
#include "profile/loop_costs.h"
#include "profile/profile.h"
#include "profile/whole.h"

namespace batchplane::profile {

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
// Of both stretches; `behind`: the modules of the second one.
[[nodiscard]] std::array<Parts, kStretches> parts_of(const WholeCounts& counts, const Graph& graph,
                                                     const std::set<std::string>& behind,
                                                     const ProfileOfModule& profiles,
                                                     const LoopCosts& loop);
// Names of modules that get what is left of batches that were split.
[[nodiscard]] std::set<std::string> behind_splitters(const PipelineSpec& spec);

}  // namespace batchplane::profile
