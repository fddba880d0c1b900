// SPDX-License-Identifier: BSD-3-Clause
#include "app/control/placement_loop.h"

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "placement/problem_value.h"

namespace batchplane::app {
namespace {

// Default law of a device, soon replaced by measurements.
const placement::Law kUnknownLaw{true, {1'000, 300, 0.3}};
// Share of the tightest SLO on a module's path: the rest is for queues, other modules, and the loop.
constexpr double kBudgetShare = 0.5;
constexpr double kUnpromisedNs = 1e6;
constexpr double kUsualUtilisation = 0.9;

std::vector<offload::Stage*> stages_of(const Graph& graph) {
  std::vector<offload::Stage*> found;
  for (const Instance& instance : graph.instances) {
    auto* const stage = dynamic_cast<offload::Stage*>(instance.module.get());
    if (stage != nullptr) found.push_back(stage);
  }
  return found;
}

// A worker has other work as well.
double inline_stretch(const PlacementChoice& choice) {
  return kUsualUtilisation / std::max(0.01, choice.inline_share);
}

// What the pipeline says of the device, else its profile, else what was measured at the start. Without any: the
// worker's law plus the hand-over in both directions (bench_offload).
placement::Law law_of(const offload::Stage& stage, const offload::Device& device,
                      const PlacementChoice& choice) {
  constexpr double kHandOverNs = 600;
  constexpr double kHandOverPktNs = 10;
  const BatchLaw* const own = stage.law_on(device);
  const bool is_given = device.options().laws.contains(stage.kind());
  const auto measured = choice.laws.find(stage.kind() + "@" + device.options().name);
  if (!is_given && measured != choice.laws.end()) return measured->second;
  if (own != nullptr) return {true, *own};
  const auto on_worker = choice.laws.find(stage.kind());
  placement::Law law = on_worker == choice.laws.end() ? kUnknownLaw : on_worker->second;
  law.batch = law.batch.plus(kHandOverNs, kHandOverPktNs);
  return law;
}

}  // namespace

void PlacementLoop::choose(const Value& given) {
  const std::unique_ptr<placement::Placer> before = std::move(placer_);
  choice_.reset();
  placer_.reset();
  if (given.is_null()) return;
  PlacementChoice choice = placement_choice_from(given);
  build(choice);
  choice_ = std::move(choice);
  if (placer_ != nullptr && before != nullptr) placer_->learn_from(*before);
}

uint32_t PlacementLoop::device_index(placement::Problem& problem, const offload::Device* device,
                                     double inline_w) {
  const auto known = std::ranges::find(devices_, device);
  if (known != devices_.end()) return static_cast<uint32_t>(known - devices_.begin());
  devices_.push_back(device);
  placement::Device made{.name = offload::kInline};
  if (device == nullptr) {
    made.active_w = inline_w;
  } else {
    const offload::DeviceOptions& options = device->options();
    made = {options.name, options.off_w, options.idle_w, options.active_w, true};
  }
  problem.devices.push_back(made);
  return static_cast<uint32_t>(devices_.size() - 1);
}

double PlacementLoop::budget_of(const std::string& module, const PlacementChoice& choice) const {
  const auto given = choice.apps.find(module);
  if (given != choice.apps.end() && given->second.budget_ns > 0) return given->second.budget_ns;
  const Graph& graph = engine_.graph();
  double least_ns = 0;
  for (size_t f = 0; f < graph.flow_paths.size(); ++f) {
    const std::vector<std::string>& path = graph.flow_paths[f];
    const auto slo_ns = static_cast<double>(graph.spec.flows[f].delay_slo_ns);
    if (slo_ns == 0 || std::ranges::find(path, module) == path.end()) continue;
    const auto n_stages = std::ranges::count_if(path, [&](const std::string& step) {
      return dynamic_cast<const offload::Stage*>(graph.at(step).module.get()) != nullptr;
    });
    const double share_ns = kBudgetShare * slo_ns / static_cast<double>(n_stages);
    least_ns = least_ns == 0 ? share_ns : std::min(least_ns, share_ns);
  }
  return least_ns == 0 ? kUnpromisedNs : least_ns;
}

void PlacementLoop::check(const Value& given, const Graph& graph) {
  if (given.is_null()) return;
  const PlacementChoice choice = placement_choice_from(given);
  const std::vector<offload::Stage*> found = stages_of(graph);
  if (found.size() > placement::kMaxApps) {
    throw ConfigError(
        "placement knows " + std::to_string(placement::kMaxApps) + " modules with devices at most",
        "placement");
  }
  std::set<const offload::Device*> devices;
  for (const offload::Stage* stage : found) {
    for (uint32_t p = 0; p < stage->n_places(); ++p) devices.insert(stage->device_at(p));
  }
  if (devices.size() > placement::kMaxDevices) {
    throw ConfigError("placement knows " + std::to_string(placement::kMaxDevices) +
                          " devices at most, `inline` among them",
                      "placement");
  }
  for (const PlacementChoice::Slowdown& row : choice.slowdown) {
    for (const std::string& name : {row.on, row.on_other}) {
      const auto& declared = graph.spec.devices;
      if (name == offload::kInline ||
          std::ranges::find(declared, name, &DeviceSpec::name) != declared.end())
        continue;
      throw ConfigError("there is no device '" + name + "'", "placement.slowdown",
                        "name one of `devices`, or inline");
    }
  }
  for (const auto& [module, app] : choice.apps) {
    if (std::ranges::any_of(found, [&](const auto* stage) { return stage->name() == module; }))
      continue;
    throw ConfigError("'" + module + "' has no device", "placement.apps." + module,
                      "name a module with `device`");
  }
}

void PlacementLoop::build(const PlacementChoice& choice) {
  placement::Problem problem;
  problem.watt_cap = choice.watt_cap;
  devices_.clear();
  stages_.clear();
  const std::vector<offload::Stage*> found = stages_of(engine_.graph());
  for (offload::Stage* const stage : found) {
    Placed placed{.stage = stage};
    for (uint32_t p = 0; p < stage->n_places(); ++p) {
      placed.device_of_place.push_back(device_index(problem, stage->device_at(p), choice.inline_w));
    }
    stages_.push_back(placed);
  }
  for (Placed& placed : stages_) {
    const std::string& kind = placed.stage->kind();
    placement::App app{.name = placed.stage->name()};
    app.policy = choice.policy;
    app.budget_ns = budget_of(app.name, choice);
    if (const auto own = choice.apps.find(app.name); own != choice.apps.end()) {
      if (own->second.policy) app.policy = *own->second.policy;
      app.value = own->second.value;
    }
    problem.apps.push_back(app);
    std::vector<placement::Law> laws(devices_.size());
    for (const uint32_t d : placed.device_of_place) {
      placement::Law& law = laws[d];
      law = devices_[d] == nullptr ? kUnknownLaw : law_of(*placed.stage, *devices_[d], choice);
      if (devices_[d] == nullptr) {
        if (const auto given = choice.laws.find(kind); given != choice.laws.end())
          law = given->second;
        law.batch = law.batch.times(inline_stretch(choice));
      }
      law.max_batch_pkts = placed.stage->max_batch_pkts();
    }
    problem.laws.push_back(std::move(laws));
    placed.put_pkts = offered_pkts(placed);
  }
  std::vector<std::string> kinds;
  for (const Placed& placed : stages_) kinds.push_back(placed.stage->kind());
  problem.slowdown = slowdown_of(choice, problem, kinds);
  placer_ = problem.apps.empty() ? nullptr : std::make_unique<placement::Placer>(problem);
  last_ns_ = 0;
}

void PlacementLoop::edit(const Value& args) {
  if (!choice_) {
    throw ConfigError("nobody places modules on devices here", "placement",
                      "write placement: {policy: power} into the pipeline");
  }
  PlacementChoice next = *choice_;
  Dict given = args.as_dict();
  given.erase("what");
  const Value module = given.contains("module") ? given["module"] : Value();
  given.erase("module");
  if (module.is_string()) {
    const Dict apps{{module.as_string(), given}};
    const PlacementChoice edited = placement_choice_from(Dict{{"apps", apps}});
    const PlacementChoice::App& app = edited.apps.at(module.as_string());
    PlacementChoice::App& own = next.apps[module.as_string()];
    if (app.policy) own.policy = app.policy;
    if (app.budget_ns > 0) own.budget_ns = app.budget_ns;
    if (given.contains("value")) own.value = app.value;
  } else {
    Dict whole = saved_placement(next).as_dict();
    for (const auto& [key, value] : given) whole[key] = value;
    next = placement_choice_from(whole);
  }
  for (const auto& [name, app] : next.apps) {
    const bool is_known = std::ranges::any_of(
        stages_, [&](const Placed& placed) { return placed.stage->name() == name; });
    if (!is_known) throw ConfigError("'" + name + "' has no device", "module");
  }
  const bool has_other_laws = next.inline_share != choice_->inline_share ||
                              next.inline_w != choice_->inline_w || next.laws != choice_->laws ||
                              next.slowdown != choice_->slowdown;
  // Stages stay as they are until the first period under the new laws has ended.
  if (has_other_laws) return choose(saved_placement(next));
  choice_ = std::move(next);
  is_edited_ = true;
  if (placer_ == nullptr) return;
  placer_->set_watt_cap(choice_->watt_cap);
  for (size_t a = 0; a < stages_.size(); ++a) {
    const std::string& name = stages_[a].stage->name();
    const auto own = choice_->apps.find(name);
    const bool is_own = own != choice_->apps.end() && own->second.policy.has_value();
    placer_->set_policy(a, is_own ? *own->second.policy : choice_->policy);
    placer_->set_budget(a, budget_of(name, *choice_));
    placer_->set_value(a, own == choice_->apps.end() ? 1 : own->second.value);
  }
}

// Packets put in, plus those that found no room or were refused.
uint64_t PlacementLoop::offered_pkts(const Placed& placed) const {
  const offload::StageCounts& counts = placed.stage->counts();
  return placed.stage->taken_pkts() + placed.stage->held_pkts() +
         counts.refused_pkts.load(std::memory_order_relaxed) +
         placed.stage->arrival_counts().lost_pkts;
}

bool PlacementLoop::has_event(uint64_t now_ns) {
  bool has = is_edited_;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const bool is_up = devices_[d] == nullptr || devices_[d]->is_up(now_ns);
    if (is_up == placer_->problem().devices[d].is_up) continue;
    placer_->set_device_up(d, is_up);
    has = true;
  }
  for (const Placed& placed : stages_) {
    // More than half of its queue, and so more than a batch in any configuration.
    has = has || placed.stage->held_pkts() > placed.stage->max_held_pkts() / 2;
  }
  return has;
}

placement::Seen PlacementLoop::see(size_t app, double period_s) {
  Placed& placed = stages_[app];
  placement::Seen seen;
  const offload::StageCounts& counts = placed.stage->counts();
  const auto since = [](const std::atomic<uint64_t>& now, uint64_t& before) {
    const uint64_t value = now.load(std::memory_order_relaxed);
    const auto grown = static_cast<double>(value - std::min(value, before));
    before = value;
    return grown;
  };
  const uint64_t offered = offered_pkts(placed);
  seen.rate_pps = static_cast<double>(offered - std::min(offered, placed.put_pkts)) / period_s;
  placed.put_pkts = offered;
  const double pkts = since(counts.pkts, placed.pkts);
  const double bytes = since(counts.bytes, placed.bytes);
  if (pkts > 0) seen.pkt_bytes = bytes / pkts;
  // Packets in flight within the promised delay do not count as waiting.
  const auto held = static_cast<double>(placed.stage->held_pkts());
  const std::vector<double>& promised_ns = placer_->decision().outcome.delay_ns;
  const double usual = promised_ns.empty() ? held : seen.rate_pps * promised_ns[app] * 1e-9;
  seen.waiting_pkts = std::max(0.0, held - usual);
  for (size_t p = 0; p < placed.device_of_place.size(); ++p) {
    const double jobs = since(counts.done[p].jobs, placed.jobs[p]);
    const double done = since(counts.done[p].pkts, placed.done_pkts[p]);
    const double run_ns = since(counts.done[p].run_ns, placed.run_ns[p]);
    if (jobs == 0) continue;
    const uint32_t d = placed.device_of_place[p];
    const double stretch = devices_[d] == nullptr ? inline_stretch(*choice_) : 1;
    seen.batch_pkts[d] = done / jobs;
    seen.batch_ns[d] = stretch * run_ns / jobs;
    seen.batches_ps[d] = jobs / period_s;
  }
  return seen;
}

void PlacementLoop::put_into_force(const placement::Decision& decision) {
  for (size_t a = 0; a < stages_.size(); ++a) {
    const Placed& placed = stages_[a];
    const placement::Placed& plan = decision.plan[a];
    offload::Placing placing;
    placing.age_limit_ns = decision.age_limit_ns[a];
    const double served = plan.served();
    placing.refused = std::clamp(1 - served, 0.0, 1.0);
    if (placing.refused < 1e-6) placing.refused = 0;
    for (size_t p = 0; p < placed.device_of_place.size(); ++p) {
      const uint32_t d = placed.device_of_place[p];
      placing.share[p] = served > 0 ? plan.share[d] / served : p == 0 ? 1 : 0;
      placing.batch_pkts[p] = std::max(1U, plan.batch_pkts[d]);
    }
    placed.stage->place(placing);
  }
}

void PlacementLoop::step(uint64_t now_ns) {
  if (!choice_ || placer_ == nullptr) return;
  const bool is_event = has_event(now_ns);
  if (last_ns_ == 0) {
    // Rates are known only after a period.
    last_ns_ = now_ns;
    for (size_t a = 0; a < stages_.size(); ++a) (void)see(a, 1);
    return;
  }
  const uint64_t elapsed_ns = now_ns - last_ns_;
  constexpr uint64_t kLeastNs = 10'000'000;
  if (elapsed_ns < choice_->period_ns && (!is_event || elapsed_ns < kLeastNs)) return;
  std::vector<placement::Seen> seen;
  const double elapsed_s = 1e-9 * static_cast<double>(elapsed_ns);
  for (size_t a = 0; a < stages_.size(); ++a) seen.push_back(see(a, elapsed_s));
  const placement::Decision& decision = placer_->step(now_ns, seen);
  put_into_force(decision);
  step_us_ = 1e-3 * static_cast<double>(TscClock::instance().now_ns() - now_ns);
  ++n_steps_;
  n_changes_ += decision.is_changed ? 1 : 0;
  is_edited_ = false;
  last_ns_ = now_ns;
}

Value PlacementLoop::saved() const {
  if (!choice_) return Value();
  Dict saved = saved_placement(*choice_).as_dict();
  saved.erase("laws_origin");  // whoever runs it again gets the origin anew
  return saved;
}

Value PlacementLoop::show() const {
  if (!choice_) return Dict{{"is_on", false}};
  Dict shown{{"is_on", true},
             {"choice", saved_placement(*choice_)},
             {"steps", n_steps_},
             {"changes", n_changes_},
             {"step_us", step_us_}};
  if (placer_ == nullptr || placer_->decision().plan.empty()) return shown;
  const placement::Decision& decision = placer_->decision();
  const placement::Problem& problem = placer_->problem();
  shown["reason"] = decision.reason;
  shown["plan"] = placement::plan_value(problem, decision.plan);
  shown["outcome"] = placement::outcome_value(problem, decision.outcome);
  Dict apps;
  for (size_t a = 0; a < problem.apps.size(); ++a) {
    const placement::App& app = problem.apps[a];
    apps[app.name] = Dict{{"policy", placement::kPolicyNames[static_cast<size_t>(app.policy)]},
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

}  // namespace batchplane::app
