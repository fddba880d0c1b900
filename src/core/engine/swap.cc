// SPDX-License-Identifier: BSD-3-Clause
#include "core/engine/swap.h"

#include <algorithm>
#include <map>

#include "exec/carry.h"

namespace batchplane {
namespace {

uint32_t position(const Graph& graph, const Instance& instance) {
  return static_cast<uint32_t>(&instance - graph.instances.data());
}

CoreExecutor& executor_of(const Graph& graph, const Instance& instance) {
  return *graph.tasks[instance.task]->executor;
}

}  // namespace

std::string runner_of(const Graph& graph, const Instance& instance) {
  const Task* const task = graph.tasks[instance.task].get();
  return task == nullptr ? "" : task->worker;
}

std::string poller_of(const Graph& graph, const Instance& queue) {
  for (const auto& task : graph.tasks) {
    if (task == nullptr) continue;
    for (const TaskInput& input : task->inputs) {
      if (input.module == queue.module.get()) return task->worker;
    }
  }
  return "";
}

Swap::Swap(Graph& from, Graph& to, const std::vector<std::unique_ptr<Worker>>& workers,
           const std::vector<std::unique_ptr<exec::FlowMeter>>& meters, ControlTap& tap)
    : from_(from),
      to_(to),
      workers_(workers),
      tap_(tap),
      sides_(workers.size()),
      is_involved_(workers.size(), false) {
  translate_states();
  deal_tasks(meters);
  find_pairs();
  find_cut_queues();
  find_unfinished();
  find_gone_queues();
  find_changed_queues();
  make_leftovers();
  find_involved();
}

uint32_t Swap::worker_index(const std::string& name) const {
  const auto it = std::ranges::find_if(
      workers_, [&](const auto& worker) { return worker->options().name == name; });
  return it == workers_.end() ? 0 : static_cast<uint32_t>(it - workers_.begin());
}

const Instance* Swap::forerunner(const Instance& after) const {
  const auto it = from_.index.find(after.name);
  if (it == from_.index.end()) return nullptr;
  const Instance& before = from_.instances[it->second];
  return before.info == after.info ? &before : nullptr;
}

// Maps each state to the new automaton's state for the same flows, by name; otherwise to the empty set.
void Swap::translate_states() {
  std::map<std::vector<std::string>, uint16_t> by_names;
  const auto names_of = [](const Graph& graph, uint16_t state) {
    std::vector<std::string> names;
    for (const uint32_t f : graph.paths->flows_of(state)) names.push_back(graph.flow_names[f]);
    std::ranges::sort(names);
    return names;
  };
  for (uint32_t s = 0; s < to_.paths->n_states(); ++s)
    by_names[names_of(to_, static_cast<uint16_t>(s))] = static_cast<uint16_t>(s);
  const uint16_t nobody = by_names.contains({}) ? by_names[{}] : 0;
  bool is_same = true;
  for (uint32_t s = 0; s < from_.paths->n_states(); ++s) {
    const auto it = by_names.find(names_of(from_, static_cast<uint16_t>(s)));
    states_.push_back(it == by_names.end() ? nobody : it->second);
    is_same = is_same && states_.back() == s;
  }
  if (is_same) states_.clear();
}

void Swap::deal_tasks(const std::vector<std::unique_ptr<exec::FlowMeter>>& meters) {
  for (uint32_t w = 0; w < workers_.size(); ++w) sides_[w].meter = meters[w].get();
  counted_.resize(to_.tasks.size());
  for (uint32_t t = 0; t < to_.tasks.size(); ++t) {
    Task* const task = to_.tasks[t].get();
    if (task == nullptr) continue;
    const uint32_t w = worker_index(task->worker);
    task->attach(workers_[w]->context(), workers_[w]->clock(), *meters[w]);
    sides_[w].tasks.push_back(task);
    counted_[t].resize(task->nodes.size(), nullptr);
  }
}

void Swap::find_pairs() {
  for (const Instance& after : to_.instances) {
    const Instance* const before = forerunner(after);
    if (before == nullptr) continue;
    sides_[worker_index(runner_of(to_, after))].pairs.push_back({before, &after});
    if (after.node != nullptr) counted_[after.task][after.node->rank] = before->node;
  }
  for (Side& side : sides_) {
    std::ranges::stable_sort(side.pairs, {}, [](const Pair& pair) {
      return pair.after->node == nullptr ? 0 : pair.after->node->rank;
    });
  }
}

// A unit's queue may have held more than there is room for when it gets shorter, or its module is none any more.
void Swap::find_cut_queues() {
  for (const Side& side : sides_) {
    for (const auto& [before, after] : side.pairs) {
      if (before->node == nullptr || after->node == nullptr) continue;
      const CoreExecutor& old = executor_of(from_, *before);
      // With backpressure, one batch may bring more than the queue's length.
      const bool may_exceed = old.unit_of(*before->node) != 0 &&
                              old.units()->how.backpressure == exec::Backpressure::kOn;
      const uint32_t most_pkts =
          may_exceed ? before->node->queue->capacity_pkts : old.room_for_held_pkts(*before->node);
      if (most_pkts <= executor_of(to_, *after).room_for_held_pkts(*after->node)) continue;
      orphans_.push_back({.queue = nullptr,
                          .fillers = {},
                          .held_at = before,
                          .first = after,
                          .max_pkts = before->node->queue->capacity_pkts});
    }
  }
}

// Leftovers of an earlier swap that a node of the older graph has not run yet.
void Swap::add_unfinished(const Instance& at, const Instance& first) {
  Task* const task = from_.tasks[at.task].get();
  if (task == nullptr || at.node == nullptr || !task->leftovers.has(at.node)) return;
  orphans_.push_back({.queue = nullptr,
                      .fillers = {},
                      .from_task = task,
                      .from_first = at.node,
                      .first = &first,
                      .max_pkts = task->leftovers.at(at.node).left_pkts()});
}

// They run before packets from queues.
void Swap::find_unfinished() {
  const auto is_refilled = [&](const Instance& at) {
    const auto is_it = [&](const Rewiring::Feeders& change) { return change.queue == at.works_on; };
    return std::ranges::any_of(to_.rewiring.feeders, is_it);
  };
  for (const Instance& at : from_.instances) {
    const auto it = to_.index.find(at.name);
    const bool is_there = it != to_.index.end() && to_.instances[it->second].node != nullptr;
    if (is_there && !is_refilled(at)) add_unfinished(at, to_.instances[it->second]);
  }
}

// Leftovers that were to be put into a queue come after the packets in it.
void Swap::add_unfinished_fillers(const Instance& queue, const Instance& first) {
  for (const Instance& filler : from_.instances) {
    if (filler.works_on == queue.module.get()) add_unfinished(filler, first);
  }
}

// Nodes that fill the queue may be units, which hold packets.
void Swap::add_fillers(Orphans& orphans) const {
  for (const Instance& filler : from_.instances) {
    const bool fills = filler.works_on == orphans.queue->module.get() && filler.node != nullptr;
    if (!fills || to_.index.contains(filler.name)) continue;
    orphans.fillers.push_back(&filler);
    orphans.max_pkts += filler.node->queue->capacity_pkts;
  }
}

void Swap::find_gone_queues() {
  for (const Instance& queue : from_.instances) {
    const std::string& leads_to = from_.spec.modules[position(from_, queue)].leads_to;
    const auto it = to_.index.find(leads_to);
    if (leads_to.empty() || queue.is_door() || to_.index.contains(queue.name)) continue;
    if (it == to_.index.end() || to_.instances[it->second].node == nullptr) continue;
    Orphans orphans{
        .queue = &queue, .is_gone = true, .fillers = {}, .first = &to_.instances[it->second]};
    orphans.max_pkts = queue.module->max_held_pkts();
    add_fillers(orphans);
    orphans_.push_back(std::move(orphans));
    add_unfinished_fillers(queue, to_.instances[it->second]);
  }
}

void Swap::find_changed_queues() {
  for (const Rewiring::Feeders& change : to_.rewiring.feeders) {
    const Instance& queue = from_.at(change.queue->name());
    const auto next = std::ranges::find_if(to_.edges, [&](const LinkedEdge& edge) {
      return to_.instances[edge.from].module.get() == change.queue && edge.gate != kDropGate;
    });
    Orphans orphans{.queue = &queue, .fillers = {}, .first = &to_.instances[next->to]};
    orphans.max_pkts = queue.module->max_held_pkts();
    add_fillers(orphans);
    orphans_.push_back(std::move(orphans));
    add_unfinished_fillers(queue, to_.instances[next->to]);
  }
}

// Downstream first: packets from upstream must not overtake.
void Swap::make_leftovers() {
  std::map<std::pair<uint32_t, int>, uint64_t> max_pkts;  // by task, and rank from behind
  for (const Orphans& orphans : orphans_) {
    max_pkts[{orphans.first->task, -int{orphans.first->node->rank}}] += orphans.max_pkts;
  }
  for (const auto& [place, pkts] : max_pkts) {
    Task& task = *to_.tasks[place.first];
    task.leftovers.add(task.nodes[static_cast<size_t>(-place.second)], pkts);
  }
  for (Orphans& orphans : orphans_) {
    orphans.into = &to_.tasks[orphans.first->task]->leftovers.at(orphans.first->node);
  }
}

void Swap::involve_if_moved(const std::string& before, const std::string& after) {
  if (before == after) return;
  involve(before);
  involve(after);
}

void Swap::find_involved() {
  // With different modules, a module may take over what another worker is still putting in.
  const bool has_others = std::ranges::any_of(sides_, [](const Side& side) {
    return std::ranges::any_of(
        side.pairs, [](const Pair& pair) { return pair.before->module != pair.after->module; });
  });
  if (has_others) {
    is_involved_.assign(sides_.size(), true);
    return;
  }
  for (const Side& side : sides_) {
    for (const auto& [before, after] : side.pairs) {
      involve_if_moved(runner_of(from_, *before), runner_of(to_, *after));
      // A ring has one consumer, also while workers change over one after another.
      involve_if_moved(poller_of(from_, *before), poller_of(to_, *after));
    }
  }
  for (const Orphans& orphans : orphans_) {
    involve(to_.tasks[orphans.first->task]->worker);
    if (orphans.from_task != nullptr) involve(orphans.from_task->worker);
    if (orphans.queue == nullptr) continue;
    involve(poller_of(from_, *orphans.queue));
    for (const Instance* filler : orphans.fillers) involve(runner_of(from_, *filler));
  }
  for (const Rewiring::Feeders& change : to_.rewiring.feeders) {
    for (const Graph* graph : {&from_, &to_}) {
      for (const Instance& filler : graph->instances) {
        if (filler.works_on == change.queue) involve(runner_of(*graph, filler));
      }
    }
  }
}

// --- while the involved workers are stopped -------------------------------------------------------

void Swap::read_clocks(uint32_t worker) {
  for (Task* task : workers_[worker]->tasks()) task->executor->read_clock();
}

void Swap::change_over_together() {
  const auto each_involved = [&](auto use) {
    for (uint32_t w = 0; w < sides_.size(); ++w) {
      if (is_involved_[w]) use(w);
    }
  };
  each_involved([&](uint32_t w) { read_clocks(w); });
  each_involved([&](uint32_t w) {
    for (const Pair& pair : sides_[w].pairs) carry(pair);
  });
  for (Orphans& orphans : orphans_) collect(orphans);
  each_involved([&](uint32_t w) { finish(w); });
}

void Swap::change_over(uint32_t worker) {
  read_clocks(worker);
  for (const Pair& pair : sides_[worker].pairs) carry(pair);
  finish(worker);
}

void Swap::carry(const Pair& pair) {
  if (pair.before->module != pair.after->module) pair.after->module->adopt(*pair.before->module);
  if (pair.before->node == nullptr || pair.after->node == nullptr) return;
  exec::adopt_counts(*pair.after->node, *pair.before->node, drop_reasons().size());
  if (pair.before->node->queue->size_pkts != 0) carry_held(pair);
}

void Swap::carry_held(const Pair& pair) {
  const uint32_t before = position(from_, *pair.before);
  const bool was_static = from_.paths->is_static(before);
  CoreQueue& held = *pair.before->node->queue;
  // Where only one state can arrive, packets carry no state and need none.
  const bool must_write =
      !states_.empty() || (was_static && !to_.paths->is_static(position(to_, *pair.after)));
  const auto& at = from_.paths->states_at(before);
  for (uint32_t i = 0; must_write && i < held.size_pkts; ++i) {
    uint16_t& state = held.pkts[i]->meta().path_state;
    if (was_static) state = at.empty() ? uint16_t{0} : *at.begin();
    if (!states_.empty()) state = states_[state < states_.size() ? state : 0];
  }
  executor_of(to_, *pair.after).adopt_held(*pair.after->node, held);
}

void Swap::collect(Orphans& orphans) {
  const auto take = [&](Packet* pkt) {
    uint16_t& state = pkt->meta().path_state;
    if (!states_.empty()) state = states_[state < states_.size() ? state : 0];
    orphans.into->pkts.push_back(pkt);
  };
  if (orphans.from_task != nullptr) {
    orphans.from_task->leftovers.take(orphans.from_first, take);
    return;
  }
  if (orphans.held_at != nullptr) {  // with their states translated: see carry_held()
    CoreQueue& rest = *orphans.held_at->node->queue;
    orphans.into->pkts.insert(orphans.into->pkts.end(), rest.pkts, rest.pkts + rest.size_pkts);
    rest.size_pkts = 0;
    return;
  }
  const uint32_t queue = position(from_, *orphans.queue);
  const auto& at = from_.paths->states_at(queue);
  const bool was_static = from_.paths->is_static(queue) && !at.empty();
  const uint16_t beyond = was_static ? from_.paths->next(queue, 0, *at.begin()) : uint16_t{0};
  const auto take_out = [&](Packet* pkt) {
    if (was_static) pkt->meta().path_state = beyond;
    take(pkt);
  };
  if (orphans.is_gone) {
    orphans.queue->module->give_up_held(take_out);
  } else {
    orphans.queue->module->switch_feeders(take_out);
  }
  for (const Instance* filler : orphans.fillers) {
    CoreQueue& held = *filler->node->queue;
    for (uint32_t i = 0; i < held.size_pkts; ++i) take_out(held.pkts[i]);
    held.size_pkts = 0;
  }
}

void Swap::finish(uint32_t worker) {
  Side& side = sides_[worker];
  for (const Task* old : workers_[worker]->tasks()) {
    if (side.tasks.empty()) break;
    exec::ExecutorStats& stats = side.tasks.front()->executor->stats();
    stats.runs += old->executor->stats().runs;
    stats.clock_reads += old->executor->stats().clock_reads;
  }
  for (Task* task : side.tasks) {
    exec::carry_totals(*task->executor, counted_[task->index]);
    for (const Rewiring::Flows& flows : to_.rewiring.flows[task->index]) {
      flows.module->set_flows(flows.static_flow, flows.of_state);
    }
    for (const Rewiring::LegEnd& end : to_.rewiring.legs[task->index]) {
      end.queue->set_leg(worker, end.leg);
    }
    task->leftovers.begin();
  }
  workers_[worker]->set_tasks(std::move(side.tasks), side.meter);
  workers_[worker]->set_idle_hold(to_.spec.engine.is_idle_hold);
  tap_.begin_rings(worker);
}

}  // namespace batchplane
