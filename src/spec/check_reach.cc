// SPDX-License-Identifier: BSD-3-Clause
// check_reach.cc - unconnected ends, cycles within a task, unreachable modules.
#include <algorithm>

#include "spec/graph_check.h"

namespace batchplane {
namespace {

void check_ends(GraphCheck& graph) {
  for (uint32_t m = 0; m < graph.kinds.size(); ++m) {
    if (graph.kinds[m] == nullptr || !graph.kinds[m]->has_outputs()) continue;
    const bool leads_on = std::ranges::any_of(
        graph.leaving[m], [](const SpecEdge& edge) { return edge.gate != exec::kDropGate; });
    if (leads_on) continue;
    const std::string& name = graph.name(m);
    graph.mistakes.add("modules." + name,
                       "nothing comes after '" + name + "': its packets are dropped",
                       "connect it: " + name + " -> ...");
  }
}

// Depth-first; one message for each edge that closes a cycle. The edges that leave a queue belong to another
// task.
class CycleSearch {
 public:
  explicit CycleSearch(GraphCheck& graph) : graph_(graph), state_(graph.kinds.size(), kNew) {}

  void run() {
    for (uint32_t m = 0; m < state_.size(); ++m) {
      if (state_[m] == kNew) walk(m);
    }
  }

 private:
  enum State : uint8_t { kNew, kOpen, kDone };

  // Iterative: a chain may be as long as memory allows.
  void walk(uint32_t root) {
    std::vector<size_t> next{0};
    way_ = {root};
    state_[root] = kOpen;
    while (!way_.empty()) {
      const std::vector<SpecEdge>& edges = graph_.leaving[way_.back()];
      if (next.back() == edges.size()) {
        state_[way_.back()] = kDone;
        way_.pop_back();
        next.pop_back();
        continue;
      }
      const SpecEdge& edge = edges[next.back()++];
      const uint32_t to = edge.to;
      const bool leaves = graph_.kinds[edge.from]->shape == Shape::kQueue;
      if (leaves && edge.gate != exec::kDropGate) continue;
      if (state_[to] == kOpen) tell(to);
      if (state_[to] != kNew) continue;
      state_[to] = kOpen;
      way_.push_back(to);
      next.push_back(0);
    }
  }

  void tell(uint32_t closing) {
    std::string loop;
    for (auto m = std::ranges::find(way_, closing); m != way_.end(); ++m) {
      loop += graph_.name(*m) + " -> ";
    }
    const auto& edges = graph_.spec.edges;
    const auto edge = std::ranges::find_if(edges, [&](const EdgeSpec& each) {
      return each.from == graph_.name(way_.back()) && each.to == graph_.name(closing);
    });
    graph_.mistakes.add("edges[" + std::to_string(edge - edges.begin()) + "]",
                        "the graph has a cycle: " + loop + graph_.name(closing),
                        "tasks are acyclic; put a queue module into the loop");
  }

  GraphCheck& graph_;
  std::vector<State> state_;
  std::vector<uint32_t> way_;
};

void check_reached(GraphCheck& graph) {
  std::vector<bool> is_reached(graph.kinds.size(), false);
  std::vector<uint32_t> todo;
  for (uint32_t m = 0; m < graph.kinds.size(); ++m) {
    if (graph.kinds[m]->shape == Shape::kInput) todo.push_back(m);
  }
  if (todo.empty() && !graph.kinds.empty()) {
    graph.mistakes.add("modules", "no module brings packets in", "add a port_in or source");
    return;
  }
  for (const uint32_t m : todo) is_reached[m] = true;
  while (!todo.empty()) {
    const uint32_t at = todo.back();
    todo.pop_back();
    for (const SpecEdge& edge : graph.leaving[at]) {
      if (is_reached[edge.to]) continue;
      is_reached[edge.to] = true;
      todo.push_back(edge.to);
    }
  }
  for (uint32_t m = 0; m < is_reached.size(); ++m) {
    if (is_reached[m]) continue;
    const std::string& name = graph.name(m);
    graph.mistakes.add("modules." + name, "no packet can reach '" + name + "'",
                       "connect something to it: ... -> " + name + ", or remove it");
  }
}

}  // namespace

void check_reach(GraphCheck& graph) {
  if (!graph.is_torn) check_ends(graph);
  // The shape of an unknown kind would be a guess.
  if (!graph.knows_all_kinds) return;
  CycleSearch(graph).run();
  if (!graph.is_torn) check_reached(graph);
}

}  // namespace batchplane
