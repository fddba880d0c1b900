// SPDX-License-Identifier: BSD-3-Clause
// composition.cc - what a poll brings, what passes for time, and what is counted.
#include "sim/composition.h"

#include <algorithm>
#include <cmath>

namespace batchplane::sim {
namespace {
constexpr double kClockDueNs = 500;  // as in the executor: work until delays are booked
// Packets of the first polls entered before it; meters take no negative times.
constexpr double kStartNs = 1e12;

uint64_t whole(double ns) { return static_cast<uint64_t>(std::llround(std::max(0.0, ns))); }

// What a source offers: rates of flows that have one of their own, and the rate that others share.
double rate_of(const SourceSpec& spec) {
  if (!spec.trace.time_ns.empty()) {
    const auto span_ns = static_cast<double>(std::max<uint64_t>(1, spec.trace.time_ns.back()));
    return static_cast<double>(spec.trace.time_ns.size()) * 1e9 / span_ns;
  }
  bool any_shares = false;
  double rate_pps = 0;
  for (const TrafficFlow& flow : spec.flows) {
    rate_pps += flow.rate_pps;
    any_shares |= flow.rate_pps <= 0;
  }
  return any_shares ? rate_pps + spec.rate_pps : rate_pps;
}

}  // namespace

Composition::Composition(const Spec& spec)
    : spec_(spec),
      graph_(build_graph(spec_, pool_, recorder_)),
      nodes_(graph_->modules.size()),
      workers_(graph_->worker_names.size()),
      tasks_(graph_->tasks.size()),
      book_(static_cast<uint32_t>(graph_->flow_names.size())),
      slo_ns_(graph_->model.flows.size(), 0),
      began_ns_(workers_.size()),
      busy_ns_(workers_.size()) {
  for (Worker& worker : workers_) {
    worker.clock_ns = worker.read_ns = kStartNs;
    worker.meter =
        std::make_unique<exec::FlowMeter>(static_cast<uint32_t>(graph_->flow_names.size()));
  }
  lay_out();
  share_polls();
  for (uint32_t m = 0; m < nodes_.size(); ++m) {
    const ModuleSpec& module = spec_.pipeline.modules[m];
    set_buffer(m, module.trigger_pkts, module.age_limit_ns);
  }
}

void Composition::lay_out() {
  for (uint32_t m = 0; m < nodes_.size(); ++m) {
    nodes_[m].module = graph_->modules[m].get();
    nodes_[m].to.assign(std::max<uint32_t>(1, nodes_[m].module->n_gates), kNowhere);
    nodes_[m].task = graph_->model.modules[m].task;
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
      inputs.push_back(
          {.module = input.module->index, .first = first->index, .source = input.source});
    }
  }
}

// The busiest source of each task fills every poll; the others bring what comes in the same time.
void Composition::share_polls() {
  for (std::vector<Input>& inputs : inputs_) {
    double most_pps = 0;
    bool any_saturates = false;
    for (const Input& input : inputs) {
      if (input.source == nullptr) continue;
      any_saturates |= input.source->spec().is_saturating;
      most_pps = std::max(most_pps, rate_of(input.source->spec()));
    }
    for (Input& input : inputs) {
      if (input.source == nullptr) continue;
      const bool is_full = any_saturates || most_pps <= 0;
      const double part = is_full ? 1 : rate_of(input.source->spec()) / most_pps;
      input.poll_pkts = part * spec_.pipeline.engine.batch_pkts;
    }
  }
}

void Composition::set_slos(const std::vector<uint64_t>& slo_ns) {
  slo_ns_ = slo_ns;
  for (Worker& worker : workers_) {
    for (uint32_t f = 0; f < slo_ns_.size(); ++f) worker.meter->set_slo(f, slo_ns_[f]);
  }
}

// Equal triggers release for the first time at different fills, as in the engine.
void Composition::set_buffer(uint32_t module, uint32_t trigger_pkts, uint64_t age_limit_ns) {
  Node& node = nodes_[module];
  const uint32_t next = std::min(trigger_pkts, spec_.pipeline.engine.batch_pkts);
  const bool is_default = age_limit_ns == exec::kStrandingAge;
  node.age_limit_ns =
      static_cast<double>(is_default ? spec_.pipeline.engine.stranding_limit_ns : age_limit_ns);
  node.count.age_limit_ns = age_limit_ns;
  if (node.count.trigger_pkts == next) return;
  uint32_t others = 0;
  for (const Node& other : nodes_) others += other.count.trigger_pkts == next ? 1 : 0;
  node.count.trigger_pkts = next;
  node.release_at_pkts = node.held.empty() ? exec::stagger(next, others) : next;
  if (!node.held.empty() && node.held.size() >= next) ready_.insert({node.rank, module});
}

void Composition::begin() {
  for (Node& node : nodes_) {
    node.count = {.cost = node.module->cost,
                  .trigger_pkts = node.count.trigger_pkts,
                  .age_limit_ns = node.count.age_limit_ns};
  }
  std::ranges::fill(tasks_, exec::TaskPeriod{});
  for (size_t w = 0; w < workers_.size(); ++w) {
    workers_[w].loops = {};
    busy_ns_[w] = 0;
  }
  in_pkts_ = 0;
}

exec::PeriodSnapshot Composition::period(uint32_t polls, double percentile) {
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
  return collect(percentile);
}

// How long after its beginning a poll of n packets has taken them out of the ring.
double Composition::room_after_ns(const Input& input, uint32_t n) const {
  if (input.source->spec().is_inline) return 0;
  const LoopSpec& loop = spec_.loop;
  const exec::ModuleCost& cost = nodes_[input.module].module->cost;
  return loop.poll_ns + loop.far.per_batch + cost.cost_per_batch_ns +
         n * (loop.poll_pkt_ns + cost.cost_per_pkt_ns);
}

// The ring is full: what is polled came into it when a poll made room, a ring's length ago.
void Composition::poll_source(uint32_t task, Input& input) {
  start_loop(task);
  input.credit_pkts += input.poll_pkts;
  const auto n = static_cast<uint32_t>(input.credit_pkts);
  if (n == 0) return;
  input.credit_pkts -= n;
  const SourceSpec& source = input.source->spec();
  const bool is_full = input.poll_pkts >= spec_.pipeline.engine.batch_pkts;
  const size_t polls_before = source.is_inline ? 0
                              : is_full        ? std::max<size_t>(1, source.ring_pkts / n)
                                               : 1;
  input.room_ns.push_back(worker_->read_ns + room_after_ns(input, n));
  while (input.room_ns.size() > polls_before + 1) input.room_ns.pop_front();
  Pkts pkts(n);
  for (Pkt& pkt : pkts) {
    pkt.flow = input.source->first_flow() + input.source->draw_flow();
    pkt.path_state = graph_->paths->entry_state(input.module);
    pkt.entry_ns = input.room_ns.front();
  }
  in_pkts_ += n;
  nodes_[input.module].count.batches += 1;
  nodes_[input.module].count.pkts += n;
  run(task, input, std::move(pkts));
}

bool Composition::poll_queue(uint32_t task, Input& input) {
  Pkts& ring = nodes_[input.module].ring;
  if (ring.empty()) return false;
  start_loop(task);
  const auto n = std::min<std::ptrdiff_t>(std::ssize(ring), spec_.pipeline.engine.batch_pkts);
  Pkts pkts(ring.begin(), ring.begin() + n);
  ring.erase(ring.begin(), ring.begin() + n);
  for (Pkt& pkt : pkts) pkt.entry_ns = worker_->read_ns;
  run(task, input, std::move(pkts));
  return true;
}

void Composition::start_loop(uint32_t task) {
  const uint32_t w = graph_->tasks[task]->worker;
  worker_ = &workers_[w];
  began_ns_[w] = worker_->clock_ns;
  read_clock();
  drain();
  fire_expired(task);
}

void Composition::run(uint32_t task, const Input& input, Pkts pkts) {
  const LoopSpec& loop = spec_.loop;
  const auto n = static_cast<double>(pkts.size());
  const exec::ModuleCost& cost = nodes_[input.module].module->cost;
  worker_->clock_ns += loop.poll_ns + cost.cost_per_batch_ns;
  worker_->clock_ns += n * (loop.poll_pkt_ns + cost.cost_per_pkt_ns);
  if (input.source != nullptr && !input.source->spec().is_inline) {
    worker_->clock_ns += loop.far.at(n);
  }
  tasks_[task].runs += 1;
  tasks_[task].in_pkts += pkts.size();
  deliver(input.module, 0, std::move(pkts), true);
  drain();
  const uint32_t w = graph_->tasks[task]->worker;
  busy_ns_[w] += worker_->clock_ns - began_ns_[w];
  worker_->loops.note(whole(worker_->clock_ns - began_ns_[w]));
}

void Composition::read_clock() {
  worker_->clock_ns += spec_.loop.clock_read_ns;
  worker_->read_ns = worker_->clock_ns;
  worker_->unread_ns = 0;
  worker_->meter->flush(whole(worker_->read_ns));
}

void Composition::read_clock_if_due() {
  if (worker_->unread_ns >= kClockDueNs) read_clock();
}

exec::PeriodSnapshot Composition::collect(double percentile) {
  exec::PeriodSnapshot period;
  const double longest_ns = *std::ranges::max_element(busy_ns_);
  period.period_ns = std::max<uint64_t>(1, whole(longest_ns));
  period.now_ns = whole(workers_.front().clock_ns - kStartNs);
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
    const uint32_t w = graph_->tasks[t]->worker;
    exec::TaskPeriod task = tasks_[t];
    task.busy_ns = whole(busy_ns_[w]);
    task.idle_ns = whole(longest_ns - busy_ns_[w]);
    task.run_p99_ns = workers_[w].loops.percentile_ns({}, 0.99);
    task.run_max_ns = workers_[w].loops.percentile_ns({}, 1);
    period.tasks.push_back(task);
  }
  for (Worker& worker : workers_) {
    worker.meter->flush(whole(worker.clock_ns));
    worker.meter->switch_epoch();
    book_.collect(*worker.meter);
  }
  for (uint32_t f = 0; f < slo_ns_.size(); ++f) {
    period.flows.push_back(book_.take_period(f, slo_ns_[f], percentile));
  }
  return period;
}

}  // namespace batchplane::sim
