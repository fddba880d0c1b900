// SPDX-License-Identifier: BSD-3-Clause
#include "sim/composition.h"

#include <algorithm>
#include <cmath>

namespace batchplane::sim {
namespace {
constexpr double kClockDueNs = 500;  // as in the executor: work until delays are booked

uint64_t whole(double ns) { return static_cast<uint64_t>(std::llround(std::max(0.0, ns))); }
}  // namespace

Composition::Composition(const Spec& spec)
    : spec_(spec), graph_(build_graph(spec_, pool_, recorder_)), nodes_(graph_->modules.size()) {
  lay_out();
  share_polls();
  std::vector<uint32_t> triggers;
  for (const ModuleSpec& module : spec_.pipeline.modules) triggers.push_back(module.trigger_pkts);
  set_triggers(triggers);
  tasks_.resize(graph_->tasks.size());
  run_times_.resize(graph_->worker_names.size());
  worker_ns_.resize(graph_->worker_names.size());
}

void Composition::lay_out() {
  for (uint32_t m = 0; m < nodes_.size(); ++m) {
    nodes_[m].module = graph_->modules[m].get();
    nodes_[m].to.assign(std::max<uint32_t>(1, nodes_[m].module->n_gates), kNowhere);
  }
  for (const Edge& edge : graph_->edges) {
    Node& from = nodes_[edge.from];
    ++nodes_[edge.to].n_inputs;
    if (edge.gate == exec::kDropGate) {
      from.drop_to = edge.to;
      continue;
    }
    if (from.to.size() <= edge.gate) from.to.resize(edge.gate + 1, kNowhere);
    from.to[edge.gate] = edge.to;
  }
  for (const auto& task : graph_->tasks) {
    for (uint32_t rank = 0; rank < task->modules.size(); ++rank) {
      nodes_[task->modules[rank]].rank = rank;
    }
    std::vector<Input>& inputs = inputs_.emplace_back();
    for (const TaskInput& input : task->inputs) {
      const auto* first = static_cast<const Module*>(input.first->module);
      inputs.push_back({input.module->index, first->index, input.source});
    }
  }
}

// The busiest source of each task fills every poll; the others bring what comes in the same time.
void Composition::share_polls() {
  for (std::vector<Input>& inputs : inputs_) {
    const auto rate_of = [](const Source& source) {
      const SourceSpec& spec = source.spec();
      if (!spec.trace.time_ns.empty()) {
        return static_cast<double>(spec.trace.time_ns.size()) * 1e9 /
               static_cast<double>(std::max<uint64_t>(1, spec.trace.time_ns.back()));
      }
      bool any_shares = false;
      double rate_pps = 0;
      for (const TrafficFlow& flow : spec.flows) {
        rate_pps += flow.rate_pps;
        any_shares |= flow.rate_pps <= 0;
      }
      return any_shares ? rate_pps + spec.rate_pps : rate_pps;
    };
    double most_pps = 0;
    bool any_saturates = false;
    for (const Input& input : inputs) {
      if (input.source == nullptr) continue;
      any_saturates |= input.source->spec().is_saturating;
      most_pps = std::max(most_pps, rate_of(*input.source));
    }
    for (Input& input : inputs) {
      if (input.source == nullptr) continue;
      const double part = any_saturates || most_pps <= 0 ? 1 : rate_of(*input.source) / most_pps;
      input.poll_pkts = part * spec_.pipeline.engine.batch_pkts;
    }
  }
}

void Composition::set_triggers(const std::vector<uint32_t>& triggers_pkts) {
  std::map<uint32_t, uint32_t> of_trigger;
  for (uint32_t m = 0; m < nodes_.size(); ++m) {
    if (nodes_[m].count.trigger_pkts == triggers_pkts[m]) ++of_trigger[triggers_pkts[m]];
  }
  for (uint32_t m = 0; m < nodes_.size(); ++m) {
    Node& node = nodes_[m];
    const uint32_t next = std::min(triggers_pkts[m], spec_.pipeline.engine.batch_pkts);
    if (node.count.trigger_pkts == next) continue;
    node.count.trigger_pkts = next;
    node.release_at_pkts = exec::stagger(next, of_trigger[next]++);
    node.held.clear();
  }
}

void Composition::begin() {
  for (Node& node : nodes_) {
    node.count = {.cost = node.module->cost, .trigger_pkts = node.count.trigger_pkts};
  }
  std::ranges::fill(tasks_, exec::TaskPeriod{});
  std::ranges::fill(run_times_, exec::LoopTimes{});
  std::ranges::fill(worker_ns_, 0.0);
  in_pkts_ = 0;
}

exec::PeriodSnapshot Composition::walk(uint32_t polls) {
  begin();
  for (uint32_t i = 0; i < polls; ++i) {
    for (uint32_t t = 0; t < inputs_.size(); ++t) {
      for (Input& input : inputs_[t]) {
        if (input.source != nullptr) poll_source(t, input);
      }
    }
    // What went into rings is polled by the tasks behind before anything else comes.
    for (bool any = true; any;) {
      any = false;
      for (uint32_t t = 0; t < inputs_.size(); ++t) {
        for (Input& input : inputs_[t]) any |= input.source == nullptr && poll_queue(t, input);
      }
    }
  }
  return collect();
}

void Composition::poll_source(uint32_t task, Input& input) {
  input.credit_pkts += input.poll_pkts;
  const auto n = static_cast<uint32_t>(input.credit_pkts);
  if (n == 0) return;
  input.credit_pkts -= n;
  Flows flows;
  for (uint32_t i = 0; i < n; ++i) {
    flows.push_back(input.source->first_flow() + input.source->draw_flow());
  }
  in_pkts_ += n;
  nodes_[input.module].count.batches += 1;
  nodes_[input.module].count.pkts += n;
  run(task, input, flows);
}

bool Composition::poll_queue(uint32_t task, Input& input) {
  Flows& ring = nodes_[input.module].ring;
  if (ring.empty()) return false;
  const auto n = std::min<std::ptrdiff_t>(std::ssize(ring), spec_.pipeline.engine.batch_pkts);
  const Flows flows(ring.begin(), ring.begin() + n);
  ring.erase(ring.begin(), ring.begin() + n);
  run(task, input, flows);
  return true;
}

void Composition::run(uint32_t task, const Input& input, const Flows& flows) {
  const LoopSpec& loop = spec_.loop;
  const auto n = static_cast<double>(flows.size());
  const exec::ModuleCost& cost = nodes_[input.module].module->cost;
  run_ns_ = loop.clock_read_ns + loop.poll_ns + cost.cost_per_batch_ns +
            n * (loop.poll_pkt_ns + cost.cost_per_pkt_ns);
  if (input.source != nullptr && !input.source->spec().is_inline) {
    run_ns_ += loop.far_poll_ns + loop.far_pkt_ns * n;
  }
  unread_ns_ = 0;
  tasks_[task].runs += 1;
  tasks_[task].in_pkts += flows.size();
  deliver(input.first, flows, true);
  while (!ready_.empty()) {
    const uint32_t module = ready_.begin()->second;
    ready_.erase(ready_.begin());
    run_ready(module);
  }
  const uint32_t worker = graph_->tasks[task]->worker;
  worker_ns_[worker] += run_ns_;
  run_times_[worker].note(whole(run_ns_));
}

void Composition::read_clock_if_due() {
  if (unread_ns_ < kClockDueNs) return;
  unread_ns_ = 0;
  run_ns_ += spec_.loop.clock_read_ns;
}

// Packets come to a node: they go through, wait for their turn, or are collected.
void Composition::deliver(uint32_t to, const Flows& flows, bool may_run) {
  if (to == kNowhere || flows.empty()) return;
  Node& node = nodes_[to];
  if (may_run && is_direct(node) && node.held.empty()) {
    execute(node, flows);
    read_clock_if_due();
    return;
  }
  node.held.insert(node.held.end(), flows.begin(), flows.end());
  if (node.count.trigger_pkts == 0) {
    ready_.insert({node.rank, to});
    return;
  }
  node.count.arrived_batches += 1;
  node.count.arrived_pkts += flows.size();
  if (node.held.size() >= node.release_at_pkts) ready_.insert({node.rank, to});
}

void Composition::run_ready(uint32_t module) {
  Node& node = nodes_[module];
  if (node.count.trigger_pkts == 0) {
    Flows held;
    held.swap(node.held);
    const size_t limit = spec_.pipeline.engine.batch_pkts;
    for (size_t done = 0; done < held.size(); done += limit) {
      const auto from = held.begin() + static_cast<std::ptrdiff_t>(done);
      const size_t n = std::min(held.size() - done, limit);
      execute(node, Flows(from, from + static_cast<std::ptrdiff_t>(n)));
      read_clock_if_due();
    }
    return;
  }
  while (node.held.size() >= node.release_at_pkts) {
    const uint32_t n = node.release_at_pkts;
    node.release_at_pkts = node.count.trigger_pkts;
    fire(node, n);
  }
}

void Composition::fire(Node& node, size_t n_pkts) {
  auto& full = node.count.causes[static_cast<uint32_t>(exec::Cause::kFull)];
  full.firings += 1;
  full.pkts += n_pkts;
  run_ns_ += spec_.loop.firing_ns + spec_.loop.firing_pkt_ns * static_cast<double>(n_pkts);
  const auto end = node.held.begin() + static_cast<std::ptrdiff_t>(n_pkts);
  const Flows flows(node.held.begin(), end);
  node.held.erase(node.held.begin(), end);
  execute(node, flows);
  read_clock_if_due();
}

void Composition::charge(Node& node, size_t n_pkts) {
  const auto n = static_cast<double>(n_pkts);
  const exec::ModuleCost& law = node.module->cost;
  const double law_ns = law.cost_per_batch_ns + law.cost_per_pkt_ns * n;
  const auto& table = node.module->table;
  run_ns_ += n_pkts < table.size()
                 ? static_cast<double>(table[n_pkts]) / static_cast<double>(kTicksPerNs)
                 : law_ns;
  unread_ns_ += law_ns;
  node.count.batches += 1;
  node.count.pkts += n_pkts;
}

void Composition::execute(Node& node, Flows flows) {
  charge(node, flows.size());
  const auto n = static_cast<double>(flows.size());
  switch (node.module->role) {
    case Role::kRoute:
    case Role::kInTurn:
    case Role::kRandom:
      return split(node, flows);
    case Role::kPass:
    case Role::kInput:
      return pass_on(node, std::move(flows));
    case Role::kEgress:
      run_ns_ += spec_.loop.egress_pkt_ns * n;
      return;
    case Role::kQueue:
      run_ns_ += spec_.loop.hop_pkt_ns * n;
      node.ring.insert(node.ring.end(), flows.begin(), flows.end());
      return;
    case Role::kDrop:
    case Role::kDeadEnd:
      return;
  }
}

void Composition::pass_on(Node& node, Flows flows) {
  if (node.module->may_drop) drop_ended(node, flows);
  deliver(node.to.front(), flows, true);
}

void Composition::drop_ended(Node& node, Flows& flows) {
  const auto ends = [&](uint32_t flow) {
    return node.module->gate_of_flow[flow] == Module::kDropMark;
  };
  for (const uint32_t flow : flows) {
    if (ends(flow) && node.drop_to != kNowhere) deliver(node.drop_to, {flow}, false);
  }
  node.count.dropped_pkts += static_cast<uint64_t>(std::ranges::count_if(flows, ends));
  std::erase_if(flows, ends);
}

void Composition::split(Node& node, const Flows& all) {
  Flows flows = all;
  if (node.module->may_drop) drop_ended(node, flows);
  std::map<uint32_t, Flows> parts;
  for (const uint32_t flow : flows) parts[gate_of(node, flow)].push_back(flow);
  if (parts.size() > 1 && !node.module->may_drop) {
    run_ns_ += spec_.loop.split_branch_ns * static_cast<double>(parts.size() - 1) +
               spec_.loop.split_pkt_ns * static_cast<double>(flows.size());
  }
  for (const auto& [gate, part] : parts) {
    if (gate < node.to.size()) deliver(node.to[gate], part, true);
  }
}

uint32_t Composition::gate_of(Node& node, uint32_t flow) {
  Module& module = *node.module;
  uint32_t gate = 0;
  if (module.role == Role::kInTurn) {
    gate = module.turn;
    module.turn = static_cast<uint16_t>(module.turn + 1 == module.n_gates ? 0 : module.turn + 1);
  } else if (module.role == Role::kRandom) {
    gate = module.weights != nullptr ? module.weights->pick(module.rng.next())
                                     : module.rng.below(module.n_gates);
  } else {
    gate = module.gate_of_flow[flow];
  }
  // Merged packets also come to places that know no way for their flow.
  const bool is_lost = merged_.module != kNowhere && gate >= node.to.size();
  const bool is_merged = merged_.module == module.index && merged_.gate == gate;
  return is_merged || is_lost ? sibling_of(node, gate) : gate;
}

uint32_t Composition::sibling_of(Node& node, uint32_t gate) {
  for (size_t i = 0; i < node.to.size(); ++i) {
    node.turn = node.turn + 1 < node.to.size() ? node.turn + 1 : 0;
    const bool is_merged = merged_.module == node.module->index && merged_.gate == node.turn;
    if (node.to[node.turn] != kNowhere && !is_merged) return node.turn;
  }
  return gate;
}

exec::PeriodSnapshot Composition::collect() {
  exec::PeriodSnapshot period;
  const double longest_ns = *std::ranges::max_element(worker_ns_);
  period.period_ns = period.now_ns = std::max<uint64_t>(1, whole(longest_ns));
  for (Node& node : nodes_) {
    exec::ModulePeriod& count = node.count;
    if (count.trigger_pkts == 0) {
      count.arrived_batches = count.batches;
      count.arrived_pkts = count.pkts;
    }
    count.held_pkts = static_cast<uint32_t>(node.held.size());
    period.modules.push_back(count);
  }
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const uint32_t worker = graph_->tasks[t]->worker;
    exec::TaskPeriod& task = tasks_[t];
    task.busy_ns = whole(worker_ns_[worker]);
    task.idle_ns = whole(longest_ns - worker_ns_[worker]);
    task.run_p99_ns = run_times_[worker].percentile_ns({}, 0.99);
    task.run_max_ns = run_times_[worker].percentile_ns({}, 1);
    period.tasks.push_back(task);
  }
  return period;
}

}  // namespace batchplane::sim
