// SPDX-License-Identifier: BSD-3-Clause
// runtime.cc - reports of a running pipeline, and its end.
#include "app/runtime/runtime.h"
#include "app/control/placed_stages.h"

#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "core/engine/thread.h"
#include "spec/config_json.h"
#include "telemetry/telemetry.h"

namespace batchplane::app {
namespace {

constexpr std::chrono::microseconds kTraceEndPoll(200);

}  // namespace

Runtime::Runtime(Parts parts)
    : parts_(std::move(parts)),
      control_(*parts_.engine),
      placement_([this] { return std::make_unique<PlacedStages>(parts_.engine->graph()); },
                 [] { return TscClock::instance().now_ns(); }),
      started_ns_(TscClock::instance().now_ns()) {
  if (!parts_.has_control_thread) return;
  control_thread_ =
      std::make_unique<ControlThread>(on_control_core(true), [this] { step_control(); });
}

Runtime::~Runtime() {
  placement_thread_.reset();
  control_thread_.reset();
  parts_.generators.reset();  // they fill the engine's ports from its pool
}

uint64_t Runtime::uptime_ns() const { return TscClock::instance().now_ns() - started_ns_; }

std::shared_ptr<const Snapshot> Runtime::snapshot(bool with_fine) {
  return parts_.cache.get(TscClock::instance().now_ns(), with_fine,
                          [this](bool fine) { return parts_.engine->snapshot(fine); });
}

Lane::Around Runtime::on_control_core(bool wants_priority) const {
  return [cores = parts_.cores, wants_priority](const std::function<void()>& body) {
    enter_control_core(cores, wants_priority);
    [[maybe_unused]] const PacketThread registered;
    body();
  };
}

Value Runtime::hello() {
  const std::lock_guard lock(locks_.engine);
  return Dict{{"version", 1},
              {"daemon", kDaemonVersion},
              {"name", parts_.name},
              {"pid", static_cast<int64_t>(getpid())},
              {"uptime_ns", uptime_ns()},
              {"pipeline", parts_.engine->graph().spec.name},
              {"facts", parts_.facts}};
}

Value Runtime::save() {
  const std::scoped_lock lock(locks_.tables, locks_.engine);
  PipelineSpec spec = parts_.engine->current_spec();
  spec.generators = parts_.generators->saved();
  spec.controller = saved_choice(control_.choice());
  spec.placement = placement_.saved();
  return spec_to_value(spec);
}

void Runtime::step_control() {
  std::vector<PartMove> moves;
  {
    const std::lock_guard lock(locks_.engine);
    if (is_stopped_) return;
    control_.step(parts_.generators->held_up());
    moves = control_.take_moves();
  }
  if (!moves.empty()) move_by_control(moves);
  const std::lock_guard lock(on_step_mutex_);
  if (on_step_) on_step_();
}

void Runtime::begin_placement(const Value& placement) {
  const std::lock_guard lock(locks_.engine);
  place_by(placement);
}

void Runtime::place_by(const Value& placement) {
  placement_.choose(placement);
  if (!placement_.is_on() || !parts_.has_control_thread) return;
  constexpr uint64_t kLookNs = 10'000'000;
  if (placement_thread_ == nullptr) {
    placement_thread_ =
        std::make_unique<ControlThread>(on_control_core(false), [this] { step_placement(); });
  }
  placement_thread_->set_period(kLookNs);
}

void Runtime::step_placement() {
  const std::lock_guard lock(locks_.engine);
  if (!is_stopped_) placement_.step(TscClock::instance().now_ns());
}

void Runtime::on_step(std::function<void()> told) {
  const std::lock_guard lock(on_step_mutex_);
  on_step_ = std::move(told);
}

Value Runtime::hand_period(uint64_t client, uint64_t after) {
  const std::lock_guard lock(locks_.engine);
  return control_.hand_period(client, after);
}

Value Runtime::decide(uint64_t client, const Value& args) {
  const std::lock_guard lock(locks_.engine);
  return control_.decide(client, args);
}

void Runtime::client_gone(uint64_t client) {
  const std::lock_guard lock(locks_.engine);
  control_.client_gone(client);
}

Value Runtime::explain(const std::string& name) {
  const std::lock_guard lock(locks_.engine);
  return control_.explain(name);
}

void Runtime::require_module(const std::string& module) {
  const std::lock_guard lock(locks_.engine);
  (void)parts_.engine->graph().at(module);
}

Value Runtime::command(const std::string& module, const std::string& verb, const Value& args) {
  const std::lock_guard lock(locks_.tables);
  return parts_.engine->graph().at(module).module->command(verb, args);
}

// Cancels each of several queued traces when its turn comes, until the lock is ours.
std::unique_lock<std::mutex> Runtime::end_traces() {
  std::unique_lock lock(locks_.trace, std::defer_lock);
  while (!lock.try_lock()) {
    parts_.engine->cancel_trace();
    std::this_thread::sleep_for(kTraceEndPoll);
  }
  return lock;
}

Value Runtime::stop() {
  const std::unique_lock trace_lock = end_traces();
  const std::scoped_lock lock(locks_.tables, locks_.engine);
  if (is_stopped_) return final_report();
  is_stopped_ = true;
  if (control_thread_ != nullptr) control_thread_->set_period(0);
  parts_.generators->stop();
  parts_.engine->stop(true);
  parts_.cache.forget();
  return final_report();
}

// Every packet that came in has left, was dropped with a reason, or is still held. Any other packet was lost,
// and packets missing from the pool have leaked.
Value Runtime::final_report() {
  const Graph& graph = parts_.engine->graph();
  const auto now = snapshot(true);
  is_balanced_ = now->balance.is_exact();
  Dict pool{{"size_pkts", parts_.engine->pool()->size_pkts()},
            {"free_pkts", parts_.engine->pool()->available_pkts()}};
  return Dict{{"ran_ns", uptime_ns()},
              {"balance", telemetry::balance_value(now->balance)},
              {"runtime", telemetry::runtime_value(*now, TscClock::instance().cycles_per_ns())},
              {"flows", telemetry::flows_value(*now, graph.flow_paths)},
              {"drops", telemetry::drops_value(*now, drop_reasons())},
              {"slo", control_.show_slo(telemetry::flows_value(*now, graph.flow_paths))},
              {"control", control_.show_control()},
              {"generators", parts_.generators->show()},
              {"pool", std::move(pool)}};
}

}  // namespace batchplane::app
