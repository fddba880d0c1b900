// SPDX-License-Identifier: BSD-3-Clause
// task_layout.h - lays out a task's planned graph as nodes, queues and gate targets; shared by data plane and
// simulator, so that both run batches in the same order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "exec/node.h"
#include "exec/path_automaton.h"
#include "exec/unit_plan.h"

namespace batchplane::exec {

inline constexpr uint32_t kDropGate = 0xffff;

// First release of the position-th buffer among those of equal trigger: 1..trigger. Van der Corput order:
// buffers of equal trigger fire at different times, and any first few of them are spread evenly.
[[nodiscard]] inline uint32_t stagger(uint32_t trigger_pkts, uint32_t position) {
  if (trigger_pkts == 0) return 0;
  uint32_t reversed = 0;
  for (uint32_t bit = 0; bit < 16; ++bit) reversed |= ((position >> bit) & 1U) << (15 - bit);
  return trigger_pkts - ((reversed * trigger_pkts) >> 16);
}

// Input of the layout: a task with its nodes by rank, the dead end last.
template <class Traits>
struct TaskPlan {
  enum class Follow : uint8_t { kNext, kByGate, kNothing };  // in-place, splitter, terminal
  struct PlannedNode {
    typename Node<Traits>::Run run = nullptr;
    void* module = nullptr;
    Follow follow = Follow::kNothing;
    uint32_t n_gates = 0;
    bool may_emit = false;
    uint32_t max_held_pkts = 0;  // inside the module
    uint32_t trigger_pkts = 0;
    uint64_t age_limit_ns = 0;
    // Explicit scheduling:
    bool is_unit = false;
    uint32_t weight = 1;
    uint32_t queue_pkts = 0;
  };
  struct Edge {
    uint32_t from;  // rank
    uint32_t gate;  // or kDropGate
    uint32_t to;    // rank
  };
  std::vector<PlannedNode> nodes;
  std::vector<Edge> edges;
  std::vector<uint32_t> firsts;      // of each input: the rank of the node behind it
  std::vector<uint32_t> file_order;  // ranks in the order of the pipeline file: for the stagger
  uint32_t batch_limit_pkts = kDefaultBatchPkts;
  uint32_t n_reasons = 0;
  Scheduling scheduling;
  uint32_t backlog_pkts = 0;  // packets that may wait for their turn from loop to loop
};

// Nodes in rank order, and the memory behind their pointers.
template <class Traits>
struct TaskStorage {
  using Handle = typename Traits::Handle;
  std::vector<Node<Traits>> nodes;
  std::vector<std::unique_ptr<Queue<Handle>>> queues;
  std::vector<std::vector<Handle>> queue_slots;
  std::vector<std::vector<Queue<Handle>*>> targets;
  std::vector<std::vector<PathOp>> path_ops;
  std::vector<std::unique_ptr<std::vector<uint16_t>>> path_maps;
  std::vector<std::vector<uint64_t>> drop_counts;
  std::unique_ptr<UnitPlan> unit_plan;     // explicit scheduling only
  uint32_t poll_pkts = kDefaultBatchPkts;  // most packets of a poll
};

template <class Traits>
class TaskLayout {
 public:
  using Plan = TaskPlan<Traits>;
  using Storage = TaskStorage<Traits>;

  // Fills `storage`, which must not move afterwards.
  TaskLayout(const Plan& plan, Storage& storage) : plan_(plan), task_(storage) {
    make_nodes();
    link();
    size_queues();
    set_triggers();
    if (plan_.scheduling.is_weighted_fair()) plan_units();
  }

 private:
  // Vector stores may write past the last packet of a queue.
  static constexpr uint32_t kSlackSlots = 8;

  void make_nodes() {
    const auto n = static_cast<uint32_t>(plan_.nodes.size());
    task_.nodes.resize(n);
    for (uint32_t rank = 0; rank < n; ++rank) {
      Node<Traits>& node = task_.nodes[rank];
      node.run = plan_.nodes[rank].run;
      node.module = plan_.nodes[rank].module;
      node.rank = static_cast<uint16_t>(rank);
      task_.drop_counts.emplace_back(plan_.n_reasons, 0);
      node.drops = task_.drop_counts.back().data();
      task_.drop_counts.emplace_back(plan_.n_reasons, 0);
      node.handed_on = task_.drop_counts.back().data();
      task_.queues.push_back(std::make_unique<Queue<typename Traits::Handle>>());
      node.queue = task_.queues.back().get();
      node.queue->rank = node.rank;
    }
  }

  void link() {
    Node<Traits>& end = task_.nodes.back();
    std::vector<std::vector<const typename Plan::Edge*>> out(task_.nodes.size());
    for (const auto& edge : plan_.edges) out[edge.from].push_back(&edge);
    for (uint32_t rank = 0; rank + 1 < task_.nodes.size(); ++rank) {
      Node<Traits>& node = task_.nodes[rank];
      const auto& planned = plan_.nodes[rank];
      node.n_gates = static_cast<uint16_t>(planned.n_gates);
      std::vector<Queue<typename Traits::Handle>*> targets(planned.n_gates, nullptr);
      for (const auto* edge : out[rank]) {
        Node<Traits>& to = task_.nodes[edge->to];
        if (edge->gate == kDropGate) {
          node.drop_target = to.queue;
        } else if (planned.follow != Plan::Follow::kNothing) {
          targets[edge->gate] = to.queue;
        } else {
          continue;
        }
        ++to.n_inputs;
      }
      for (auto*& target : targets) {
        if (target != nullptr) continue;
        target = end.queue;
        ++end.n_inputs;
      }
      task_.targets.push_back(std::move(targets));
      node.targets = task_.targets.back().data();
      set_follow(node, planned);
    }
    // Batches may pass by pointer only into a node with a single predecessor.
    for (const uint32_t first : plan_.firsts) ++task_.nodes[first].n_inputs;
    for (Node<Traits>& node : task_.nodes) {
      if (node.n_inputs > 1) node.sole_predecessor = nullptr;
    }
    end.n_inputs = std::max<uint16_t>(end.n_inputs, 2);
  }

  void set_follow(Node<Traits>& node, const typename Plan::PlannedNode& planned) {
    switch (planned.follow) {
      case Plan::Follow::kNothing:
        node.after = After::kEnd;
        break;
      case Plan::Follow::kByGate:
        node.after = After::kScatter;
        break;
      case Plan::Follow::kNext:
        node.after = After::kEnqueue;
        node.next = &task_.nodes[node.targets[0]->rank];
        // Emitted packets go through the queue, and no later batch may overtake them by pointer.
        if (!planned.may_emit) node.next->sole_predecessor = &node;
    }
  }

  // Bounds the packets in a task at any time: one input batch, what buffers and modules hold upstream, and
  // what modules create (at most one for each packet that passes, and one round of emissions).
  void size_queues() {
    const uint64_t batch_pkts = plan_.batch_limit_pkts;
    const auto n = static_cast<uint32_t>(task_.nodes.size());
    std::vector<std::vector<bool>> above(n, std::vector<bool>(n, false));
    for (uint32_t rank = 0; rank < n; ++rank) {
      const Node<Traits>& node = task_.nodes[rank];
      const auto flow_into = [&](const auto* queue) {
        std::vector<bool>& set = above[queue->rank];
        for (uint32_t a = 0; a < rank; ++a) {
          if (above[rank][a]) set[a] = true;
        }
        set[rank] = true;
      };
      const Queue<typename Traits::Handle>* previous = nullptr;
      for (uint32_t g = 0; g < node.n_gates; ++g) {
        if (node.targets[g] != previous) flow_into(node.targets[g]);
        previous = node.targets[g];
      }
      if (node.drop_target != nullptr) flow_into(node.drop_target);
    }
    for (uint32_t rank = 0; rank < n; ++rank) {
      uint64_t pkts = batch_pkts + plan_.backlog_pkts;
      bool has_emitter = false;
      for (uint32_t a = 0; a <= rank; ++a) {
        if (a != rank && !above[rank][a]) continue;
        pkts += batch_pkts - 1 + plan_.nodes[a].max_held_pkts;
        has_emitter |= plan_.nodes[a].may_emit;
      }
      if (has_emitter) pkts = 2 * pkts + Traits::Context::kMaxEmitPkts;
      if (is_unit(rank)) pkts += unit_queue_pkts(rank);
      task_.queue_slots.emplace_back(pkts + kSlackSlots, typename Traits::Handle{});
      task_.nodes[rank].queue->pkts = task_.queue_slots.back().data();
      task_.nodes[rank].queue->capacity_pkts = static_cast<uint32_t>(pkts);
    }
  }

  void set_triggers() {
    for (uint32_t rank = 0; rank < plan_.nodes.size(); ++rank) {
      task_.nodes[rank].queue->age_limit_ns = plan_.nodes[rank].age_limit_ns;
    }
    std::map<uint32_t, uint32_t> of_trigger;
    for (const uint32_t rank : plan_.file_order) {
      auto& queue = *task_.nodes[rank].queue;
      const uint32_t trigger_pkts = plan_.nodes[rank].trigger_pkts;
      queue.trigger_pkts = static_cast<uint16_t>(trigger_pkts);
      queue.release_at_pkts =
          static_cast<uint16_t>(stagger(trigger_pkts, of_trigger[trigger_pkts]++));
      queue.turn_pkts = queue.release_at_pkts;
    }
  }

  [[nodiscard]] bool is_unit(uint32_t rank) const {
    return plan_.scheduling.is_weighted_fair() && plan_.nodes[rank].is_unit;
  }
  [[nodiscard]] uint32_t unit_queue_pkts(uint32_t rank) const {
    const uint32_t own_pkts = plan_.nodes[rank].queue_pkts;
    return queue_pkts_of(own_pkts != 0 ? own_pkts : plan_.scheduling.queue_pkts,
                         plan_.batch_limit_pkts);
  }

  // A unit's queue holds packets whatever its trigger.
  void plan_units() {
    std::vector<bool> units(plan_.nodes.size());
    for (uint32_t rank = 0; rank < units.size(); ++rank) units[rank] = is_unit(rank);
    task_.unit_plan = std::make_unique<UnitPlan>(connect_units(task_.nodes, units, plan_.firsts));
    task_.unit_plan->how = plan_.scheduling;
    task_.unit_plan->units[0].weight = plan_.scheduling.input_weight;
    for (uint32_t u = 1; u < task_.unit_plan->units.size(); ++u) {
      UnitPlan::Unit& unit = task_.unit_plan->units[u];
      const auto& planned = plan_.nodes[unit.rank];
      unit.weight = planned.weight;
      unit.queue_pkts = unit_queue_pkts(unit.rank);
      unit.trigger_pkts = planned.trigger_pkts;
      auto& queue = *task_.nodes[unit.rank].queue;
      queue.trigger_pkts = static_cast<uint16_t>(std::max(planned.trigger_pkts, 1U));
      queue.is_untriggered = planned.trigger_pkts == 0;
    }
  }

  const Plan& plan_;
  Storage& task_;
};

// Sets what crossing each gate of `node` (number `i` in the automaton) does to path states. `out`: the edges
// that leave it within the task.
template <class Traits>
void add_path_ops(TaskStorage<Traits>& task, Node<Traits>& node, uint32_t i,
                  const PathAutomaton& paths, const std::vector<PathEdge>& out) {
  std::vector<PathOp> ops(node.n_gates + 1U);
  bool any = false;
  for (const PathEdge& edge : out) {
    if (node.after == After::kEnd && edge.gate != kDropGate) continue;
    const auto& states = paths.states_at(i);
    if (paths.is_static(edge.to) || states.empty()) continue;
    // Between two nodes that several states reach, a gate that does not narrow the state needs no work.
    const bool is_identity = states.size() > 1 && std::ranges::all_of(states, [&](uint16_t state) {
                               return paths.next(i, edge.gate, state) == state;
                             });
    if (is_identity) continue;
    any = true;
    PathOp& op = ops[edge.gate == kDropGate ? node.n_gates : edge.gate];
    if (states.size() == 1) {
      op.constant = paths.next(i, edge.gate, *states.begin());
      continue;
    }
    auto map = std::make_unique<std::vector<uint16_t>>(paths.n_states(), 0);
    for (const uint16_t state : states) (*map)[state] = paths.next(i, edge.gate, state);
    op.map = map->data();
    task.path_maps.push_back(std::move(map));
  }
  task.path_ops.push_back(std::move(ops));
  node.path_ops = task.path_ops.back().data();
  node.has_path_ops = any;
}

// The flow of a packet that leaves at an egress node: one for all, or one per state.
struct EgressFlows {
  uint16_t static_flow = 0;
  const uint16_t* of_state = nullptr;
};
template <class Traits>
EgressFlows egress_flows(TaskStorage<Traits>& task, uint32_t i, const PathAutomaton& paths,
                         uint16_t other) {
  const auto& states = paths.states_at(i);
  if (states.empty()) return {other, nullptr};
  if (states.size() == 1) {
    return {static_cast<uint16_t>(paths.flow_at(i, *states.begin())), nullptr};
  }
  auto map = std::make_unique<std::vector<uint16_t>>(paths.n_states(), other);
  for (const uint16_t state : states)
    (*map)[state] = static_cast<uint16_t>(paths.flow_at(i, state));
  const EgressFlows flows{0, map->data()};
  task.path_maps.push_back(std::move(map));
  return flows;
}

}  // namespace batchplane::exec
