// SPDX-License-Identifier: BSD-3-Clause
// whole_counts.h - what a worker executed, and the time this takes by the laws of the parts.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/engine/worker.h"
#include "profile/profile.h"
#include "profile/whole.h"

namespace batchplane::profile {

// By instance of the graph, and for the engine around them. Sums are small enough for doubles.
struct WholeCounts {
  struct Ran {
    double batches = 0;
    double pkts = 0;
  };
  // One splitter: batches and packets it received, executions directly behind it, and where its
  // packets went.
  struct Split {
    Ran got;
    double branch_batches = 0;
    std::vector<double> branch_pkts;
  };
  std::vector<Ran> modules;
  Ran polls;
  Ran takes;    // polls of queues
  Ran firings;  // of buffers with a trigger
  std::vector<Split> splits;

  void add(const WholeCounts& before, const WholeCounts& after);
};

using ProfileOfModule = std::map<std::string, const ModuleProfile*>;

// Branches beyond the first that batches were scattered over, and packets of those batches. Buffers
// that wait for more packets hide the number of branches; then `bypassed`, the same load without
// buffers, shows whether packets come in turn or at random.
[[nodiscard]] WholeCounts::Ran scattered(const WholeCounts& counts, const WholeCounts& bypassed);
[[nodiscard]] WholeCounts counts_of(const Graph& graph, const Worker& worker);
// For both stretches; `behind`: the modules of the second.
[[nodiscard]] std::array<CostLaw::Line, kStretches> parts_of(
    const WholeCounts& counts, const WholeCounts::Ran& scatters, const Graph& graph,
    const std::set<std::string>& behind, const ProfileOfModule& profiles, const EngineCosts& loop);
// Names of modules that receive parts of split batches.
[[nodiscard]] std::set<std::string> behind_splitters(const PipelineSpec& spec);

}  // namespace batchplane::profile
