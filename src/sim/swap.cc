// SPDX-License-Identifier: BSD-3-Clause
#include "sim/swap.h"

#include <algorithm>

#include "exec/carry.h"

namespace batchplane::sim {
namespace {

std::vector<Module*> fillers_of(const Graph& graph, const Queue& queue) {
  std::vector<Module*> fillers;
  for (const auto& module : graph.modules) {
    if (module->queue == &queue) fillers.push_back(module.get());
  }
  return fillers;
}

void carry_state(Module& old, Module& next) {
  next.rng = old.rng;
  next.turn = old.turn;
  next.stamp = old.stamp;
  next.stamps = old.stamps;
  next.siblings = old.siblings;
  next.sibling_turn = old.sibling_turn;
  next.merged_gate = old.merged_gate;
  next.pacing.swap(old.pacing);
}

}  // namespace

Swap::Swap(Graph& from, Graph& to) : from_(from), to_(to) {
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

std::vector<bool> Swap::involved() const {
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
  // Removed queues have no place in the new graph, and inputs are no nodes.
  std::map<std::string, uint32_t> pollers;
  for (const auto& task : from_.tasks) {
    for (const TaskInput& input : task->inputs) pollers[input.module->name] = task->worker;
  }
  for (const auto& task : to_.tasks) {
    for (const TaskInput& input : task->inputs) {
      const auto old = pollers.find(input.module->name);
      if (old == pollers.end() || old->second == task->worker) continue;
      is_involved[task->worker] = is_involved[old->second] = true;
    }
  }
  return is_involved;
}

void Swap::carry() {
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
  find_unfinished();
  // Removed queues first, as in the engine.
  find_emptied(true);
  find_emptied(false);
  collect_leftovers();
  for (const auto& task : to_.tasks) {
    exec::carry_totals(*task->executor, counted.at(task.get()));
    task->leftovers.begin();
  }
}

uint16_t Swap::only_state(uint32_t module) const {
  const auto& at = from_.paths->states_at(module);
  return at.empty() ? uint16_t{0} : *at.begin();
}

void Swap::carry_node(uint32_t before, uint32_t after) {
  Node& node = after_[after].node();
  Node& old_node = before_[before].node();
  exec::adopt_counts(node, old_node, kReasons);
  auto& held = *old_node.queue;
  if (held.size_pkts == 0) return;
  // States of the same flows have the same numbers; packets carry no state where only one is
  // possible.
  if (from_.paths->is_static(before) && !to_.paths->is_static(after)) {
    for (uint32_t i = 0; i < held.size_pkts; ++i) held.pkts[i]->path_state = only_state(before);
  }
  after_[after].task->executor->adopt_held(node, held);
  if (held.size_pkts != 0) sources_at(to_.modules[after]->name)->push_back({.held_at = &old_node});
}

// Carries over the counts of inputs and, for tasks that go on, the number of polls.
void Swap::carry_inputs() {
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
      input.drops = old->second->drops;
      input.cost = old->second->cost;
    }
    const auto old = old_tasks.find(to_.modules[task->modules.front()]->name);
    if (old == old_tasks.end() || std::exchange(is_told[old->second], true)) continue;
    task->polls = old->second->polls;
  }
  for (const auto& task : from_.tasks) carry_stats(*task);
}

// The first task of the same worker carries on a task's counts; drops of removed modules count with
// drops at unconnected gates.
void Swap::carry_stats(const Task& old) {
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
    for (uint32_t r = 0; r < kReasons; ++r) next.nodes.back().drops[r] += old.nodes[rank].drops[r];
  }
}

Swap::Senders Swap::senders_of(const Graph& graph, const std::vector<Place>& places,
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

// The queue itself, not one of its doors.
const Module& Swap::first_of(const Queue& queue) const { return *fillers_of(from_, queue).front(); }

bool Swap::is_emptied(const Queue& queue) const {
  const auto next = to_.index.find(first_of(queue).name);
  if (next == to_.index.end()) return true;
  const Queue* const next_queue = to_.modules[next->second]->queue;
  return senders_of(from_, before_, &queue) != senders_of(to_, after_, next_queue);
}

std::vector<Swap::Source>* Swap::sources_at(const std::string& module) {
  const auto it = to_.index.find(module);
  if (it == to_.index.end() || after_[it->second].task == nullptr) return nullptr;
  const Place& place = after_[it->second];
  return &sources_[{place.task->index, -static_cast<int>(place.rank)}];
}

void Swap::add_unfinished(uint32_t module, std::vector<Source>* into) const {
  const Place& place = before_[module];
  if (into == nullptr || place.task == nullptr) return;
  if (!place.task->leftovers.has(&place.node())) return;
  into->push_back({.task = place.task, .first = &place.node()});
}

// Packets yet to be put into a queue follow those already inside: see add_emptied().
void Swap::find_unfinished() {
  for (const auto& module : from_.modules) {
    Queue* const queue = module->queue;
    const bool is_filler = queue != nullptr && queue->stage() == nullptr && is_emptied(*queue);
    if (is_filler) continue;
    // A stage outlives its doors.
    const bool is_gone = queue != nullptr && !to_.index.contains(module->name);
    add_unfinished(module->index, sources_at(is_gone ? first_of(*queue).name : module->name));
  }
}

void Swap::find_emptied(bool is_gone) {
  for (const auto& [name, m] : from_.index) {
    const Module& module = *from_.modules[m];
    if (module.queue == nullptr || module.ring != 0) continue;
    const auto next = to_.index.find(name);
    if (is_gone != (next == to_.index.end())) continue;
    if (is_gone) {
      add_emptied(module, true);
      continue;
    }
    Queue& next_queue = *to_.modules[next->second]->queue;
    if (next_queue.stage() != nullptr && is_emptied(*module.queue)) {
      next_queue.take_over_stage(*module.queue);
      continue;
    }
    if (!is_emptied(*module.queue)) {
      next_queue.take_over(*module.queue);
      continue;
    }
    next_queue.set_credit(module.queue->credit_pkts());
    next_queue.add_lost(module.queue->lost_pkts());
    add_emptied(module, false);
  }
}

void Swap::add_emptied(const Module& module, bool is_gone) {
  Source source{.queue = module.queue, .fillers = {}};
  const std::vector<Module*> fillers = fillers_of(from_, *module.queue);
  for (const Module* filler : fillers) {
    if (!to_.index.contains(filler->name)) source.fillers.push_back(filler->index);
  }
  const Graph& graph = is_gone ? from_ : to_;
  for (const Edge& edge : graph.edges) {
    if (graph.modules[edge.from]->name != module.name || edge.gate == exec::kDropGate) continue;
    std::vector<Source>* const into = sources_at(graph.modules[edge.to]->name);
    if (into == nullptr) continue;
    into->push_back(source);
    for (const Module* filler : fillers) add_unfinished(filler->index, into);
  }
}

// Downstream first, as the engine runs them.
void Swap::collect_leftovers() {
  for (auto& [place, all] : sources_) {
    const auto task =
        std::ranges::find(to_.tasks, place.first, [](const auto& each) { return each->index; });
    Node& first = (*task)->nodes[static_cast<size_t>(-place.second)];
    (*task)->leftovers.add(first, 0);
    auto& into = (*task)->leftovers.at(&first).pkts;
    for (const Source& source : all) {
      if (source.held_at != nullptr) {
        auto& rest = *source.held_at->queue;
        into.insert(into.end(), rest.pkts, rest.pkts + rest.size_pkts);
        rest.size_pkts = 0;
      } else if (source.task == nullptr) {
        take_all(source, into);
      } else {
        source.task->leftovers.take(source.first, [&](Packet* pkt) { into.push_back(pkt); });
      }
    }
  }
}

void Swap::take_all(const Source& source, std::vector<Packet*>& into) {
  const uint32_t queue = first_of(*source.queue).index;
  const bool was_static = from_.paths->is_static(queue) && !from_.paths->states_at(queue).empty();
  const auto take = [&](Packet* pkt) {
    if (was_static) pkt->path_state = from_.paths->next(queue, 0, only_state(queue));
    into.push_back(pkt);
  };
  source.queue->take_everything(take);
  for (const uint32_t filler : source.fillers) {
    auto& held = *before_[filler].node().queue;
    for (uint32_t i = 0; i < held.size_pkts; ++i) take(held.pkts[i]);
    held.size_pkts = 0;
  }
}

}  // namespace batchplane::sim
