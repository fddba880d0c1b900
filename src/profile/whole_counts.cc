// SPDX-License-Identifier: BSD-3-Clause
#include "profile/whole_counts.h"

#include <algorithm>
#include <cmath>

namespace batchplane::profile {
namespace {

using Ran = WholeCounts::Ran;

void add_to(Ran& sum, const Ran& before, const Ran& after) {
  sum.batches += after.batches - before.batches;
  sum.pkts += after.pkts - before.pkts;
}

// Between two sizes of the table in proportion.
double time_at(const ModuleProfile& profile, double pkts) {
  const auto below = static_cast<size_t>(std::floor(pkts));
  if (below < 1 || below >= profile.table_ns.size()) {
    return pkts >= 1 && !profile.table_ns.empty() && below == profile.table_ns.size()
               ? profile.table_ns.back()
               : profile.law.at(pkts);
  }
  const double share = pkts - static_cast<double>(below);
  return profile.table_ns[below - 1] * (1 - share) + profile.table_ns[below] * share;
}

Ran ran(uint64_t batches, uint64_t pkts) {
  return {static_cast<double>(batches), static_cast<double>(pkts)};
}

void count_scatter(const Task& task, const ExecNode& node, WholeCounts& counts) {
  if (node.after != exec::After::kScatter) return;
  uint64_t branches = 0;
  std::vector<const CoreQueue*> seen;
  for (uint32_t g = 0; g < node.n_gates; ++g) {
    const CoreQueue* queue = node.targets[g];
    if (std::ranges::find(seen, queue) != seen.end()) continue;
    seen.push_back(queue);
    branches += task.executor->totals(task.nodes[queue->rank]).batches;
  }
  const exec::NodeTotals totals = task.executor->totals(node);
  if (branches <= totals.batches) return;  // all of a batch went one way
  counts.scatters.batches += static_cast<double>(branches);
  counts.scatters.pkts += static_cast<double>(totals.pkts);
}

}  // namespace

void WholeCounts::add(const WholeCounts& before, const WholeCounts& after) {
  modules.resize(after.modules.size());
  for (size_t m = 0; m < modules.size(); ++m) {
    add_to(modules[m], before.modules[m], after.modules[m]);
  }
  add_to(polls, before.polls, after.polls);
  add_to(takes, before.takes, after.takes);
  add_to(scatters, before.scatters, after.scatters);
  add_to(firings, before.firings, after.firings);
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

std::array<Parts, kStretches> parts_of(const WholeCounts& counts, const Graph& graph,
                                       const std::set<std::string>& behind,
                                       const ProfileOfModule& profiles, const LoopCosts& loop) {
  std::array<Parts, kStretches> parts;
  // Booking a delay was measured as a part of the poll.
  const double booking_ns = std::min(loop.egress_per_pkt, loop.poll_per_pkt);
  parts[kBefore] = {.batch_ns = loop.poll_per_batch * counts.polls.batches +
                                loop.ring_take_per_batch * counts.takes.batches +
                                loop.scatter_per_branch * counts.scatters.batches,
                    .pkt_ns = (loop.poll_per_pkt - booking_ns) * counts.polls.pkts +
                              loop.ring_take_per_pkt * counts.takes.pkts +
                              loop.scatter_per_pkt * counts.scatters.pkts};
  const Stretch last = behind.empty() ? kBefore : kBehind;
  parts[last].batch_ns += loop.firing * counts.firings.batches;
  parts[last].pkt_ns +=
      loop.buffered_per_pkt * counts.firings.pkts + booking_ns * counts.polls.pkts;
  for (size_t m = 0; m < counts.modules.size(); ++m) {
    const Ran& ran = counts.modules[m];
    if (ran.batches <= 0) continue;
    const std::string& name = graph.instances[m].name;
    const ModuleProfile& profile = *profiles.at(name);
    const double whole_ns = ran.batches * time_at(profile, ran.pkts / ran.batches);
    const double pkt_ns = std::min(whole_ns, profile.law.per_pkt_ns * ran.pkts);
    Parts& mine = parts[behind.contains(name) ? kBehind : kBefore];
    mine.pkt_ns += pkt_ns;
    mine.batch_ns += whole_ns - pkt_ns;
  }
  return parts;
}

}  // namespace batchplane::profile
