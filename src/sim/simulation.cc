// SPDX-License-Identifier: BSD-3-Clause
// simulation.cc - the event loop over simulated workers, and edits.
#include "sim/simulation.h"

#include <algorithm>

#include "base/nearest_word.h"

namespace batchplane::sim {

// Whether packets have left since the clock was read last.
static bool has_unbooked(const exec::FlowMeter& meter) {
  return meter.is_nearly_full(exec::FlowMeter::kLogEntries);
}

uint32_t Task::open_inputs(const Context& ctx) const {
  const bool has_room = std::ranges::all_of(backpressuring, [&](const Queue* queue) {
    return queue->room_pkts() >= ctx.batch_limit_pkts;
  });
  return has_room ? static_cast<uint32_t>(inputs.size()) : 0;
}

uint32_t Task::poll_one(uint32_t i, Context& ctx, bool is_sampled) {
  TaskInput& input = inputs[i];
  Packet* pkts[exec::kMaxBatchPkts + 8];
  uint32_t n = 0;
  if (input.source != nullptr) {
    n = input.source->poll(pkts, ctx.batch_limit_pkts, ctx.now_ns);
  } else if (input.queue != nullptr) {
    // What releases of this very loop have put there is there by now, whatever the last reading
    // says.
    n = input.queue->take(pkts, ctx.batch_limit_pkts, ctx.clock.ticks >> kTicksPerNsLog2);
  }
  if (n == 0) return 0;
  input.batches += 1;
  input.pkts += n;
  ++polls;
  if (input.entry_state != exec::PathOp::kKeep) {
    for (uint32_t p = 0; p < n; ++p) pkts[p]->path_state = input.entry_state;
  }
  const bool is_far = input.source != nullptr && !input.source->spec().is_inline;
  ctx.clock.ticks += ctx.loop.poll + (is_far ? ctx.loop.far_poll : 0) + input.module->batch_ticks +
                     (ctx.loop.poll_pkt + input.module->pkt_ticks) * n;
  if (is_far) {
    // The ring has room when its packets have been taken in, not when the poll begins; their data
    // comes over later, as modules touch it.
    input.source->note_room(ctx.clock.ticks >> kTicksPerNsLog2);
    ctx.clock.ticks += ctx.loop.far_pkt * n + ctx.loop.far_early_pkt * std::min(n, kFarEarlyPkts);
  }
  for (uint32_t p = 0; p < n; ++p) pkts[p]->polled_ns = ctx.now_ns;
  uint64_t bound_ns = 0;
  if (executor->has_buffers()) {
    bound_ns = pkts[0]->task_entry_ns;
    for (uint32_t p = 1; p < n; ++p) bound_ns = std::min(bound_ns, pkts[p]->task_entry_ns);
  }
  executor->run(*input.first, {pkts, n, bound_ns}, is_sampled);
  return n;
}

Simulation::Simulation(const Spec& spec)
    : spec_(spec),
      graph_(build_graph(spec, pool_, recorder_)),
      flows_(static_cast<uint32_t>(graph_->flow_names.size())),
      is_idle_hold_(spec.pipeline.engine.is_idle_hold) {
  // The sources have them.
  for (SourceSpec& source : spec_.sources) source.trace = {};
  for (const FlowSpec& flow : spec.pipeline.flows) slo_ns_.push_back(flow.delay_slo_ns);
  make_workers();
  estimate_work();
  set_budgets();
  last_ = cumulative();
}

Simulation::~Simulation() = default;

void Simulation::make_workers() {
  const LoopSpec& loop = spec_.loop;
  const EngineSpec& engine = spec_.pipeline.engine;
  for (uint32_t w = 0; w < graph_->worker_names.size(); ++w) {
    auto worker = std::make_unique<Worker>();
    Context& ctx = worker->ctx;
    ctx.batch_limit_pkts = engine.batch_pkts;
    ctx.pool = &pool_;
    ctx.recorder = &recorder_;
    ctx.clock.read_ticks = to_ticks(loop.clock_read_ns);
    ctx.loop = {.poll = to_ticks(loop.poll_ns),
                .poll_pkt = to_ticks(loop.poll_pkt_ns),
                .far_poll = to_ticks(loop.far.per_batch),
                .far_pkt = to_ticks(loop.far.per_pkt),
                .far_early_pkt = to_ticks(loop.far.early_per_pkt),
                .empty_poll = to_ticks(loop.empty_poll_ns),
                .firing = to_ticks(loop.firing_ns),
                .firing_pkt = to_ticks(loop.firing_pkt_ns),
                .split_branch = to_ticks(loop.split_branch_ns),
                .split_pkt = to_ticks(loop.split_pkt_ns),
                .hop_pkt = to_ticks(loop.hop_pkt_ns),
                .egress_pkt = to_ticks(loop.egress_pkt_ns)};
    ctx.noise_sigma = spec_.noise_sigma;
    ctx.noise = Rng(spec_.seed * 31 + w);
    worker->meter =
        std::make_unique<exec::FlowMeter>(static_cast<uint32_t>(graph_->flow_names.size()));
    for (uint32_t f = 0; f < slo_ns_.size(); ++f) worker->meter->set_slo(f, slo_ns_[f]);
    ctx.meter = worker->meter.get();
    worker->sample = {engine.sample_one_run_in, engine.sample_one_run_in};
    worker->stalls = Stalls(spec_.stalls, spec_.seed * 37 + w);
    workers_.push_back(std::move(worker));
  }
  for (const auto& task : graph_->tasks) {
    Worker& worker = *workers_[task->worker];
    worker.tasks.push_back(task.get());
    task->executor = std::make_unique<Executor>(std::span(task->nodes), worker.ctx,
                                                worker.ctx.clock, *worker.meter);
    if (task->unit_plan != nullptr) task->executor->schedule(*task->unit_plan);
    if (!engine.runs_by_deadline) continue;
    task->executor->run_by_deadline({engine.heavy_ns, kBacklogBatches * engine.batch_pkts});
  }
  for (const auto& worker : workers_) {
    for (Task* task : worker->tasks) task->executor->set_shares_worker(worker->tasks.size() > 1);
  }
}

void Simulation::estimate_work() {
  for (const auto& task : graph_->tasks) {
    for (size_t i = task->nodes.size(); i-- > 0;) {
      Node& node = task->nodes[i];
      const exec::ModuleCost& cost = static_cast<const Module*>(node.module)->cost;
      // Sampled runs of the engine see lines come over where the packet is touched first.
      const bool is_far = std::ranges::any_of(task->inputs, [&](const TaskInput& input) {
        return input.first == &node && input.source != nullptr && !input.source->spec().is_inline;
      });
      const FarCost far = is_far ? spec_.loop.far : FarCost{};
      task->executor->set_work_estimate(
          node,
          cost.cost_per_batch_ns + spec_.loop.sampled_batch_ns + kFarEarlyPkts * far.early_per_pkt,
          cost.cost_per_pkt_ns + far.per_pkt);
    }
  }
}

// A packet's budget in front of a module: the least SLO of the flows that pass there.
void Simulation::set_budgets() {
  if (!spec_.pipeline.engine.runs_by_deadline) return;
  std::vector<uint64_t> budgets_ns(graph_->modules.size(), exec::kNeverNs);
  for (size_t f = 0; f < graph_->flow_paths.size(); ++f) {
    if (slo_ns_[f] == 0) continue;
    for (const std::string& name : graph_->flow_paths[f]) {
      uint64_t& budget_ns = budgets_ns[graph_->at(name)];
      budget_ns = std::min(budget_ns, slo_ns_[f]);
    }
  }
  for (const auto& task : graph_->tasks) {
    for (uint32_t rank = 0; rank < task->modules.size(); ++rank) {
      task->executor->set_budget(task->nodes[rank], budgets_ns[task->modules[rank]]);
    }
  }
}

void Simulation::take_stalls(Worker& worker) {
  while ((worker.ctx.clock.ticks >> kTicksPerNsLog2) >= worker.stalls.next_ns()) {
    const uint64_t length_ns = worker.stalls.take();
    worker.ctx.clock.ticks += length_ns << kTicksPerNsLog2;
    worker.stats.gaps += 1;
    worker.stats.gap_ns += length_ns;
    worker.stats.gap_max_ns = std::max(worker.stats.gap_max_ns, length_ns);
  }
}

// As the engine's worker loops, with the time that an empty poll takes.
uint32_t Simulation::loop_once(Worker& worker) {
  take_stalls(worker);
  Context& ctx = worker.ctx;
  uint32_t polled = 0;
  const uint64_t ticks = ctx.clock.ticks;
  uint64_t first_began_ns = 0;
  for (Task* task : worker.tasks) {
    uint64_t began_ns = 0;
    polled += exec::loop_task(*task, ctx, is_idle_hold_, worker.sample, began_ns);
    if (task == worker.tasks.front()) first_began_ns = began_ns;
  }
  // Nothing was due either, if only the clock was read and nothing left: modules may cost nothing,
  // and what left through them still waits for a reading that ends its delay.
  const bool is_idle = ctx.clock.ticks == ticks + ctx.clock.read_ticks * worker.tasks.size() &&
                       !has_unbooked(*worker.meter);
  if (polled == 0) {
    ctx.clock.ticks += ctx.loop.empty_poll;
    ++worker.idle_polls;
  }
  ++worker.stats.loops;
  note_loop(worker, first_began_ns);
  worker.was_busy = polled != 0 || !is_idle;
  return polled;
}

// A loop that began then ends the one before it.
void Simulation::note_loop(Worker& worker, uint64_t began_ns) {
  const uint64_t elapsed_ns = began_ns - worker.last_loop_ns;
  worker.last_loop_ns = began_ns;
  if (worker.was_busy) {
    worker.stats.busy_ns += elapsed_ns;
    worker.loop_times.note(elapsed_ns);
  } else {
    worker.stats.idle_ns += elapsed_ns;
  }
}

// When something can happen to an idle worker, as far as it depends on itself.
uint64_t Simulation::next_event_ns(const Worker& worker) const {
  uint64_t next_ns = worker.stalls.next_ns();
  for (const Task* task : worker.tasks) {
    next_ns = std::min(next_ns, task->executor->next_release_ns());
    const Executor& executor = *task->executor;
    if (executor.has_changes() || executor.has_ready_units() || executor.has_ready()) return 0;
    if (!is_idle_hold_ && task->executor->held_pkts() != 0) return 0;
    for (const TaskInput& input : task->inputs) {
      if (input.source != nullptr) next_ns = std::min(next_ns, input.source->next_ns());
      if (input.queue != nullptr) next_ns = std::min(next_ns, input.queue->next_ns());
    }
  }
  return next_ns;
}

// Jumps over loops in which nothing can happen, to where the last of them would have ended.
void Simulation::skip_idle(Worker& worker, uint64_t until_ns) {
  uint64_t target_ns = std::min(next_event_ns(worker), until_ns);
  for (const auto& other : workers_) {
    if (other.get() == &worker) continue;
    // An idle one puts nothing into a queue before it has got something itself.
    uint64_t other_ns = other->ctx.clock.ticks >> kTicksPerNsLog2;
    if (!other->was_busy) other_ns = std::max(other_ns, next_event_ns(*other));
    target_ns = std::min(target_ns, other_ns);
  }
  // Each task reads the clock; who reads it last in a loop may be the one that finds something.
  const uint64_t read = worker.ctx.clock.read_ticks * worker.tasks.size();
  const uint64_t step = worker.ctx.loop.empty_poll + read;
  const uint64_t first_read = worker.ctx.clock.ticks + read;
  const uint64_t target_ticks = target_ns << kTicksPerNsLog2;
  if (target_ticks <= first_read) return;
  uint64_t skipped = worker.idle_steps.in(target_ticks - first_read, step);
  // What explicit scheduling remembers of idle turns settles in the second one: that one runs.
  if (skipped != 0 && std::ranges::any_of(worker.tasks, [](const Task* task) {
        return task->executor->is_scheduled();
      })) {
    --skipped;
  }
  if (skipped == 0) return;
  if (worker.was_busy) {
    note_idle_loop(worker);
    --skipped;
  }
  if (skipped == 0) return;
  worker.ctx.clock.ticks += skipped * step;
  // The last of them began one step before.
  note_loop(worker,
            (worker.ctx.clock.ticks - step + worker.ctx.clock.read_ticks) >> kTicksPerNsLog2);
  worker.sample.skip(skipped);
  worker.stats.loops += skipped;
  worker.idle_polls += skipped;
  for (Task* task : worker.tasks) task->executor->stats().clock_reads += skipped;
}

// What a loop that finds nothing leaves behind. The first one after a busy one reads the time at
// which packets of that have left.
void Simulation::note_idle_loop(Worker& worker) {
  for (Task* task : worker.tasks) {
    const uint64_t began_ns = task->executor->read_clock();
    task->executor->note_idle_turn(began_ns);
    if (task == worker.tasks.front()) note_loop(worker, began_ns);
  }
  worker.was_busy = false;
  worker.ctx.clock.ticks += worker.ctx.loop.empty_poll;
  worker.sample.skip(1);
  ++worker.stats.loops;
  ++worker.idle_polls;
}

void Simulation::run_until(uint64_t until_ns) {
  const uint64_t until_ticks = until_ns << kTicksPerNsLog2;
  for (;;) {
    Worker* first = workers_.front().get();
    for (const auto& worker : workers_) {
      if (worker->ctx.clock.ticks < first->ctx.clock.ticks) first = worker.get();
    }
    if (first->ctx.clock.ticks >= until_ticks) break;
    // After a full batch there is most likely another one.
    const bool is_full = loop_once(*first) >= first->ctx.batch_limit_pkts;
    if (skips_idle_ && !is_full) skip_idle(*first, until_ns);
  }
  now_ns_ = std::max(now_ns_, until_ns);
}

// The task that polls there, where it is scheduled explicitly.
Task* Simulation::task_polling(uint32_t module) {
  for (const auto& task : graph_->tasks) {
    for (const TaskInput& input : task->inputs) {
      if (task->unit_plan != nullptr && input.queue == nullptr && input.module->index == module) {
        return task.get();
      }
    }
  }
  return nullptr;
}

Executor& Simulation::executor_of(uint32_t module, Node*& node) {
  for (const auto& task : graph_->tasks) {
    const auto it = std::ranges::find(task->modules, module);
    if (it == task->modules.end()) continue;
    node = &task->nodes[static_cast<size_t>(it - task->modules.begin())];
    return *task->executor;
  }
  throw ConfigError("'" + graph_->modules[module]->name + "' is an input: it has no buffer",
                    "module", "name a module behind it");
}

void Simulation::apply(const exec::Decision& decision) {
  Node* node = nullptr;
  for (const exec::BufferChange& change : decision.changes) {
    if (change.weight > exec::kMostWeight) {
      throw ConfigError("weight " + std::to_string(change.weight) + " is out of range", "decision",
                        "1 to " + std::to_string(exec::kMostWeight));
    }
    if (change.module >= graph_->modules.size()) {
      throw ConfigError("a change names module " + std::to_string(change.module) + " of " +
                            std::to_string(graph_->modules.size()),
                        "decision", "modules are numbered from 0, as the model lists them");
    }
    if (task_polling(change.module) != nullptr) continue;
    const Executor& executor = executor_of(change.module, node);
    if (change.weight != 0 && executor.unit_of(*node) == 0) {
      throw ConfigError("'" + graph_->modules[change.module]->name + "' is no scheduling unit",
                        "decision",
                        "execution: wfq makes units of modules behind splits and merges, and of "
                        "those with a weight or queue_pkts in the pipeline");
    }
    const uint32_t limit = spec_.pipeline.engine.batch_pkts;
    if (change.trigger_pkts != exec::kKeepTrigger && change.trigger_pkts > limit) {
      throw ConfigError("trigger " + std::to_string(change.trigger_pkts) +
                            " is larger than the batch size " + std::to_string(limit),
                        graph_->modules[change.module]->name, "0 to " + std::to_string(limit));
    }
  }
  // Phases taken by buffers that this decision leaves alone count, as in the engine.
  std::map<uint32_t, uint32_t> of_trigger;
  for (const auto& task : graph_->tasks) {
    for (uint32_t rank = 0; rank < task->modules.size(); ++rank) {
      const auto it =
          std::ranges::find(decision.changes, task->modules[rank], &exec::BufferChange::module);
      if (it == decision.changes.end())
        ++of_trigger[task->nodes[rank].queue->wanted_trigger_pkts()];
    }
  }
  for (const exec::BufferChange& change : decision.changes) {
    if (Task* const task = task_polling(change.module)) {
      if (change.weight != 0) {
        task->executor->set_weight(exec::UnitSchedule::kInput, change.weight);
      }
      continue;
    }
    Executor& executor = executor_of(change.module, node);
    exec::apply_to_unit(executor, *node, change);
    if (change.trigger_pkts != exec::kKeepTrigger) {
      executor.set_trigger(*node, change.trigger_pkts,
                           exec::stagger(change.trigger_pkts, of_trigger[change.trigger_pkts]++));
    }
    if (change.age_limit_ns == exec::kKeepAge) continue;
    executor.set_age_limit(*node, change.age_limit_ns == exec::kStrandingAge
                                      ? spec_.pipeline.engine.stranding_limit_ns
                                      : change.age_limit_ns);
  }
  if (!decision.changes.empty()) estimate_work();
}

void Simulation::set_slo(const std::string& flow, uint64_t slo_ns) {
  const auto end = graph_->flow_names.end() - 1;
  const auto it = std::find(graph_->flow_names.begin(), end, flow);
  if (it == end) {
    const std::vector<std::string> known(graph_->flow_names.begin(), end);
    const std::string near = nearest_word(flow, known);
    throw ConfigError("no flow '" + flow + "'", "flow",
                      near.empty() ? "" : "did you mean '" + near + "'?");
  }
  const auto f = static_cast<uint32_t>(it - graph_->flow_names.begin());
  slo_ns_[f] = slo_ns;
  for (const auto& worker : workers_) worker->meter->set_slo(f, slo_ns);
  set_budgets();
}

void Simulation::set_cost(const std::string& module, const ModuleCosts& costs) {
  graph_->modules[graph_->at(module)]->set_cost(costs.law, costs.table_ns);
  estimate_work();
}

uint64_t Simulation::unreplayed_pkts() const {
  uint64_t sum = 0;
  for (const auto& source : graph_->sources) {
    const SourceSpec& spec = source->spec();
    if (spec.trace.time_ns.empty() || spec.is_saturating) continue;
    sum += source->unreplayed_pkts() + source->held_pkts();
  }
  return sum;
}

Source& Simulation::source(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& source : graph_->sources) {
    if (source->spec().name == name) return *source;
    names.push_back(source->spec().name);
  }
  const std::string near = nearest_word(name, names);
  throw ConfigError("no generator '" + name + "'", "generators",
                    near.empty() ? "" : "did you mean '" + near + "'?");
}

void Simulation::stall(uint32_t worker, uint64_t length_ns) {
  Worker& stalled = *workers_.at(worker);
  stalled.ctx.clock.ticks += length_ns << kTicksPerNsLog2;
  stalled.stats.gaps += 1;
  stalled.stats.gap_ns += length_ns;
  stalled.stats.gap_max_ns = std::max(stalled.stats.gap_max_ns, length_ns);
}

uint32_t Simulation::trigger_pkts(uint32_t module) {
  Node* node = nullptr;
  (void)executor_of(module, node);
  return node->queue->wanted_trigger_pkts();
}

void Simulation::update_recording() {
  for (const auto& task : graph_->tasks) task->executor->set_tracing(recorder_.is_on());
}

}  // namespace batchplane::sim
