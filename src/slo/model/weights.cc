// SPDX-License-Identifier: BSD-3-Clause
#include "slo/model/weights.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace batchplane::slo {
namespace {

// Relative change of a weight; smaller ones are not worth a command to the worker.
constexpr double kDeadBand = 0.05;

bool is_other_weight(uint32_t wanted, uint32_t found) {
  const double difference = std::abs(static_cast<double>(wanted) - static_cast<double>(found));
  return difference > kDeadBand * found;
}

}  // namespace

std::vector<ScheduledTask> scheduled_tasks(const Model& model, const std::vector<Segment>& segments,
                                           const std::string& name) {
  std::vector<ScheduledTask> tasks;
  for (uint32_t t = 0; t < model.tasks.size(); ++t) {
    if (!model.tasks[t].scheduling.is_weighted_fair()) continue;
    ScheduledTask task{t, {}};
    for (uint32_t s = 0; s < segments.size(); ++s) {
      if (model.modules[segments[s].head].task == t) task.heads.push_back(s);
    }
    tasks.push_back(std::move(task));
  }
  if (!tasks.empty()) return tasks;
  throw ConfigError(
      "'" + name + "' sets weights, and every task of this pipeline runs to completion",
      "controller", "engine: {execution: {mode: wfq}} makes a task schedule its queues");
}

std::vector<uint32_t> weights_of(const std::vector<double>& demands) {
  const double most = demands.empty() ? 0 : *std::ranges::max_element(demands);
  std::vector<uint32_t> weights;
  for (const double demand : demands) {
    const double scaled = most > 0 ? std::round(exec::kMaxWeight * demand / most) : 1;
    weights.push_back(std::max(1U, static_cast<uint32_t>(scaled)));
  }
  return weights;
}

double segment_work_ns(const Snapshot& snapshot, const Segment& segment) {
  double work_ns = 0;
  for (const uint32_t m : segment.members) {
    const exec::ModulePeriod& module = snapshot.modules[m];
    work_ns += cost_line(module).work_ns(static_cast<double>(module.batches),
                                         static_cast<double>(module.pkts));
  }
  return work_ns;
}

double input_work_ns(const Snapshot& snapshot, const Model& model,
                     const std::vector<Segment>& segments, uint32_t task) {
  double work_ns = 0;
  const auto add = [&](uint32_t m) { work_ns += segment_work_ns(snapshot, {m, {m}}); };
  for (const uint32_t m : model.tasks[task].inputs) add(m);
  for (const uint32_t m : model.tasks[task].modules) {
    const bool is_inside = std::ranges::any_of(segments, [m](const Segment& segment) {
      return std::ranges::find(segment.members, m) != segment.members.end();
    });
    if (!is_inside) add(m);
  }
  return work_ns;
}

exec::BufferChange& change_of(Decision& decision, uint32_t module, const char* reason) {
  const auto it = std::ranges::find(decision.changes, module, &exec::BufferChange::module);
  if (it != decision.changes.end()) return *it;
  decision.changes.push_back({.module = module,
                              .trigger_pkts = exec::kKeepTrigger,
                              .age_limit_ns = exec::kKeepAge,
                              .reason = reason});
  return decision.changes.back();
}

void change_weights(const Snapshot& snapshot, const Model& model,
                    const std::vector<Segment>& segments, const ScheduledTask& task,
                    const std::vector<uint32_t>& weights, Decision& decision) {
  const auto set = [&](uint32_t module, uint32_t weight) {
    if (!is_other_weight(weight, snapshot.modules[module].weight)) return;
    change_of(decision, module, "weight").weight = weight;
  };
  for (size_t i = 0; i < task.heads.size(); ++i) set(segments[task.heads[i]].head, weights[i]);
  for (const uint32_t input : model.tasks[task.task].inputs) {
    if (!model.modules[input].has_buffer) set(input, weights.back());
  }
}

}  // namespace batchplane::slo
