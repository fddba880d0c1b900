// SPDX-License-Identifier: BSD-3-Clause
// path_automaton.h - finds a packet's declared flow from the gates that it took.
//
// A state is the set of flows to which a packet may still belong; each gate narrows the set. Packets carry
// their state only on edges into nodes that several states can reach; elsewhere nothing is written into
// packets.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace batchplane::exec {

struct PathEdge {
  uint32_t from;
  uint32_t gate;
  uint32_t to;
};

// Control thread; pure.
class PathAutomaton {
 public:
  using State = uint16_t;
  using FlowSet = std::vector<uint32_t>;  // sorted

  struct Flow {
    uint32_t first;                                 // node where it enters
    uint32_t last;                                  // node where it leaves
    std::set<std::pair<uint32_t, uint32_t>> gates;  // (node, gate) it crosses
  };

  // Throws ConfigError for more than 65,000 states. States with the same flows keep their numbers from
  // `before`, an automaton with the same number of flows.
  PathAutomaton(uint32_t n_nodes, const std::vector<PathEdge>& edges,
                const std::vector<uint32_t>& entries, const std::vector<Flow>& flows,
                const PathAutomaton* before = nullptr);

  // States that can reach a node; empty for an unreachable node.
  [[nodiscard]] const std::set<State>& states_at(uint32_t node) const { return at_[node]; }
  [[nodiscard]] bool is_static(uint32_t node) const {
    return at_[node].size() <= 1 && !carries_.contains(node);
  }
  // Packets carry their state into this node even if only one state reaches it: later nodes cannot tell by
  // which of several such nodes they came.
  void carry_at(uint32_t node) { carries_.insert(node); }
  [[nodiscard]] State entry_state(uint32_t node) const { return entry_.at(node); }
  // State after crossing `gate` of `node` in state `from`.
  [[nodiscard]] State next(uint32_t node, uint32_t gate, State from) const;
  // The flow that ends at `node` in `state`: its index, or flows.size() for `other`.
  [[nodiscard]] uint32_t flow_at(uint32_t node, State state) const;
  [[nodiscard]] const FlowSet& flows_of(State state) const { return sets_[state]; }
  [[nodiscard]] uint32_t n_states() const { return static_cast<uint32_t>(sets_.size()); }
  // Pairs of flows that no gate distinguishes.
  [[nodiscard]] std::vector<std::pair<uint32_t, uint32_t>> indistinct() const;

 private:
  State intern(FlowSet set);

  const std::vector<Flow> flows_;
  std::vector<FlowSet> sets_;
  std::map<FlowSet, State> index_;
  std::vector<std::set<State>> at_;
  std::map<uint32_t, State> entry_;
  std::set<uint32_t> carries_;
  std::map<std::tuple<uint32_t, uint32_t, State>, State> next_;
};

}  // namespace batchplane::exec
