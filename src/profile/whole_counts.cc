// SPDX-License-Identifier: BSD-3-Clause
#include "profile/whole_counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace batchplane::profile {
namespace {

using Ran = WholeCounts::Ran;

void add_to(Ran& sum, const Ran& before, const Ran& after) {
  sum.batches += after.batches - before.batches;
  sum.pkts += after.pkts - before.pkts;
}

Ran ran(uint64_t batches, uint64_t pkts) {
  return {static_cast<double>(batches), static_cast<double>(pkts)};
}

void count_scatter(const Task& task, const ExecNode& node, WholeCounts& counts) {
  if (node.after != exec::After::kScatter) return;
  const exec::NodeTotals got = task.executor->totals(node);
  WholeCounts::Split split{.got = ran(got.batches, got.pkts)};
  std::vector<const CoreQueue*> seen;
  for (uint32_t g = 0; g < node.n_gates; ++g) {
    const CoreQueue* queue = node.targets[g];
    if (std::ranges::find(seen, queue) != seen.end()) continue;
    seen.push_back(queue);
    const exec::NodeTotals branch = task.executor->totals(task.nodes[queue->rank]);
    split.branch_batches += static_cast<double>(branch.batches);
    split.branch_pkts.push_back(static_cast<double>(branch.pkts));
  }
  counts.splits.push_back(std::move(split));
}

// Number of branches that a batch of n packets reaches, with packets round robin and at random.
struct Spread {
  double in_turn = 0;
  double by_chance = 0;
};

Spread spread_of(const WholeCounts::Split& split, double n_pkts) {
  const double all = std::accumulate(split.branch_pkts.begin(), split.branch_pkts.end(), 0.0);
  Spread spread;
  if (all <= 0) return spread;  // all dropped or held: nothing ran behind the splitter
  for (const double pkts : split.branch_pkts) {
    spread.in_turn += std::min(1.0, n_pkts * pkts / all);
    spread.by_chance += 1 - std::pow(1 - pkts / all, n_pkts);
  }
  return spread;
}

// 1: packets go round robin, 0: at random.
double order_of(const WholeCounts::Split& bypassed) {
  const double n_pkts = bypassed.got.pkts / bypassed.got.batches;
  const Spread spread = spread_of(bypassed, n_pkts);
  const double room = spread.in_turn - spread.by_chance;
  if (room <= 0) return 0;
  const double seen = bypassed.branch_batches / bypassed.got.batches;
  return std::clamp((seen - spread.by_chance) / room, 0.0, 1.0);
}

}  // namespace

Ran scattered(const WholeCounts& counts, const WholeCounts& bypassed) {
  Ran scatters;
  for (size_t s = 0; s < counts.splits.size(); ++s) {
    const WholeCounts::Split& split = counts.splits[s];
    if (split.got.batches <= 0) continue;
    double branches = split.branch_batches / split.got.batches;
    if (&counts != &bypassed && bypassed.splits[s].got.batches > 0) {
      const Spread spread = spread_of(split, split.got.pkts / split.got.batches);
      const double order = order_of(bypassed.splits[s]);
      branches = order * spread.in_turn + (1 - order) * spread.by_chance;
    }
    if (branches <= 1) continue;  // each batch went one way
    scatters.batches += (branches - 1) * split.got.batches;
    scatters.pkts += split.got.pkts;
  }
  return scatters;
}

void WholeCounts::add(const WholeCounts& before, const WholeCounts& after) {
  modules.resize(after.modules.size());
  for (size_t m = 0; m < modules.size(); ++m) {
    add_to(modules[m], before.modules[m], after.modules[m]);
  }
  add_to(polls, before.polls, after.polls);
  add_to(takes, before.takes, after.takes);
  add_to(firings, before.firings, after.firings);
  splits.resize(after.splits.size());
  for (size_t s = 0; s < splits.size(); ++s) {
    Split& sum = splits[s];
    add_to(sum.got, before.splits[s].got, after.splits[s].got);
    sum.branch_batches += after.splits[s].branch_batches - before.splits[s].branch_batches;
    sum.branch_pkts.resize(after.splits[s].branch_pkts.size());
    for (size_t b = 0; b < sum.branch_pkts.size(); ++b) {
      sum.branch_pkts[b] += after.splits[s].branch_pkts[b] - before.splits[s].branch_pkts[b];
    }
  }
}

WholeCounts counts_of(const Graph& graph, const Worker& worker) {
  WholeCounts counts;
  counts.modules.resize(graph.instances.size());
  for (const Task* task : worker.tasks()) {
    for (const TaskInput& input : task->inputs) {
      counts.polls.batches += static_cast<double>(input.batches);
      counts.polls.pkts += static_cast<double>(input.pkts);
      if (!input.is_queue) continue;
      counts.takes.batches += static_cast<double>(input.batches);
      counts.takes.pkts += static_cast<double>(input.pkts);
    }
    for (const ExecNode& node : task->nodes) {
      count_scatter(*task, node, counts);
      if (node.queue == nullptr || node.queue->trigger_pkts == 0) continue;
      const exec::NodeTotals totals = task->executor->totals(node);
      counts.firings.batches += static_cast<double>(totals.batches);
      counts.firings.pkts += static_cast<double>(totals.pkts);
    }
  }
  for (size_t m = 0; m < graph.instances.size(); ++m) {
    const Instance& instance = graph.instances[m];
    for (const Task* task : worker.tasks()) {
      if (instance.node != nullptr && instance.node >= task->nodes.data() &&
          instance.node < task->nodes.data() + task->nodes.size()) {
        const exec::NodeTotals totals = task->executor->totals(*instance.node);
        counts.modules[m] = ran(totals.batches, totals.pkts);
      }
      for (const TaskInput& input : task->inputs) {
        if (input.is_queue || input.module != instance.module.get()) continue;
        counts.modules[m] = ran(input.batches, input.pkts);
      }
    }
  }
  return counts;
}

std::set<std::string> behind_splitters(const PipelineSpec& spec) {
  std::map<std::string, std::set<std::string>> next;
  for (const EdgeSpec& edge : spec.edges) next[edge.from].insert(edge.to);
  std::set<std::string> behind;
  std::vector<std::string> open;
  for (const auto& [name, targets] : next) {
    if (targets.size() > 1) open.insert(open.end(), targets.begin(), targets.end());
  }
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (!behind.insert(name).second) continue;
    open.insert(open.end(), next[name].begin(), next[name].end());
  }
  return behind;
}

std::array<CostLaw::Line, kStretches> parts_of(const WholeCounts& counts, const Ran& scatters,
                                               const Graph& graph,
                                               const std::set<std::string>& behind,
                                               const ProfileOfModule& profiles,
                                               const EngineCosts& loop) {
  std::array<CostLaw::Line, kStretches> parts;
  const double booking_ns =
      loop.egress_per_pkt_ns;  // the measured poll cost includes booking a delay
  parts[kBefore] = {.cost_per_batch_ns = loop.poll_per_batch_ns * counts.polls.batches +
                                         loop.ring_take_per_batch_ns * counts.takes.batches +
                                         loop.scatter_per_branch_ns * scatters.batches,
                    .cost_per_pkt_ns = (loop.poll_per_pkt_ns - booking_ns) * counts.polls.pkts +
                                       loop.ring_take_per_pkt_ns * counts.takes.pkts +
                                       loop.scatter_per_pkt_ns * scatters.pkts};
  const Stretch last = behind.empty() ? kBefore : kBehind;
  parts[last].cost_per_batch_ns += loop.firing_ns * counts.firings.batches;
  parts[last].cost_per_pkt_ns +=
      loop.buffered_per_pkt_ns * counts.firings.pkts + booking_ns * counts.polls.pkts;
  for (size_t m = 0; m < counts.modules.size(); ++m) {
    const Ran& ran = counts.modules[m];
    if (ran.batches <= 0) continue;
    const std::string& name = graph.instances[m].name;
    const CostLaw& law = profiles.at(name)->law;
    const double whole_ns = ran.batches * law.ns(ran.pkts / ran.batches);
    const double pkt_ns = std::min(whole_ns, law.line().cost_per_pkt_ns * ran.pkts);
    CostLaw::Line& mine = parts[behind.contains(name) ? kBehind : kBefore];
    mine.cost_per_pkt_ns += pkt_ns;
    mine.cost_per_batch_ns += whole_ns - pkt_ns;
  }
  return parts;
}

}  // namespace batchplane::profile
