// SPDX-License-Identifier: BSD-3-Clause
#include "exec/path_automaton.h"

#include <deque>
#include <utility>

#include "base/error.h"

namespace batchplane::exec {

PathAutomaton::PathAutomaton(uint32_t n_nodes, const std::vector<PathEdge>& edges,
                             const std::vector<uint32_t>& entries, const std::vector<Flow>& flows,
                             const PathAutomaton* before)
    : flows_(flows), at_(n_nodes) {
  for (uint32_t s = 0; before != nullptr && s < before->sets_.size(); ++s) intern(before->sets_[s]);
  std::vector<std::vector<PathEdge>> out(n_nodes);
  for (const PathEdge& edge : edges) out[edge.from].push_back(edge);

  std::deque<std::pair<uint32_t, State>> work;
  for (const uint32_t entry : entries) {
    FlowSet set;
    for (uint32_t f = 0; f < flows_.size(); ++f) {
      if (flows_[f].first == entry) set.push_back(f);
    }
    const State state = intern(std::move(set));
    entry_[entry] = state;
    if (at_[entry].insert(state).second) work.emplace_back(entry, state);
  }
  while (!work.empty()) {
    const auto [node, state] = work.front();
    work.pop_front();
    for (const PathEdge& edge : out[node]) {
      FlowSet set;
      for (const uint32_t f : sets_[state]) {
        if (flows_[f].gates.contains({edge.from, edge.gate})) set.push_back(f);
      }
      const State to = intern(std::move(set));
      next_[{edge.from, edge.gate, state}] = to;
      if (at_[edge.to].insert(to).second) work.emplace_back(edge.to, to);
    }
  }
}

PathAutomaton::State PathAutomaton::intern(FlowSet set) {
  constexpr size_t kMaxStates = 65'000;
  const auto it = index_.find(set);
  if (it != index_.end()) return it->second;
  if (sets_.size() >= kMaxStates) {
    throw ConfigError("the flows need more than 65,000 path states", "flows",
                      "declare fewer flows that merge, or split the pipeline");
  }
  const auto state = static_cast<State>(sets_.size());
  sets_.push_back(set);
  index_.emplace(std::move(set), state);
  return state;
}

PathAutomaton::State PathAutomaton::next(uint32_t node, uint32_t gate, State from) const {
  return next_.at({node, gate, from});
}

uint32_t PathAutomaton::flow_at(uint32_t node, State state) const {
  for (const uint32_t f : sets_[state]) {
    if (flows_[f].last == node) return f;
  }
  return static_cast<uint32_t>(flows_.size());
}

std::vector<std::pair<uint32_t, uint32_t>> PathAutomaton::indistinct() const {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (uint32_t node = 0; node < at_.size(); ++node) {
    for (const State state : at_[node]) {
      uint32_t first = static_cast<uint32_t>(flows_.size());
      for (const uint32_t f : sets_[state]) {
        if (flows_[f].last != node) continue;
        if (first < flows_.size()) pairs.emplace_back(first, f);
        first = f;
      }
    }
  }
  return pairs;
}

}  // namespace batchplane::exec
