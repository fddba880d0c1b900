// SPDX-License-Identifier: BSD-3-Clause
#include "core/engine/capture_order.h"

#include <algorithm>
#include <map>

namespace batchplane {
namespace {

// Depth first: the workers that take packets from this one, then the worker itself.
void visit(uint32_t worker, const std::vector<std::vector<uint32_t>>& takers,
           std::vector<bool>& is_seen, std::vector<uint32_t>& order) {
  if (is_seen[worker]) return;
  is_seen[worker] = true;
  for (const uint32_t taker : takers[worker]) visit(taker, takers, is_seen, order);
  order.push_back(worker);
}

}  // namespace

bool is_hand_over(const Instance& instance) {
  return joins_tasks(instance.info->shape, instance.info->is_egress);
}

std::vector<uint32_t> capture_order(const Graph& graph,
                                    const std::vector<std::unique_ptr<Worker>>& workers) {
  const auto worker_of = [&](const Task& task) {
    const auto it = std::ranges::find_if(
        workers, [&](const auto& worker) { return worker->options().name == task.worker; });
    return static_cast<uint32_t>(it - workers.begin());
  };
  std::vector<std::vector<uint32_t>> takers(workers.size());
  std::map<const Module*, uint32_t> pollers;  // of queues: workers
  for (const auto& task : graph.tasks) {
    if (task == nullptr) continue;
    for (const TaskInput& input : task->inputs) pollers[input.module] = worker_of(*task);
  }
  for (const Instance& instance : graph.instances) {
    const auto poller = pollers.find(instance.works_on);
    if (!is_hand_over(instance) || poller == pollers.end()) continue;
    takers[worker_of(*graph.tasks[instance.task])].push_back(poller->second);
  }
  std::vector<bool> is_seen(workers.size(), false);
  std::vector<uint32_t> order;
  for (uint32_t w = 0; w < workers.size(); ++w) visit(w, takers, is_seen, order);
  return order;
}

}  // namespace batchplane
