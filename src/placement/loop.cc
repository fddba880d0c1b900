// SPDX-License-Identifier: BSD-3-Clause
#include "placement/loop.h"

#include <algorithm>

#include "base/error.h"
#include "placement/problem_value.h"

namespace batchplane::placement {
namespace {

// Default law of a device, soon replaced by measurements.
const Law kUnknownLaw{true, {1'000, 300, 0.3}};
// Share of the tightest SLO on a module's path: the rest is for queues, other modules, and the loop.
constexpr double kBudgetShare = 0.5;
constexpr double kUnpromisedNs = 1e6;
constexpr double kUsualUtilisation = 0.9;

// A worker has other work as well.
double inline_stretch(const Choice& choice) {
  return kUsualUtilisation / std::max(0.01, choice.inline_share);
}

bool has_stage(const World& world, const std::string& module) {
  return std::ranges::find(world.stages(), module, &StageInfo::name) != world.stages().end();
}

double grown(uint64_t now, uint64_t before) {
  return static_cast<double>(now - std::min(now, before));
}

}  // namespace

// What the pipeline says of the device, else its profile, else what was measured at the start. Without any: the
// worker's law plus the hand-over in both directions (bench_offload).
Law Loop::law_at(const StageInfo& stage, const StageInfo::Place& place,
                 const Choice& choice) const {
  constexpr double kHandOverNs = 600;
  constexpr double kHandOverPktNs = 10;
  const std::string& device = world_->devices()[place.device].name;
  const auto on_worker = choice.laws.find(stage.kind);
  Law law = on_worker == choice.laws.end() ? kUnknownLaw : on_worker->second;
  if (device == kInline) {
    if (place.given) law.batch = *place.given;
    law.batch = law.batch.times(inline_stretch(choice));
  } else if (const auto profiled = choice.laws.find(stage.kind + "@" + device);
             !place.given && profiled != choice.laws.end()) {
    law = profiled->second;
  } else if (place.given || place.tried) {
    law.batch = place.given ? *place.given : *place.tried;
  } else {
    law.batch = law.batch.plus(kHandOverNs, kHandOverPktNs);
  }
  law.max_batch_pkts = stage.max_batch_pkts;
  return law;
}

void Loop::choose(const Value& given) {
  const std::unique_ptr<Placer> before = std::move(placer_);
  choice_.reset();
  placer_.reset();
  if (given.is_null()) return;
  Choice choice = choice_from(given);
  build(choice);
  choice_ = std::move(choice);
  if (placer_ != nullptr && before != nullptr) placer_->learn_from(*before);
}

double Loop::budget_of(const std::string& module, const Choice& choice) const {
  const auto given = choice.apps.find(module);
  if (given != choice.apps.end() && given->second.budget_ns > 0) return given->second.budget_ns;
  double least_ns = 0;
  for (const FlowPath& flow : world_->flows()) {
    const std::vector<std::string>& path = flow.modules;
    if (flow.delay_slo_ns == 0 || std::ranges::find(path, module) == path.end()) continue;
    const auto n_stages = std::ranges::count_if(
        path, [&](const std::string& step) { return has_stage(*world_, step); });
    const double share_ns =
        kBudgetShare * static_cast<double>(flow.delay_slo_ns) / static_cast<double>(n_stages);
    least_ns = least_ns == 0 ? share_ns : std::min(least_ns, share_ns);
  }
  return least_ns == 0 ? kUnpromisedNs : least_ns;
}

void Loop::check(const Value& given, const World& world, const std::vector<std::string>& declared) {
  if (given.is_null()) return;
  const Choice choice = choice_from(given);
  if (world.stages().size() > kMaxApps) {
    throw ConfigError(
        "placement knows " + std::to_string(kMaxApps) + " modules with devices at most",
        "placement");
  }
  if (world.devices().size() > kMaxDevices) {
    throw ConfigError(
        "placement knows " + std::to_string(kMaxDevices) + " devices at most, `inline` among them",
        "placement");
  }
  for (const Choice::Slowdown& row : choice.slowdown) {
    for (const std::string& name : {row.on, row.on_other}) {
      if (name == kInline || std::ranges::find(declared, name) != declared.end()) continue;
      throw ConfigError("there is no device '" + name + "'", "placement.slowdown",
                        "name one of `devices`, or inline");
    }
  }
  for (const auto& [module, app] : choice.apps) {
    if (has_stage(world, module)) continue;
    throw ConfigError("'" + module + "' has no device", "placement.apps." + module,
                      "name a module with `device`");
  }
}

void Loop::build(const Choice& choice) {
  world_ = make_world_();
  Problem problem;
  problem.watt_cap = choice.watt_cap;
  problem.devices = world_->devices();
  for (Device& device : problem.devices) {
    if (device.name == kInline) device.active_w = choice.inline_w;
  }
  before_.clear();
  std::vector<std::string> kinds;
  for (const StageInfo& stage : world_->stages()) {
    App app{.name = stage.name};
    app.policy = choice.policy;
    app.budget_ns = budget_of(app.name, choice);
    if (const auto own = choice.apps.find(app.name); own != choice.apps.end()) {
      if (own->second.policy) app.policy = *own->second.policy;
      app.value = own->second.value;
    }
    problem.apps.push_back(app);
    std::vector<Law> laws(problem.devices.size());
    for (const StageInfo::Place& place : stage.places)
      laws[place.device] = law_at(stage, place, choice);
    problem.laws.push_back(std::move(laws));
    kinds.push_back(stage.kind);
    before_.push_back(world_->counts(before_.size()));
  }
  problem.slowdown = slowdown_of(choice, problem, kinds);
  placer_ = problem.apps.empty() ? nullptr : std::make_unique<Placer>(problem);
  last_ns_ = 0;
}

void Loop::edit(const Value& args) {
  if (!choice_) {
    throw ConfigError("nobody places modules on devices here", "placement",
                      "write placement: {policy: power} into the pipeline");
  }
  Choice next = edited_choice(*choice_, args);
  for (const auto& [name, app] : next.apps) {
    if (!has_stage(*world_, name)) throw ConfigError("'" + name + "' has no device", "module");
  }
  const bool has_other_laws = next.inline_share != choice_->inline_share ||
                              next.inline_w != choice_->inline_w || next.laws != choice_->laws ||
                              next.slowdown != choice_->slowdown;
  // Stages stay as they are until the first period under the new laws has ended.
  if (has_other_laws) return choose(choice_value(next));
  choice_ = std::move(next);
  is_edited_ = true;
  if (placer_ == nullptr) return;
  placer_->set_watt_cap(choice_->watt_cap);
  for (size_t a = 0; a < world_->stages().size(); ++a) {
    const std::string& name = world_->stages()[a].name;
    const auto own = choice_->apps.find(name);
    const bool is_own = own != choice_->apps.end() && own->second.policy.has_value();
    placer_->set_policy(a, is_own ? *own->second.policy : choice_->policy);
    placer_->set_budget(a, budget_of(name, *choice_));
    placer_->set_value(a, own == choice_->apps.end() ? 1 : own->second.value);
  }
}

bool Loop::has_event(uint64_t now_ns) {
  bool has = is_edited_;
  for (size_t d = 0; d < world_->devices().size(); ++d) {
    const bool is_up = world_->is_up(d, now_ns);
    if (is_up == placer_->problem().devices[d].is_up) continue;
    placer_->set_device_up(d, is_up);
    has = true;
  }
  for (size_t a = 0; a < world_->stages().size() && !has; ++a) {
    const StageCounts now = world_->counts(a);
    // More than half of its queue, and so more than a batch in any configuration.
    has = now.held_pkts > now.max_held_pkts / 2;
  }
  return has;
}

Seen Loop::see(size_t app, double period_s) {
  const StageCounts now = world_->counts(app);
  const StageCounts before = std::exchange(before_[app], now);
  Seen seen;
  seen.rate_pps = grown(now.offered_pkts, before.offered_pkts) / period_s;
  const double pkts = grown(now.pkts, before.pkts);
  if (pkts > 0) seen.pkt_bytes = grown(now.bytes, before.bytes) / pkts;
  // Packets in flight within the promised delay do not count as waiting.
  const auto held = static_cast<double>(now.held_pkts);
  const std::vector<double>& promised_ns = placer_->decision().outcome.delay_ns;
  const double usual = promised_ns.empty() ? held : seen.rate_pps * promised_ns[app] * 1e-9;
  seen.waiting_pkts = std::max(0.0, held - usual);
  const std::vector<StageInfo::Place>& places = world_->stages()[app].places;
  for (size_t p = 0; p < places.size(); ++p) {
    const double jobs = grown(now.done[p].jobs, before.done[p].jobs);
    if (jobs == 0) continue;
    const size_t d = places[p].device;
    const bool is_inline = world_->devices()[d].name == kInline;
    const double run_ns = grown(now.done[p].run_ns, before.done[p].run_ns);
    seen.batch_pkts[d] = grown(now.done[p].pkts, before.done[p].pkts) / jobs;
    seen.batch_ns[d] = (is_inline ? inline_stretch(*choice_) : 1) * run_ns / jobs;
    seen.batches_ps[d] = jobs / period_s;
  }
  return seen;
}

void Loop::put_into_force(const Decision& decision) {
  for (size_t a = 0; a < world_->stages().size(); ++a) {
    const Placed& plan = decision.plan[a];
    const std::vector<StageInfo::Place>& places = world_->stages()[a].places;
    const double served = plan.served();
    Placing placing;
    placing.age_limit_ns = decision.age_limit_ns[a];
    placing.refused = std::clamp(1 - served, 0.0, 1.0);
    if (placing.refused < 1e-6) placing.refused = 0;
    for (size_t p = 0; p < places.size(); ++p) {
      const size_t d = places[p].device;
      placing.share[p] = served > 0 ? plan.share[d] / served : p == 0 ? 1 : 0;
      placing.batch_pkts[p] = std::max(1U, plan.batch_pkts[d]);
    }
    world_->place(a, placing);
  }
}

void Loop::step(uint64_t now_ns) {
  if (!choice_ || placer_ == nullptr) return;
  const bool is_event = has_event(now_ns);
  if (last_ns_ == 0) {
    // Rates are known only after a period.
    last_ns_ = now_ns;
    for (size_t a = 0; a < world_->stages().size(); ++a) (void)see(a, 1);
    return;
  }
  const uint64_t elapsed_ns = now_ns - last_ns_;
  constexpr uint64_t kLeastNs = 10'000'000;
  if (elapsed_ns < choice_->period_ns && (!is_event || elapsed_ns < kLeastNs)) return;
  const uint64_t began_ns = clock_();
  std::vector<Seen> seen;
  const double elapsed_s = 1e-9 * static_cast<double>(elapsed_ns);
  for (size_t a = 0; a < world_->stages().size(); ++a) seen.push_back(see(a, elapsed_s));
  const Decision& decision = placer_->step(now_ns, seen);
  put_into_force(decision);
  step_us_ = 1e-3 * static_cast<double>(clock_() - began_ns);
  ++n_steps_;
  n_changes_ += decision.is_changed ? 1 : 0;
  is_edited_ = false;
  last_ns_ = now_ns;
}

Value Loop::saved() const {
  if (!choice_) return Value();
  Dict saved = choice_value(*choice_).as_dict();
  saved.erase("laws_origin");  // whoever runs it again gets the origin anew
  return saved;
}

Value Loop::show() const {
  if (!choice_) return Dict{{"is_on", false}};
  Dict shown{{"is_on", true},
             {"choice", choice_value(*choice_)},
             {"steps", n_steps_},
             {"changes", n_changes_},
             {"step_us", step_us_}};
  if (placer_ == nullptr || placer_->decision().plan.empty()) return shown;
  const Decision& decision = placer_->decision();
  const Problem& problem = placer_->problem();
  shown["reason"] = decision.reason;
  shown["plan"] = plan_value(problem, decision.plan);
  shown["outcome"] = outcome_value(problem, decision.outcome);
  Dict apps;
  for (size_t a = 0; a < problem.apps.size(); ++a) {
    const App& app = problem.apps[a];
    apps[app.name] = Dict{{"policy", kPolicyNames[static_cast<size_t>(app.policy)]},
                          {"demand_pps", app.rate_pps},
                          {"pkt_bytes", app.pkt_bytes},
                          {"budget_ns", app.budget_ns},
                          {"value", app.value},
                          {"age_limit_ns", decision.age_limit_ns[a]},
                          {"served", decision.plan[a].served()}};
  }
  shown["apps"] = std::move(apps);
  return shown;
}

}  // namespace batchplane::placement
