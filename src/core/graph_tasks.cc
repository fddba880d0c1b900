// SPDX-License-Identifier: BSD-3-Clause
// graph_tasks.cc - lays out each task: nodes in rank order, queues, what stands behind each gate,
// path operations.
#include <algorithm>

#include "core/dead_end.h"
#include "core/graph_internal.h"

namespace batchplane {
namespace {

// Vector stores may run past the last packet of a queue.
constexpr uint32_t kSlackSlots = 8;

class TaskMaker {
 public:
  TaskMaker(GraphBuild& build, const PathAutomaton& paths, uint32_t t)
      : build_(build), graph_(build.graph), paths_(paths), t_(t), task_(std::make_unique<Task>()) {}

  std::unique_ptr<Task> make() {
    task_->worker = build_.worker_of_task[t_];
    lay_out();
    link();
    size_queues();
    set_triggers();
    for (const uint32_t i : build_.order[t_]) {
      add_path_ops(i);
      set_flows(i);
    }
    add_inputs();
    return std::move(task_);
  }

 private:
  ExecNode& node_of(uint32_t instance) { return *graph_.instances[instance].node; }

  std::vector<const LinkedEdge*> out_edges(uint32_t instance) const {
    std::vector<const LinkedEdge*> edges;
    for (const LinkedEdge& edge : build_.graph.edges) {
      if (edge.from == instance) edges.push_back(&edge);
    }
    return edges;
  }

  // The dead end is the last node: any gate may lead there, so its rank is above all others.
  void lay_out() {
    const std::vector<uint32_t>& order = build_.order[t_];
    const auto n = static_cast<uint32_t>(order.size()) + 1;
    task_->nodes.resize(n);
    for (uint32_t rank = 0; rank < n; ++rank) {
      const bool is_dead_end = rank == order.size();
      ExecNode& node = task_->nodes[rank];
      const ModuleInfo& info = is_dead_end ? dead_end_info() : *graph_.instances[order[rank]].info;
      node.run = info.run;
      node.rank = static_cast<uint16_t>(rank);
      node.module = is_dead_end ? dead_end() : graph_.instances[order[rank]].module.get();
      task_->node_names.push_back(is_dead_end ? "(dead end)" : graph_.instances[order[rank]].name);
      task_->drop_counts.emplace_back(drop_reasons().size(), 0);
      node.drops = task_->drop_counts.back().data();
      task_->drop_counts.emplace_back(drop_reasons().size(), 0);
      node.handed_on = task_->drop_counts.back().data();
      task_->queues.push_back(std::make_unique<CoreQueue>());
      node.queue = task_->queues.back().get();
      node.queue->rank = node.rank;
      if (!is_dead_end) graph_.instances[order[rank]].node = &node;
      const auto other = static_cast<uint16_t>(graph_.flow_names.size() - 1);
      static_cast<Module*>(node.module)->set_flows(other, nullptr);
    }
  }

  Module* dead_end() {
    task_->dead_end = make_dead_end();
    return task_->dead_end.get();
  }

  void link() {
    for (const uint32_t i : build_.order[t_]) {
      const ModuleInfo& info = *graph_.instances[i].info;
      ExecNode& node = node_of(i);
      uint32_t connected = 0;
      for (const LinkedEdge* edge : out_edges(i)) {
        if (edge->gate != kDropGate) connected = std::max(connected, edge->gate + 1);
      }
      const bool is_end = info.shape == Shape::kTerminal || info.shape == Shape::kQueue;
      const uint32_t n_gates =
          is_end ? 0 : std::max(connected, graph_.instances[i].module->gates_used(connected));
      node.n_gates = static_cast<uint16_t>(n_gates);
      std::vector<CoreQueue*> targets(n_gates, nullptr);
      for (const LinkedEdge* edge : out_edges(i)) {
        if (edge->gate == kDropGate) {
          node.drop_target = node_of(edge->to).queue;
          ++node_of(edge->to).n_inputs;
        } else if (!is_end) {
          targets[edge->gate] = node_of(edge->to).queue;
          ++node_of(edge->to).n_inputs;
        }
      }
      ExecNode& end = task_->nodes.back();
      for (CoreQueue*& target : targets) {
        if (target != nullptr) continue;
        target = end.queue;
        ++end.n_inputs;
      }
      task_->targets.push_back(std::move(targets));
      node.targets = task_->targets.back().data();
      if (is_end) {
        node.after = exec::After::kEnd;
      } else if (info.shape == Shape::kSplitter) {
        node.after = exec::After::kScatter;
      } else {
        node.after = exec::After::kEnqueue;
        node.next = &task_->nodes[node.targets[0]->rank];
        // What it emits goes through the queue: no later batch may pass that by pointer.
        if (!graph_.instances[i].module->may_emit()) node.next->sole_predecessor = &node;
      }
    }
    // Only the one way in may pass batches by pointer.
    for (const auto& [input, first] : build_.inputs[t_]) ++node_of(first).n_inputs;
    for (ExecNode& node : task_->nodes) {
      if (node.n_inputs > 1) node.sole_predecessor = nullptr;
    }
    task_->nodes.back().n_inputs = std::max<uint16_t>(task_->nodes.back().n_inputs, 2);
  }

  // Packets in a task at any time: one input batch, what buffers and modules hold upstream, and
  // what modules make themselves (at most one for each that passes, and one emission round).
  void size_queues() {
    const uint64_t batch_pkts = graph_.spec.engine.batch_pkts;
    const auto n = static_cast<uint32_t>(task_->nodes.size());
    std::vector<std::vector<bool>> above(n, std::vector<bool>(n, false));
    for (uint32_t rank = 0; rank < n; ++rank) {
      const ExecNode& node = task_->nodes[rank];
      const auto flow_into = [&](const CoreQueue* queue) {
        std::vector<bool>& set = above[queue->rank];
        for (uint32_t a = 0; a < rank; ++a) {
          if (above[rank][a]) set[a] = true;
        }
        set[rank] = true;
      };
      CoreQueue* previous = nullptr;
      for (uint32_t g = 0; g < node.n_gates; ++g) {
        if (node.targets[g] != previous) flow_into(node.targets[g]);
        previous = node.targets[g];
      }
      if (node.drop_target != nullptr) flow_into(node.drop_target);
    }
    for (uint32_t rank = 0; rank < n; ++rank) {
      uint64_t pkts = batch_pkts;
      uint64_t kept = 0;
      bool has_emitter = false;
      for (uint32_t a = 0; a <= rank; ++a) {
        if (a != rank && !above[rank][a]) continue;
        pkts += batch_pkts - 1;
        kept += static_cast<Module*>(task_->nodes[a].module)->max_held_pkts();
        has_emitter |= static_cast<Module*>(task_->nodes[a].module)->may_emit();
      }
      pkts += kept;
      if (has_emitter) pkts = 2 * pkts + Context::kMaxEmitPkts;
      task_->queue_slots.emplace_back(pkts + kSlackSlots, nullptr);
      task_->nodes[rank].queue->pkts = task_->queue_slots.back().data();
      task_->nodes[rank].queue->capacity_pkts = static_cast<uint32_t>(pkts);
    }
  }

  void set_triggers() {
    for (ExecNode& node : task_->nodes) {
      node.queue->age_limit_ns = graph_.spec.engine.stranding_limit_ns;
    }
    std::map<uint32_t, uint32_t> of_trigger;
    for (const ModuleSpec& spec : graph_.spec.modules) {
      const Instance& instance = graph_.instances[graph_.index.at(spec.name)];
      if (instance.node == nullptr || &task_->nodes[instance.node->rank] != instance.node) continue;
      CoreQueue& queue = *instance.node->queue;
      queue.trigger_pkts = static_cast<uint16_t>(spec.trigger_pkts);
      queue.release_at_pkts =
          static_cast<uint16_t>(stagger(spec.trigger_pkts, of_trigger[spec.trigger_pkts]++));
      if (spec.age_limit_ns != 0) queue.age_limit_ns = spec.age_limit_ns;
    }
  }

  void add_path_ops(uint32_t i) {
    ExecNode& node = node_of(i);
    std::vector<exec::PathOp> ops(node.n_gates + 1U);
    bool any = false;
    for (const LinkedEdge* edge : out_edges(i)) {
      if (node.after == exec::After::kEnd && edge->gate != kDropGate) continue;
      if (paths_.is_static(edge->to)) continue;
      exec::PathOp& op = ops[edge->gate == kDropGate ? node.n_gates : edge->gate];
      const auto& states = paths_.states_at(i);
      if (states.empty()) continue;
      // Between two nodes that several states reach, a gate that narrows nothing costs nothing.
      const bool is_identity =
          states.size() > 1 && std::ranges::all_of(states, [&](uint16_t state) {
            return paths_.next(i, edge->gate, state) == state;
          });
      if (is_identity) continue;
      any = true;
      if (states.size() == 1) {
        op.constant = paths_.next(i, edge->gate, *states.begin());
        continue;
      }
      auto map = std::make_unique<std::vector<uint16_t>>(paths_.n_states(), 0);
      for (const uint16_t state : states) (*map)[state] = paths_.next(i, edge->gate, state);
      op.map = map->data();
      task_->path_maps.push_back(std::move(map));
    }
    task_->path_ops.push_back(std::move(ops));
    node.path_ops = task_->path_ops.back().data();
    node.has_path_ops = any;
  }

  void set_flows(uint32_t i) {
    if (!graph_.instances[i].info->is_egress) return;
    Module& module = *graph_.instances[i].module;
    const auto& states = paths_.states_at(i);
    if (states.empty()) return;
    if (states.size() == 1) {
      module.set_flows(static_cast<uint16_t>(paths_.flow_at(i, *states.begin())), nullptr);
      return;
    }
    auto map = std::make_unique<std::vector<uint16_t>>(
        paths_.n_states(), static_cast<uint16_t>(graph_.flow_names.size() - 1));
    for (const uint16_t state : states)
      (*map)[state] = static_cast<uint16_t>(paths_.flow_at(i, state));
    module.set_flows(0, map->data());
    task_->path_maps.push_back(std::move(map));
  }

  void add_inputs() {
    for (const auto& [input, first] : build_.inputs[t_]) {
      Instance& instance = graph_.instances[input];
      TaskInput made{instance.module.get(), instance.info->poll, graph_.instances[first].node};
      // A queue's packets bring the state that they had where they were put in, unless it was
      // static.
      const auto& states = paths_.states_at(input);
      if (!paths_.is_static(first) && states.size() == 1) {
        made.entry_state = paths_.next(input, 0, *states.begin());
      }
      made.is_queue = instance.info->shape == Shape::kQueue;
      made.counts_as_in = !made.is_queue || instance.info->is_egress;
      task_->inputs.push_back(made);
      if (instance.info->shape == Shape::kInput) instance.task = t_;
    }
    for (const uint32_t i : build_.order[t_]) {
      Module& module = *graph_.instances[i].module;
      if (module.wants_backpressure()) task_->backpressuring.push_back(&module);
      if (module.housekeep_interval_ns() == 0) continue;
      task_->housekeepers.push_back(
          {&module, graph_.instances[i].node, module.housekeep_interval_ns()});
    }
  }

  GraphBuild& build_;
  Graph& graph_;
  const PathAutomaton& paths_;
  uint32_t t_;
  std::unique_ptr<Task> task_;
};

}  // namespace

// Van der Corput order over 1..q: equal triggers release at different times, and any first few of
// them are spread evenly.
uint32_t stagger(uint32_t trigger_pkts, uint32_t position) {
  if (trigger_pkts == 0) return 0;
  uint32_t reversed = 0;
  for (uint32_t bit = 0; bit < 16; ++bit) reversed |= ((position >> bit) & 1U) << (15 - bit);
  return trigger_pkts - ((reversed * trigger_pkts) >> 16);
}

void make_tasks(GraphBuild& build) {
  Graph& graph = build.graph;
  std::vector<PathEdge> edges;
  for (const LinkedEdge& edge : graph.edges) edges.push_back({edge.from, edge.gate, edge.to});
  std::vector<uint32_t> entries;
  for (uint32_t i = 0; i < graph.instances.size(); ++i) {
    if (graph.instances[i].info->shape == Shape::kInput) entries.push_back(i);
  }
  graph.paths = std::make_unique<PathAutomaton>(static_cast<uint32_t>(graph.instances.size()),
                                                edges, entries, build.flows);
  const PathAutomaton& paths = *graph.paths;
  for (const auto& [a, b] : paths.indistinct()) {
    build.errors.emplace_back(
        "flows '" + graph.flow_names[a] + "' and '" + graph.flow_names[b] + "' have the same path",
        graph.spec.where("flows[" + std::to_string(b) + "]"),
        "flows are told apart by their paths: join them, or split them by a module");
  }
  if (!build.errors.empty()) throw ConfigErrors(std::move(build.errors));
  for (uint32_t t = 0; t < build.members.size(); ++t) {
    if (build.order[t].empty()) {
      graph.tasks.push_back(nullptr);  // an input alone, whose packets go to another task
      continue;
    }
    graph.tasks.push_back(TaskMaker(build, paths, t).make());
    graph.tasks.back()->index = static_cast<uint16_t>(t);
  }
}

}  // namespace batchplane
