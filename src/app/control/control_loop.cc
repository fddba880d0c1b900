// SPDX-License-Identifier: BSD-3-Clause
// control_loop.cc - choosing controllers and stepping them.
#include "app/control/control_loop.h"

#include "base/clock.h"
#include "slo/controllers.h"
#include "slo/model/model.h"
#include "slo/model/settings.h"

namespace batchplane::app {
namespace {

exec::ControlModel model_of(const Engine& engine) {
  exec::ControlModel model = engine.control_model();
  slo::mark_controlled(model);
  return model;
}

slo::Settings settings_for(const ControlChoice& choice, const PipelineSpec& spec,
                           bool is_idle_hold) {
  slo::Settings base;
  base.stranding_limit_ns = spec.engine.stranding_limit_ns;
  base.releases_when_idle = !is_idle_hold;
  return slo::settings_from(choice.settings, base);
}

void check_name(const ControlChoice& choice, const exec::ControlModel& model,
                const slo::Settings& settings) {
  if (choice.name == kNoController) return;
  try {
    (void)slo::make_controller(choice.name, model, settings);
  } catch (const ConfigError& error) {
    throw ConfigError(error.what(), "controller", error.fix() + ", or " + kNoController);
  }
}

}  // namespace

ControlLoop::ControlLoop(Engine& engine) : engine_(engine) { make_model(); }

slo::Settings ControlLoop::settings_of(const ControlChoice& choice) const {
  return settings_for(choice, engine_.graph().spec,
                      engine_.workers().front()->options().is_idle_hold);
}

void ControlLoop::check(const ControlChoice& choice) const {
  const slo::Settings settings = settings_of(choice);
  if (choice.name == kRemoteController) return check_seat(choice.client);
  check_name(choice, model_, settings);
}

void ControlLoop::check(const ControlChoice& choice, const Graph& graph) {
  if (choice.name == kRemoteController) {
    throw ConfigError("a program that decides cannot stand in a pipeline", "controller",
                      "start without it, then batchplane control FILE.py");
  }
  exec::ControlModel model = ControlTap(graph, {}).model();
  slo::mark_controlled(model);
  check_name(choice, model, settings_for(choice, graph.spec, graph.spec.engine.is_idle_hold));
}

void ControlLoop::make_model() {
  controller_ = nullptr;
  model_ = model_of(engine_);
}

void ControlLoop::make_controller() {
  settings_ = settings_of(choice_);
  controller_ = is_remote() ? make_guard() : slo::make_controller(choice_.name, model_, settings_);
  own_ages_.clear();
}

// The best known cost of each module: a former estimate, else a profile, else a default. Modules of one kind and
// task with the same profile are one pool.
void ControlLoop::make_estimator() {
  std::vector<slo::CostEstimator::Prior> costs;
  for (uint32_t m = 0; m < model_.modules.size(); ++m) {
    auto it = priors_.find(model_.modules[m].name);
    const ModuleSpec& module = engine_.graph().spec.modules[m];
    if (it == priors_.end()) it = priors_.find(module.door_of);
    if (it == priors_.end() && !module.leads_to.empty()) it = priors_.find(kAnyInQueue);
    if (it == priors_.end()) {
      costs.push_back({CostLaw(slo::kUnknownCost), {}, slo::kUnknownShape});
    } else {
      costs.push_back({it->second, module.kind + ' ' + std::to_string(model_.modules[m].task)});
    }
  }
  estimator_ = std::make_unique<slo::CostEstimator>(costs);
}

void ControlLoop::remember_originals() {
  originals_.clear();
  touched_.clear();
  const uint64_t stranding_ns = engine_.graph().spec.engine.stranding_limit_ns;
  for (const Instance& instance : engine_.graph().instances) {
    if (instance.node == nullptr) continue;
    const uint64_t age_ns = instance.node->queue->age_limit_ns;
    originals_[instance.name] = {instance.node->queue->wanted_trigger_pkts(),
                                 age_ns == stranding_ns ? exec::kStrandingAge : age_ns,
                                 engine_.weight_of(instance)};
  }
  original_credits_.clear();
  for (const exec::ControlInput& input : model_.inputs) {
    if (input.is_queue) {
      original_credits_.push_back({input.module, engine_.credit_pkts(input.module)});
    }
  }
}

void ControlLoop::restore(bool with_triggers) {
  std::vector<exec::BufferChange> changes;
  for (uint32_t m = 0; m < model_.modules.size(); ++m) {
    const std::string& name = model_.modules[m].name;
    const auto it = originals_.find(name);
    if (!touched_.contains(name) || it == originals_.end()) continue;
    changes.push_back({m, with_triggers ? it->second.trigger_pkts : exec::kKeepTrigger,
                       it->second.age_limit_ns, "switch"});
    if (!model_.modules[m].is_unit) continue;
    changes.back().pace_ns = 0;
    if (with_triggers) changes.back().weight = it->second.weight;
  }
  engine_.change_buffers(changes);
  engine_.change_credits(original_credits_);
  restore_polls();
  restore_stages();
  if (with_triggers) touched_.clear();
}

// A part that has moved may leave its queue behind.
void ControlLoop::restore_polls() {
  std::vector<Engine::PollEdit> edits;
  for (const exec::ControlInput& input : model_.inputs) {
    const auto original = original_polls_.find(model_.modules[input.module].name);
    if (original != original_polls_.end()) edits.push_back({original->first, original->second});
  }
  engine_.change_polls(engine_.poll_changes(edits));
  original_polls_.clear();
}

void ControlLoop::change_polls(const std::vector<exec::PollChange>& changes) {
  for (const exec::PollChange& change : changes) {
    if (change.task >= model_.tasks.size()) continue;  // which the engine refuses
    for (const uint32_t input : model_.tasks[change.task].inputs) {
      original_polls_.emplace(model_.modules[input].name, engine_.poll_pkts(change.task));
    }
  }
  engine_.change_polls(changes);
}

void ControlLoop::restore_stages() {
  std::vector<exec::StageChange> changes;
  for (const exec::ControlInput& input : model_.inputs) {
    const auto original = original_stages_.find(model_.modules[input.module].name);
    if (!input.is_stage || original == original_stages_.end()) continue;
    changes.push_back(original->second);
    changes.back().module = input.module;  // a graph may have been renumbered
  }
  engine_.change_stages(changes);
  original_stages_.clear();
}

void ControlLoop::change_stages(const std::vector<exec::StageChange>& changes) {
  for (const exec::StageChange& change : changes) {
    const exec::StagePeriod& now = *stage_of(change.module);
    original_stages_.emplace(model_.modules[change.module].name,
                             exec::StageChange{change.module, now.batch_pkts, now.age_limit_ns});
  }
  engine_.change_stages(changes);
}

const exec::StagePeriod* ControlLoop::stage_of(uint32_t module) const {
  const size_t i = exec::input_of(model_, module);
  return i < period_.inputs.size() && model_.inputs[i].is_stage ? &period_.inputs[i].stage
                                                                : nullptr;
}

// Counts from before are discarded.
void ControlLoop::begin() {
  skip_period();
  log_.begin(model_.flows.size(), engine_.control_ns());
}

void ControlLoop::skip_period() {
  (void)engine_.period(settings_.percentile);
  history_.clear();
  decision_ = {};
  period_ = {};
}

void ControlLoop::choose(ControlChoice choice) {
  check(choice);
  const bool was_on = is_on();
  if (!was_on) remember_originals();
  if (was_on) restore(choice.name == kNoController);
  for (const auto& [name, cost] : choice.costs) priors_[name] = cost;
  const bool has_costs = !choice.costs.empty();
  if (choice.costs_origin.empty()) choice.costs_origin = choice_.costs_origin;
  if (!choice.hop && !has_costs) choice.hop = choice_.hop;
  choice.costs.clear();  // priors_ has them
  choice_ = std::move(choice);
  controller_ = nullptr;
  seat_ = {.client = choice_.client, .active_ns = TscClock::instance().now_ns()};
  decomposer_.reset();
  if (choice_.name == kNoController) return;
  make_controller();
  decomposer_.emplace(settings_, choice_.hop.value_or(slo::kUsualHop));
  if (estimator_ == nullptr || has_costs) make_estimator();
  begin();
}

void ControlLoop::graph_changed() {
  take_model();
  original_polls_.clear();
  original_stages_.clear();
  if (choice_.name == kNoController) return;
  remember_originals();
  make_controller();
  make_estimator();
  begin();
}

void ControlLoop::parts_moved() {
  std::map<std::string, uint32_t> credits;
  for (const exec::CreditChange& credit : original_credits_) {
    credits[model_.modules[credit.module].name] = credit.credit_pkts;
  }
  const std::map<std::string, Original> originals = std::move(originals_);
  const std::set<std::string> touched = std::move(touched_);
  take_model();
  if (choice_.name == kNoController) return;
  // New queues keep the settings with which they were made.
  remember_originals();
  for (const auto& [name, original] : originals) originals_[name] = original;
  touched_ = touched;
  for (exec::CreditChange& credit : original_credits_) {
    const auto known = credits.find(model_.modules[credit.module].name);
    if (known != credits.end()) credit.credit_pkts = known->second;
  }
  make_controller();
  make_estimator();
  skip_period();
}

// Priors are those of whole pools, which stay together so. How far a module differs is learnt again.
void ControlLoop::take_model() {
  for (uint32_t m = 0; estimator_ != nullptr && m < model_.modules.size(); ++m) {
    priors_[model_.modules[m].name] = estimator_->common_cost(m);
  }
  estimator_ = nullptr;
  ++graph_number_;
  first_of_graph_ = number_ + 1;
  make_model();
}

void ControlLoop::slo_changed(const std::string& flow) {
  for (size_t f = 0; f < log_.flows.size(); ++f) {
    if (model_.flows[f].name != flow) continue;
    log_.flows[f] = {};
    log_.flows[f].is_between = true;
  }
}

void ControlLoop::step(const ControlTap::Gaps& generators) {
  if (!is_on()) return;
  ++log_.steps;
  ++number_;
  try {
    step_once(generators);
  } catch (const std::exception& error) {
    ++log_.failed_steps;
    log_.note_event(period_.now_ns,
                    std::string(error.what()) + ": the last good decision stays in force", number_);
  }
  watch_program(TscClock::instance().now_ns());
}

void ControlLoop::step_once(const ControlTap::Gaps& generators) {
  const TscClock& clock = TscClock::instance();
  const uint64_t begin_ns = clock.now_ns();
  period_ = engine_.period(settings_.percentile);
  log_.note_period(period_, model_, settings_, engine_.period_gaps());
  history_.note(model_, period_, engine_.period_gaps(), generators);
  log_.note_control_ns(engine_.control_ns(), period_.period_ns);
  estimator_->update(period_);
  const uint64_t counted_ns = clock.now_ns();
  exec::Decision decision = controller_->step(period_);
  if (is_remote()) keep_own_ages(decision);
  const uint64_t decided_ns = clock.now_ns();
  engine_.change_buffers(decision.changes);
  engine_.change_credits(decision.credits);
  change_stages(decision.stages);
  change_polls(decision.polls);
  moves_.clear();
  for (const exec::MoveChange& move : decomposer_->step(model_, period_)) {
    moves_.push_back({model_.modules[move.module].name, model_.workers[move.worker]});
    log_.note_event(period_.now_ns,
                    moves_.back().module + " to " + moves_.back().worker + ": " + move.reason,
                    number_);
  }
  last_step_ns_ = clock.now_ns();
  log_.count_times.note(counted_ns - begin_ns);
  // A remote program's time runs from being handed a period to its decision.
  if (!is_remote()) log_.controller_times.note(decided_ns - counted_ns);
  if (!decision.changes.empty()) log_.apply_times.note(last_step_ns_ - decided_ns);
  log_.total_times.note(last_step_ns_ - begin_ns);
  for (const exec::BufferChange& change : decision.changes) {
    touched_.insert(model_.modules[change.module].name);
  }
  log_.note_decision(period_.now_ns, model_, period_, decision);
  decision_ = std::move(decision);
}

}  // namespace batchplane::app
