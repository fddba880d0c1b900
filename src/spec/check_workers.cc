// SPDX-License-Identifier: BSD-3-Clause
// check_workers.cc - things that belong to one worker only: a task, and each end of a port.
#include "exec/depth.h"
#include "spec/graph_check.h"

namespace batchplane {
namespace {

// The task of each module: modules joined by edges; a queue belongs to the task that fills it.
std::vector<uint32_t> tasks_of(const GraphCheck& graph) {
  std::vector<std::pair<uint32_t, uint32_t>> joined;
  for (const SpecEdge& edge : graph.linked.edges) {
    const bool is_queue = graph.kinds[edge.from]->shape == Shape::kQueue;
    if (!is_queue || edge.gate == exec::kDropGate) joined.emplace_back(edge.from, edge.to);
  }
  return exec::groups_of(static_cast<uint32_t>(graph.kinds.size()), joined);
}

// By module: the worker of its task, set by the inputs and queues that lead into it.
std::vector<std::string> workers_of(GraphCheck& graph) {
  const std::vector<uint32_t> tasks = tasks_of(graph);
  std::vector<std::string> chosen(tasks.size());
  for (const SpecEdge& edge : graph.linked.edges) {
    const ModuleSpec& input = graph.spec.modules[edge.from];
    if (!graph.kinds[edge.from]->begins_task() || edge.gate == exec::kDropGate) continue;
    if (input.worker.empty()) continue;
    std::string& worker = chosen[tasks[edge.to]];
    if (!worker.empty() && worker != input.worker) {
      graph.mistakes.add(
          "modules." + input.name,
          "inputs of one task are given to workers '" + worker + "' and '" + input.worker + "'",
          "put a queue between them, or use one worker");
    }
    worker = input.worker;
  }
  const std::string first = graph.spec.first_worker();
  std::vector<std::string> workers;
  for (const uint32_t task : tasks) workers.push_back(chosen[task].empty() ? first : chosen[task]);
  return workers;
}

// An input polls the port that its parameter names, any other module sends to it. A ring or device has one
// consumer and one producer: with two, packets are read twice or lost without being counted.
class PortOwners {
 public:
  PortOwners(GraphCheck& graph, const std::vector<std::string>& workers)
      : graph_(graph), workers_(workers) {}

  void take(uint32_t m) {
    const ModuleSpec& module = graph_.spec.modules[m];
    for (const ParamSpec& param : graph_.kinds[m]->params) {
      const auto given = module.params.find(param.name);
      if (param.type != ParamType::kPort || given == module.params.end()) continue;
      if (given->second.is_string()) take_end(m, given->second.as_string());
    }
  }

 private:
  void take_end(uint32_t m, const std::string& port) {
    const bool is_polled = graph_.kinds[m]->shape == Shape::kInput;
    const auto [owner, is_first] = owners_.try_emplace({port, is_polled}, m);
    if (is_first || workers_[owner->second] == workers_[m]) return;
    graph_.mistakes.add(
        "modules." + graph_.name(m),
        "port '" + port + "' is " + (is_polled ? "polled by" : "sent into by") + " '" +
            graph_.name(owner->second) + "' on worker " + workers_[owner->second] + " and by '" +
            graph_.name(m) + "' on worker " + workers_[m],
        is_polled ? "one worker polls a port: put both on one, or hand packets on by a queue"
                  : "one worker sends into a port: put both on one, or join them by a queue");
  }

  GraphCheck& graph_;
  const std::vector<std::string>& workers_;
  std::map<std::pair<std::string, bool>, uint32_t> owners_;  // by port and end: the first module
};

}  // namespace

void check_workers(GraphCheck& graph) {
  // Workers follow from shapes and edges: nothing is reported about them when those are wrong.
  if (!graph.knows_all_kinds || graph.is_torn) return;
  const std::vector<std::string> workers = workers_of(graph);
  PortOwners owners(graph, workers);
  for (uint32_t m = 0; m < workers.size(); ++m) owners.take(m);
}

}  // namespace batchplane
