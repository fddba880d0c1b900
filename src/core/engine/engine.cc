// SPDX-License-Identifier: BSD-3-Clause
// engine.cc - start, stop, live edits and packet trace.
#include "core/engine/engine.h"

#include <algorithm>
#include <chrono>

#include "base/nearest_word.h"
#include "core/engine/capture_order.h"

namespace batchplane {
namespace {
// Per-worker caches of the pool, the burst in hand, free lists, and generators' bursts.
constexpr uint64_t kPktsPerThread = 1024 + 2 * Context::kFreeListPkts;
constexpr uint64_t kGeneratorPkts = 1024;
}  // namespace

Engine::Engine(std::unique_ptr<Graph> graph, std::unique_ptr<PacketPool> pool,
               std::shared_ptr<Quiescence> quiescence)
    : quiescence_(std::move(quiescence)), pool_(std::move(pool)), graph_(std::move(graph)) {
  make_workers();
  meters_ = make_meters(*graph_);
  flow_book_ = make_book(*graph_);
  std::vector<exec::FlowMeter*> meters;
  for (const auto& meter : meters_) meters.push_back(meter.get());
  for (size_t i = 0; i < workers_.size(); ++i) workers_[i]->context().meter = meters[i];
  deal_tasks(*graph_, meters);
  tap_ = std::make_unique<ControlTap>(*graph_, workers_);
  for (uint32_t w = 0; w < workers_.size(); ++w) tap_->begin_rings(w);
  tap_->begin_arrivals();
  capture_order_ = capture_order(*graph_, workers_);
}

Engine::~Engine() { stop(false); }

uint64_t Engine::min_pool_pkts(const Graph& graph) {
  uint64_t rings = 0;
  for (const auto& [name, port] : graph.env->ports) rings += port->max_held_pkts();
  const size_t workers = std::max<size_t>(1, graph.spec.workers.size());
  return graph.max_held_pkts() + rings + workers * kPktsPerThread +
         graph.spec.generators.size() * kGeneratorPkts;
}

void Engine::make_workers() {
  std::vector<WorkerSpec> specs = graph_->spec.workers;
  if (specs.empty()) specs.push_back({graph_->spec.first_worker(), -1});
  const EngineSpec& engine = graph_->spec.engine;
  for (uint16_t i = 0; i < specs.size(); ++i) {
    Worker::Options options{specs[i].name,
                            i,
                            specs[i].core,
                            engine.batch_pkts,
                            engine.sample_one_run_in,
                            engine.is_idle_hold,
                            specs[i].is_shared};
    workers_.push_back(
        std::make_unique<Worker>(std::move(options), pool_.get(), quiescence_.get()));
  }
  std::vector<Worker*> shared;
  for (const auto& worker : workers_) {
    if (worker->options().is_shared) shared.push_back(worker.get());
  }
  for (const auto& worker : workers_) {
    if (!worker->options().is_shared) worker->set_hosted(shared);
  }
}

exec::FlowBook Engine::make_book(const Graph& graph) {
  return exec::FlowBook(static_cast<uint32_t>(graph.flow_names.size() + graph.legs.all.size()));
}

std::vector<std::unique_ptr<exec::FlowMeter>> Engine::make_meters(const Graph& graph) const {
  const auto n_flows = static_cast<uint32_t>(graph.flow_names.size());
  std::vector<std::unique_ptr<exec::FlowMeter>> meters;
  for (size_t i = 0; i < workers_.size(); ++i) {
    meters.push_back(std::make_unique<exec::FlowMeter>(n_flows, graph.legs));
    for (uint32_t f = 0; f < graph.spec.flows.size(); ++f) {
      meters.back()->set_slo(f, graph.spec.flows[f].delay_slo_ns);
    }
  }
  return meters;
}

void Engine::deal_tasks(Graph& graph, const std::vector<exec::FlowMeter*>& meters) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = *workers_[i];
    std::vector<Task*> tasks;
    for (const auto& task : graph.tasks) {
      if (task == nullptr || task->worker != worker.options().name) continue;
      if (task->executor == nullptr) task->attach(worker.context(), worker.clock(), *meters[i]);
      tasks.push_back(task.get());
    }
    worker.set_tasks(std::move(tasks), meters[i]);
  }
}

void Engine::start() {
  for (const auto& worker : workers_) worker->start();
  is_running_ = true;
}

void Engine::stop(bool is_draining) {
  for (const auto& worker : workers_) worker->stop();
  is_running_ = false;
  if (!is_draining) return;
  for (const Instance& instance : graph_->instances) instance.module->begin_drain();
  constexpr uint32_t kDrainLoops = 1000;
  // Packets that one worker hands on may reach a worker that has been drained already, or a full ring.
  constexpr uint32_t kMaxRounds = 100;
  bool any = true;
  for (uint32_t round = 0; any && round < kMaxRounds; ++round) {
    any = false;
    for (const auto& worker : workers_) any |= worker->drain(round == 0 ? kDrainLoops : 0);
  }
}

void Engine::set_idle_hold(bool is_hold) {
  for (const auto& worker : workers_) {
    worker->execute([&worker, is_hold] { worker->set_idle_hold(is_hold); });
  }
  graph_->spec.engine.is_idle_hold = is_hold;
}

void Engine::set_slo(const std::string& flow, uint64_t delay_slo_ns) {
  std::vector<std::string> names;
  for (uint32_t f = 0; f < graph_->spec.flows.size(); ++f) {
    names.push_back(graph_->spec.flows[f].name);
    if (graph_->spec.flows[f].name != flow) continue;
    graph_->spec.flows[f].delay_slo_ns = delay_slo_ns;
    for (const auto& meter : meters_) meter->set_slo(f, delay_slo_ns);
    return;
  }
  const std::string near = nearest_word(flow, names);
  throw ConfigError("no flow '" + flow + "'", "",
                    near.empty() ? "" : "did you mean '" + near + "'?");
}

TraceResult Engine::trace(uint32_t n_pkts, std::function<bool(const uint8_t*, uint32_t)> accepts,
                          uint64_t timeout_ns) {
  const auto n_workers = static_cast<uint32_t>(workers_.size());
  if (n_pkts < 1 || n_pkts > Tracer::kMaxPkts) {
    throw ConfigError("cannot trace " + std::to_string(n_pkts) + " packets at once", "",
                      "1 to 127");
  }
  // Only workers that poll external inputs can tag packets.
  const auto takes_in = [](const std::unique_ptr<Worker>& worker) {
    return std::ranges::any_of(worker->tasks(), [](const Task* task) {
      return std::ranges::any_of(task->inputs,
                                 [](const TaskInput& input) { return !input.is_queue; });
    });
  };
  const auto n_taggers =
      std::max<uint32_t>(1, static_cast<uint32_t>(std::ranges::count_if(workers_, takes_in)));
  const uint32_t share = std::max(1U, n_pkts / n_taggers);
  std::vector<const void*> queues;
  for (const Instance& instance : graph_->instances) {
    if (instance.info->shape == Shape::kQueue) queues.push_back(instance.module.get());
  }
  std::atomic<uint32_t> ended{0};
  std::vector<std::unique_ptr<Tracer>> tracers;
  trace_session_ ^= 0x80;
  uint32_t next_id = 1;
  for (uint32_t i = 0; i < n_workers; ++i) {
    const uint32_t mine =
        takes_in(workers_[i]) && next_id + share <= Tracer::kMaxPkts + 1 ? share : 0;
    const auto first_id = static_cast<uint8_t>(trace_session_ + next_id);
    tracers.push_back(std::make_unique<Tracer>(first_id, mine, n_pkts, accepts, queues, ended));
    next_id += mine;
  }
  const uint32_t n_wanted = next_id - 1;
  const auto switch_to = [&](bool is_on) {
    for (uint32_t i = 0; i < n_workers; ++i) {
      Worker& worker = *workers_[i];
      worker.execute([&] {
        worker.context().tracer = is_on ? tracers[i].get() : nullptr;
        for (Task* task : worker.tasks()) task->executor->set_tracing(is_on);
      });
    }
  };
  is_trace_cancelled_.store(false, std::memory_order_relaxed);
  switch_to(true);
  const auto begin = std::chrono::steady_clock::now();
  while (is_running_ && !is_trace_cancelled_.load(std::memory_order_relaxed) &&
         ended.load(std::memory_order_acquire) < n_wanted &&
         std::chrono::steady_clock::now() - begin < std::chrono::nanoseconds(timeout_ns)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  switch_to(false);
  std::map<uint8_t, TraceResult::Traced> by_id;
  for (const auto& tracer : tracers) {
    for (size_t i = 0; i < tracer->packets().size(); ++i) {
      by_id[static_cast<uint8_t>(tracer->first_id() + i)].packet = tracer->packets()[i];
    }
  }
  for (const auto& tracer : tracers) {
    for (const TraceEvent& event : tracer->events()) {
      const auto it = by_id.find(event.trace_id);
      if (it == by_id.end()) continue;
      it->second.events.push_back({graph_->tasks[event.task]->node_names[event.rank], event});
    }
  }
  TraceResult result;
  for (auto& [id, traced] : by_id) {
    std::ranges::stable_sort(traced.events, {}, [](const auto& e) { return e.event.at_ns; });
    result.packets.push_back(std::move(traced));
  }
  return result;
}

PipelineSpec Engine::current_spec() const {
  PipelineSpec spec = buffered_spec();
  for (ModuleSpec& module : spec.modules) {
    const Instance& instance = graph_->instances[graph_->index.at(module.name)];
    for (auto& [key, value] : instance.module->saved_params()) module.params[key] = value;
  }
  return spec;
}

PipelineSpec Engine::buffered_spec() const {
  PipelineSpec spec = graph_->spec;
  for (ModuleSpec& module : spec.modules) {
    const Instance& instance = graph_->instances[graph_->index.at(module.name)];
    if (instance.node == nullptr) continue;
    const uint32_t weight = weight_of(instance);
    if (weight > 1 || module.weight != 0) module.weight = weight;
    module.trigger_pkts = instance.node->queue->wanted_trigger_pkts();
    const uint64_t limit = instance.node->queue->age_limit_ns;
    module.age_limit_ns = limit == spec.engine.stranding_limit_ns ? 0 : limit;
  }
  for (uint32_t t = 0; t < control_model().tasks.size(); ++t) {
    spec.note_poll_pkts(control_model().tasks[t].inputs, poll_pkts(t));
  }
  return spec;
}

}  // namespace batchplane
