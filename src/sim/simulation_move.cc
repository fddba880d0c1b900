// SPDX-License-Identifier: BSD-3-Clause
// simulation_move.cc - parts of the graph go on on other workers, as the engine moves them.
#include <algorithm>
#include <map>

#include "exec/carry.h"
#include "sim/simulation.h"

namespace batchplane::sim {
namespace {

// From one graph of a simulation to the next.
class Swap {
 public:
  Swap(Graph& from, Graph& to) : from_(from), to_(to) {
    for (const Graph* graph : {&from_, &to_}) {
      std::vector<Place> places(graph->modules.size());
      for (const auto& task : graph->tasks) {
        for (uint32_t rank = 0; rank < task->modules.size(); ++rank) {
          places[task->modules[rank]] = {task.get(), rank};
        }
      }
      (graph == &from_ ? before_ : after_) = std::move(places);
    }
  }

  // Workers that give or take.
  [[nodiscard]] std::vector<bool> involved() {
    std::vector<bool> is_involved(from_.worker_names.size(), false);
    for (const auto& module : to_.modules) {
      const auto old = from_.index.find(module->name);
      const Task* const task = after_[module->index].task;
      if (task == nullptr) continue;
      const Task* const old_task = old == from_.index.end() ? nullptr : before_[old->second].task;
      if (old_task != nullptr && old_task->worker == task->worker) continue;
      is_involved[task->worker] = true;
      if (old_task != nullptr) is_involved[old_task->worker] = true;
    }
    return is_involved;
  }

  void carry() {
    std::map<const Task*, std::vector<const Node*>> counted;
    for (const auto& task : to_.tasks) counted[task.get()].resize(task->nodes.size(), nullptr);
    for (const auto& module : to_.modules) {
      const auto old = from_.index.find(module->name);
      if (old == from_.index.end()) continue;
      carry_state(*from_.modules[old->second], *module);
      const Place& now = after_[module->index];
      const Place& then = before_[old->second];
      if (now.task == nullptr || then.task == nullptr) continue;
      carry_node(old->second, module->index);
      counted[now.task][now.rank] = &then.node();
    }
    carry_inputs();
    collect_leftovers();
    for (const auto& task : to_.tasks) {
      exec::carry_totals(*task->executor, counted.at(task.get()));
      task->leftovers.begin();
    }
  }

 private:
  struct Place {
    Task* task = nullptr;
    uint32_t rank = 0;
    [[nodiscard]] Node& node() const { return task->nodes[rank]; }
  };
  // What waits in a queue, and how much of it is fixed by who fills it.
  using Senders = std::map<std::string, uint32_t>;

  static void carry_state(Module& old, Module& next) {
    next.rng = old.rng;
    next.turn = old.turn;
    next.stamp = old.stamp;
    next.stamps = old.stamps;
    next.siblings = old.siblings;
    next.sibling_turn = old.sibling_turn;
    next.merged_gate = old.merged_gate;
  }

  void carry_node(uint32_t before, uint32_t after) {
    Node& node = after_[after].node();
    Node& old_node = before_[before].node();
    exec::adopt_counts(node, old_node, kReasons);
    auto& held = *old_node.queue;
    if (held.size_pkts == 0) return;
    // States of the same flows have the same numbers; packets carry none where only one can come.
    if (from_.paths->is_static(before) && !to_.paths->is_static(after)) {
      for (uint32_t i = 0; i < held.size_pkts; ++i) held.pkts[i]->path_state = only_state(before);
    }
    after_[after].task->executor->adopt_held(node, held);
  }
  [[nodiscard]] uint16_t only_state(uint32_t module) const {
    const auto& at = from_.paths->states_at(module);
    return at.empty() ? uint16_t{0} : *at.begin();
  }

  // What inputs have brought; of tasks that go on, how often they were polled.
  void carry_inputs() {
    std::map<std::string, const TaskInput*> old_inputs;
    std::map<std::string, const Task*> old_tasks;
    for (const auto& task : from_.tasks) {
      for (const TaskInput& input : task->inputs) old_inputs[input.module->name] = &input;
      for (const uint32_t m : task->modules) old_tasks[from_.modules[m]->name] = task.get();
    }
    std::map<const Task*, bool> is_told;
    for (const auto& task : to_.tasks) {
      for (TaskInput& input : task->inputs) {
        const auto old = old_inputs.find(input.module->name);
        if (old == old_inputs.end()) continue;
        input.batches = old->second->batches;
        input.pkts = old->second->pkts;
      }
      const auto old = old_tasks.find(to_.modules[task->modules.front()]->name);
      if (old == old_tasks.end() || std::exchange(is_told[old->second], true)) continue;
      task->polls = old->second->polls;
    }
    for (const auto& task : from_.tasks) carry_stats(*task);
  }

  // What a task has counted, its worker's first one goes on with; where modules are gone, what they dropped
  // counts with what gates that lead nowhere did.
  void carry_stats(const Task& old) {
    const auto same = [&](const auto& task) { return task->worker == old.worker; };
    const auto found = std::ranges::find_if(to_.tasks, same);
    Task& next = found == to_.tasks.end() ? *to_.tasks.front() : **found;
    exec::ExecutorStats& stats = next.executor->stats();
    const exec::ExecutorStats& had = old.executor->stats();
    stats.runs += had.runs;
    stats.in_pkts += had.in_pkts;
    stats.dropped_pkts += had.dropped_pkts;
    stats.emitted_pkts += had.emitted_pkts;
    stats.clock_reads += had.clock_reads;
    stats.overflow_pkts += had.overflow_pkts;
    for (uint32_t rank = 0; rank < old.nodes.size(); ++rank) {
      const bool is_dead_end = rank == old.modules.size();
      if (!is_dead_end && to_.index.contains(from_.modules[old.modules[rank]]->name)) continue;
      for (uint32_t r = 0; r < kReasons; ++r)
        next.nodes.back().drops[r] += old.nodes[rank].drops[r];
    }
  }

  [[nodiscard]] Senders senders_of(const Graph& graph, const std::vector<Place>& places,
                                   const Queue* queue) const {
    Senders senders;
    for (const Edge& edge : graph.edges) {
      const Module& to = *graph.modules[edge.to];
      if (to.queue != queue) continue;
      senders[graph.modules[edge.from]->name + "/" + std::to_string(to.ring)] =
          places[edge.to].task->worker;
    }
    return senders;
  }

  // Filled from elsewhere than before, or gone.
  [[nodiscard]] bool is_emptied(const Queue& queue) const {
    const auto is_of = [&](const auto& module) { return module->queue == &queue; };
    const auto next = to_.index.find((*std::ranges::find_if(from_.modules, is_of))->name);
    if (next == to_.index.end()) return true;
    const Queue* const next_queue = to_.modules[next->second]->queue;
    return senders_of(from_, before_, &queue) != senders_of(to_, after_, next_queue);
  }

  // Downstream first, as the engine runs them.
  void collect_leftovers() {
    struct Source {
      Queue* queue = nullptr;         // filled from elsewhere, or gone
      std::vector<uint32_t> fillers;  // modules whose buffers go with it
      Task* task = nullptr;           // or: left by an earlier move
      const Node* first = nullptr;    // there
    };
    std::map<std::pair<uint32_t, int>, std::vector<Source>> sources;  // by task, rank from behind
    const auto at = [&](const std::string& name) -> std::vector<Source>* {
      const auto it = to_.index.find(name);
      if (it == to_.index.end() || after_[it->second].task == nullptr) return nullptr;
      const Place& place = after_[it->second];
      return &sources[{place.task->index, -static_cast<int>(place.rank)}];
    };
    const auto add_unfinished = [&](uint32_t module, std::vector<Source>* into) {
      const Place& place = before_[module];
      if (into == nullptr || place.task == nullptr) return;
      if (!place.task->leftovers.has(&place.node())) return;
      into->push_back({.task = place.task, .first = &place.node()});
    };
    for (const auto& module : from_.modules) {
      const bool is_emptied_queue = module->queue != nullptr && is_emptied(*module->queue);
      if (!is_emptied_queue) add_unfinished(module->index, at(module->name));
    }
    // Gone ones first, then those that are filled from elsewhere, as the engine does.
    for (const bool is_gone : {true, false}) {
      for (const auto& [name, m] : from_.index) {
        const Module& module = *from_.modules[m];
        if (module.queue == nullptr || module.ring != 0) continue;
        const auto next = to_.index.find(name);
        if (is_gone != (next == to_.index.end())) continue;
        if (!is_gone) {
          Queue& next_queue = *to_.modules[next->second]->queue;
          if (!is_emptied(*module.queue)) {
            next_queue.take_over(*module.queue);
            continue;
          }
          next_queue.set_credit(module.queue->credit_pkts());
          next_queue.add_lost(module.queue->lost_pkts());
        }
        Source source{.queue = module.queue, .fillers = {}};
        for (const auto& filler : from_.modules) {
          if (is_gone && filler->queue == module.queue) source.fillers.push_back(filler->index);
        }
        const Graph& graph = is_gone ? from_ : to_;
        for (const Edge& edge : graph.edges) {
          if (graph.modules[edge.from]->name != name || edge.gate == exec::kDropGate) continue;
          std::vector<Source>* const into = at(graph.modules[edge.to]->name);
          if (into == nullptr) continue;
          into->push_back(source);
          for (const auto& filler : from_.modules) {
            if (filler->queue == module.queue) add_unfinished(filler->index, into);
          }
        }
      }
    }
    for (auto& [place, all] : sources) {
      const auto task =
          std::ranges::find(to_.tasks, place.first, [](const auto& t) { return t->index; });
      Node& first = (*task)->nodes[static_cast<size_t>(-place.second)];
      (*task)->leftovers.add(first, 0);
      auto& into = (*task)->leftovers.at(&first).pkts;
      for (Source& source : all) {
        if (source.task != nullptr) {
          source.task->leftovers.take(source.first, [&](Packet* pkt) { into.push_back(pkt); });
          continue;
        }
        take_all(*source.queue, source.fillers, into);
      }
    }
  }

  void take_all(Queue& queue, const std::vector<uint32_t>& fillers, std::vector<Packet*>& into) {
    const auto is_of = [&](const auto& module) { return module->queue == &queue; };
    const uint32_t place = (*std::ranges::find_if(from_.modules, is_of))->index;
    const bool was_static = from_.paths->is_static(place) && !from_.paths->states_at(place).empty();
    const auto take = [&](Packet* pkt) {
      if (was_static) pkt->path_state = from_.paths->next(place, 0, only_state(place));
      into.push_back(pkt);
    };
    queue.take_everything(take);
    for (const uint32_t filler : fillers) {
      auto& held = *before_[filler].node().queue;
      for (uint32_t i = 0; i < held.size_pkts; ++i) take(held.pkts[i]);
      held.size_pkts = 0;
    }
  }

  Graph& from_;
  Graph& to_;
  std::vector<Place> before_;  // by module
  std::vector<Place> after_;
};

}  // namespace

// What runs, live edits included.
Spec Simulation::present_spec() const {
  Spec spec = spec_;
  for (const auto& module : graph_->modules) {
    const auto named = std::ranges::find(spec.pipeline.modules, module->name, &ModuleSpec::name);
    if (module->role != Role::kInput) spec.costs[module->name] = module->cost;
    if (module->queue != nullptr) named->params["credit_pkts"] = module->queue->credit_pkts();
  }
  for (const auto& task : graph_->tasks) {
    for (uint32_t rank = 0; rank < task->modules.size(); ++rank) {
      const auto& queue = *task->nodes[rank].queue;
      ModuleSpec& module = spec.pipeline.modules[task->modules[rank]];
      module.trigger_pkts = queue.wanted_trigger_pkts();
      module.age_limit_ns =
          queue.age_limit_ns == spec.pipeline.engine.stranding_limit_ns ? 0 : queue.age_limit_ns;
      const uint32_t unit = task->executor->unit_of(task->nodes[rank]);
      if (unit == 0) continue;
      const uint32_t weight = task->executor->units()->schedule.weight(unit);
      if (weight > 1 || module.weight != 0) module.weight = weight;
    }
  }
  return spec;
}

void Simulation::move(const std::vector<PartMove>& moves) {
  Spec next = present_spec();
  next.pipeline = with_moves(next.pipeline, moves, simulated_kinds());
  auto graph = build_graph(next, pool_, recorder_, graph_.get());
  for (const auto& worker : workers_) {
    for (Task* task : worker->tasks) task->executor->read_clock();
  }
  collect_flows();
  collect_flows();  // both sets of each meter
  stand_still(Swap(*graph_, *graph).involved());
  exec::FlowBook flows(
      static_cast<uint32_t>(graph->flow_names.size() + graph->model.legs.all.size()));
  for (uint32_t f = 0; f < graph->flow_names.size(); ++f) flows.go_on(f, flows_, f, true);
  for (const auto& worker : workers_) {
    sent_before_pkts_ += worker->meter->sent_pkts();
    worker->tasks.clear();
  }
  flows_ = std::move(flows);
  std::swap(graph_, graph);  // the older one lives on until all is carried over
  spec_ = std::move(next);
  attach_tasks();
  Swap(*graph, *graph_).carry();
  estimate_work();
  set_budgets();
  update_recording();
  last_ = cumulative();
  begin_demand();
  ++graph_number_;
}

// Who gives or takes waits for the others, and all for what has to be done.
void Simulation::stand_still(const std::vector<bool>& is_involved) {
  uint64_t ticks = 0;
  for (size_t w = 0; w < workers_.size(); ++w) {
    if (is_involved[w]) ticks = std::max(ticks, workers_[w]->ctx.clock.ticks);
  }
  ticks += spec_.move_ns << kTicksPerNsLog2;
  for (size_t w = 0; w < workers_.size(); ++w) {
    if (is_involved[w]) workers_[w]->ctx.clock.ticks = ticks;
  }
}

}  // namespace batchplane::sim
