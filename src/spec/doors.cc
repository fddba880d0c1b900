// SPDX-License-Identifier: BSD-3-Clause
#include "spec/doors.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "exec/depth.h"

namespace batchplane {
namespace {

class DoorMaker {
 public:
  DoorMaker(PipelineSpec& spec, const Kinds& kinds) : spec_(spec), kinds_(kinds) {
    for (uint32_t m = 0; m < spec.modules.size(); ++m) index_.emplace(spec.modules[m].name, m);
  }

  void run() {
    find_tasks();
    const auto n_modules = static_cast<uint32_t>(spec_.modules.size());
    for (uint32_t m = 0; m < n_modules; ++m) {
      if (is_hand_over(m) && !drops_by_gate(m)) divide(m);
    }
    if (spec_.modules.size() == n_modules) return;
    for (const EdgeSpec& edge : spec_.edges) next_[edge.from].push_back(edge.to);
    for (FlowSpec& flow : spec_.flows) lead_through_doors(flow);
  }

 private:
  [[nodiscard]] bool is_hand_over(uint32_t m) const {
    const auto kind = kinds_.modules.find(spec_.modules[m].kind);
    return kind != kinds_.modules.end() && kind->second.hands_over();
  }
  [[nodiscard]] bool has_both_ends(const EdgeSpec& edge) const {
    return index_.contains(edge.from) && index_.contains(edge.to);
  }
  // A queue's dropped packets continue in the one task that fills it, so it can have no doors.
  [[nodiscard]] bool drops_by_gate(uint32_t m) const {
    return std::ranges::any_of(spec_.edges, [&](const EdgeSpec& edge) {
      return edge.from == spec_.modules[m].name && edge.gate == kDropGateName;
    });
  }

  // Finds tasks: modules joined by edges, cut before and behind each queue.
  void find_tasks() {
    std::vector<std::pair<uint32_t, uint32_t>> joined;
    for (const EdgeSpec& edge : spec_.edges) {
      if (!has_both_ends(edge)) continue;
      const uint32_t from = index_.at(edge.from);
      const uint32_t to = index_.at(edge.to);
      if (is_hand_over(to) || (is_hand_over(from) && edge.gate != kDropGateName)) continue;
      joined.emplace_back(from, to);
    }
    task_ = exec::groups_of(static_cast<uint32_t>(spec_.modules.size()), joined);
    worker_.resize(task_.size());
    for (const EdgeSpec& edge : spec_.edges) {
      if (!has_both_ends(edge) || edge.gate == kDropGateName) continue;
      const std::string& worker = spec_.modules[index_.at(edge.from)].worker;
      if (!worker.empty()) worker_[task_[index_.at(edge.to)]] = worker;
    }
  }
  // The worker that puts packets in by this edge. An input or queue has a worker of its own.
  [[nodiscard]] std::string feeder(const EdgeSpec& edge) const {
    const uint32_t from = index_.at(edge.from);
    const std::string& own = spec_.modules[from].worker;
    const std::string& of_task = worker_[task_[from]];
    if (!own.empty() || is_hand_over(from)) return own.empty() ? spec_.first_worker() : own;
    return of_task.empty() ? spec_.first_worker() : of_task;
  }

  void divide(uint32_t m) {
    const std::string name = spec_.modules[m].name;
    std::map<std::string, std::string> door_of;  // by worker
    std::vector<std::string> added;
    for (EdgeSpec& edge : spec_.edges) {
      if (edge.to != name || !index_.contains(edge.from)) continue;
      const std::string worker = feeder(edge);
      const bool is_first = door_of.empty();
      const auto [door, is_new] = door_of.try_emplace(worker, name);
      if (is_new && !is_first) {
        door->second = name + "@" + worker;
        added.push_back(door->second);
      }
      edge.to = door->second;
    }
    const std::vector<EdgeSpec> edges = spec_.edges;
    for (const std::string& door : added) {
      ModuleSpec made = spec_.modules[m];
      made.name = door;
      made.door_of = name;
      index_.emplace(door, static_cast<uint32_t>(spec_.modules.size()));
      // The door's edges connect tasks, as the queue's do.
      task_.push_back(*std::ranges::max_element(task_) + 1);
      worker_.emplace_back();
      spec_.modules.push_back(std::move(made));
      for (const EdgeSpec& edge : edges) {
        if (edge.from == name) spec_.edges.push_back({door, edge.gate, edge.to});
      }
      doors_[name].push_back(door);
    }
  }

  void lead_through_doors(FlowSpec& flow) const {
    std::string before;
    for (std::string& step : flow.path) {
      const size_t colon = step.find(':');
      const auto doors = doors_.find(step.substr(0, colon));
      if (doors != doors_.end() && !before.empty()) {
        const std::string gate = colon == std::string::npos ? "" : step.substr(colon);
        step = way_in(before, doors->first, doors->second) + gate;
      }
      before = step;
    }
  }
  // The door by which a path enters a queue after naming `step`. A direct edge wins over ways through other
  // modules.
  [[nodiscard]] std::string way_in(const std::string& step, const std::string& queue,
                                   const std::vector<std::string>& doors) const {
    const size_t colon = step.find(':');
    const std::string gate = colon == std::string::npos ? "" : step.substr(colon + 1);
    std::vector<std::string> first;
    for (const EdgeSpec& edge : spec_.edges) {
      const bool is_meant = gate.empty() ? edge.gate != kDropGateName : edge.gate == gate;
      if (edge.from == step.substr(0, colon) && is_meant) first.push_back(edge.to);
    }
    std::vector<std::string> ways{queue};
    ways.insert(ways.end(), doors.begin(), doors.end());
    for (const std::string& way : ways) {
      if (std::ranges::find(first, way) != first.end()) return way;
    }
    for (const std::string& way : ways) {
      const auto leads = [&](const std::string& from) { return reaches(from, way); };
      if (std::ranges::any_of(first, leads)) return way;
    }
    return queue;
  }
  [[nodiscard]] bool reaches(const std::string& from, const std::string& to) const {
    std::vector<std::string> todo{from};
    std::set<std::string> seen;
    while (!todo.empty()) {
      const auto ways = next_.find(todo.back());
      todo.pop_back();
      if (ways == next_.end()) continue;
      for (const std::string& next : ways->second) {
        if (next == to) return true;
        if (seen.insert(next).second) todo.push_back(next);
      }
    }
    return false;
  }

  PipelineSpec& spec_;
  const Kinds& kinds_;
  std::map<std::string, uint32_t> index_;
  std::vector<uint32_t> task_;                             // by module
  std::vector<std::string> worker_;                        // by task; empty: the first worker
  std::map<std::string, std::vector<std::string>> doors_;  // by queue
  std::map<std::string, std::vector<std::string>> next_;   // made once all doors exist
};

}  // namespace

void add_doors(PipelineSpec& spec, const Kinds& kinds) {
  if (spec.workers.size() > 1) DoorMaker(spec, kinds).run();
}

PipelineSpec without_doors(const PipelineSpec& spec) {
  std::map<std::string, std::string> queue_of;  // by door
  for (const ModuleSpec& module : spec.modules) {
    if (!module.door_of.empty()) queue_of[module.name] = module.door_of;
  }
  PipelineSpec written = spec;
  std::erase_if(written.modules, [](const ModuleSpec& module) { return !module.door_of.empty(); });
  std::erase_if(written.edges, [&](const EdgeSpec& edge) { return queue_of.contains(edge.from); });
  for (EdgeSpec& edge : written.edges) {
    if (const auto door = queue_of.find(edge.to); door != queue_of.end()) edge.to = door->second;
  }
  for (FlowSpec& flow : written.flows) {
    for (std::string& step : flow.path) {
      const size_t colon = std::min(step.find(':'), step.size());
      if (const auto door = queue_of.find(step.substr(0, colon)); door != queue_of.end()) {
        step = door->second + step.substr(colon);
      }
    }
  }
  return written;
}

}  // namespace batchplane
