// SPDX-License-Identifier: BSD-3-Clause
#include "app/control/control_log.h"

#include <algorithm>

#include "base/percentile.h"
#include "exec/percentiles.h"
#include "exec/promise.h"
#include "exec/ring_size.h"

namespace batchplane::app {

void StepTimes::note(uint64_t ns) {
  if (ns_.size() < kKept) {
    ns_.push_back(ns);
    return;
  }
  ns_[next_] = ns;
  next_ = (next_ + 1) % kKept;
}

Value StepTimes::value() const {
  if (ns_.empty()) return {};
  std::vector<uint64_t> sorted = ns_;
  std::ranges::sort(sorted);
  const auto ranked = [&](double p) { return sorted[nearest_rank(sorted.size(), p) - 1]; };
  return Dict{{"median", ranked(0.5)}, {"p99", ranked(0.99)}, {"max", ranked(1)}};
}

namespace {

// The period without that many of its late packets. For the mean, assumes that the removed packets had the
// longest delay.
exec::FlowPeriod without(const exec::FlowPeriod& period, double inside_pkts) {
  exec::FlowPeriod rest = period;
  const auto left_out = std::min(period.late_pkts, static_cast<uint64_t>(inside_pkts));
  rest.pkts -= left_out;
  rest.late_pkts -= left_out;
  rest.delay_sum_ns -= std::min(rest.delay_sum_ns, left_out * period.delay_max_ns);
  return rest;
}

// Upper bound of a flow's packets that one gap in a worker's time may delay: its share of what the gap caught
// in front (exec::caught_pkts), and what its buffers hold.
double inside_pkts(const exec::PeriodSnapshot& period, const exec::ControlModel& model, size_t flow,
                   double gap_ns) {
  uint64_t all_pkts = 0;
  for (const exec::FlowPeriod& each : period.flows) all_pkts += each.pkts;
  double pkts = exec::caught_flow_pkts(exec::largest_ring_pkts(model, period),
                                       period.flows[flow].pkts, all_pkts, period.period_ns, gap_ns);
  for (const uint32_t m : model.flows[flow].path) pkts += period.modules[m].trigger_pkts;
  return pkts;
}

}  // namespace

void CountedDelays::add(const exec::FlowPeriod& period) {
  ++periods;
  pkts += period.pkts;
  late_pkts += period.late_pkts;
  delay_sum_ns += period.delay_sum_ns;
  delay_max_ns = std::max(delay_max_ns, period.delay_max_ns);
  for (uint32_t b = 0; b < exec::SloBuckets::kCount; ++b) slo_buckets[b] += period.slo_buckets[b];
}

Value CountedDelays::percentile_ns(double p, uint64_t slo_ns) const {
  if (!exec::has_percentile(pkts, p)) return {};
  const auto whole_ns = static_cast<double>(slo_ns == 0 ? exec::FlowMeter::kNoSloScaleNs : slo_ns);
  const double ratio = exec::SloBuckets::ratio_above(p * static_cast<double>(pkts), slo_buckets);
  return std::min(ratio * whole_ns, static_cast<double>(delay_max_ns));
}

Kept FlowRecord::add(const exec::FlowPeriod& period, double percentile, uint64_t stall_ns,
                     double inside_pkts) {
  last = period;
  if (is_between) {  // some of its packets were judged by the old SLO
    is_between = false;
    return Kept::kNotJudged;
  }
  if (period.pkts == 0) return Kept::kNotJudged;
  all.add(period);
  const bool is_stalled =
      static_cast<double>(stall_ns) > exec::kMinHole * static_cast<double>(period.slo_ns);
  if (!is_stalled) quiet.add(period);
  if (!exec::is_slo_broken(period, percentile)) return Kept::kYes;
  ++violated_periods;
  if (is_stalled && !exec::is_slo_broken(without(period, inside_pkts), percentile)) {
    ++stalled_periods;
    return Kept::kNo;
  }
  const double slo_ns = static_cast<double>(period.slo_ns);
  excess_ratio_sum += std::max(0.0, static_cast<double>(period.delay_ns) / slo_ns - 1);
  return Kept::kNo;
}

void ControlLog::begin(size_t n_flows, const std::vector<uint64_t>& control_ns) {
  flows.assign(n_flows, {});
  count_times = {};
  any_flow = {};
  controller_times = {};
  apply_times = {};
  total_times = {};
  steps = 0;
  failed_steps = 0;
  first_control_ns_ = control_ns;
  last_control_ns_ = control_ns;
  elapsed_ns_ = 0;
}

void ControlLog::note_period(const exec::PeriodSnapshot& period, const exec::ControlModel& model,
                             const slo::Settings& settings, const ControlTap::Gaps& gaps) {
  constexpr uint64_t kQuietPart = 40;  // half of what p95 allows
  const auto count = static_cast<double>(gaps.count + last_gaps_.count);
  const double gap_ns = static_cast<double>(gaps.ns + last_gaps_.ns) / std::max(1.0, count);
  const uint64_t hole_ns = std::max(gaps.ns, last_gaps_.ns);
  const bool is_quiet = hole_ns * kQuietPart < period.period_ns;
  bool is_late = false;
  for (size_t f = 0; f < flows.size(); ++f) {
    const Kept kept = flows[f].add(period.flows[f], settings.percentile, hole_ns,
                                   count * inside_pkts(period, model, f, gap_ns));
    is_late |= kept == Kept::kNo;
    if (kept == Kept::kNotJudged || !is_quiet) continue;
    ++flows[f].quiet_periods;
    flows[f].delay_sum_ns += period.flows[f].delay_ns;
  }
  ++any_flow.periods;
  any_flow.violated_periods += is_late ? 1 : 0;
  any_flow.quiet_periods += is_quiet ? 1 : 0;
  any_flow.violated_quiet_periods += is_quiet && is_late ? 1 : 0;
  last_gaps_ = gaps;
}

void ControlLog::note_control_ns(const std::vector<uint64_t>& control_ns, uint64_t period_ns) {
  last_control_ns_ = control_ns;
  elapsed_ns_ += period_ns;
}

void ControlLog::keep(KeptDecision& kept, Change change) {
  const auto it =
      std::ranges::find(reasons_, change.module, &std::pair<std::string, std::string>::first);
  if (it != reasons_.end()) {
    it->second = change.reason;
  } else {
    reasons_.emplace_back(change.module, change.reason);
  }
  kept.changes.push_back(std::move(change));
}

void ControlLog::keep_changes(KeptDecision& kept, const exec::ControlModel& model,
                              const exec::PeriodSnapshot& period, const exec::Decision& decision) {
  for (const exec::BufferChange& change : decision.changes) {
    const std::string& name = model.modules[change.module].name;
    const exec::ModulePeriod& before = period.modules[change.module];
    const bool keeps_age = change.age_limit_ns == exec::kKeepAge;
    const bool keeps_trigger = change.trigger_pkts == exec::kKeepTrigger;
    keep(kept, {name, before.trigger_pkts,
                keeps_trigger ? before.trigger_pkts : change.trigger_pkts, before.age_limit_ns,
                keeps_age ? before.age_limit_ns : change.age_limit_ns, change.reason});
  }
  for (const exec::StageChange& change : decision.stages) {
    const exec::StagePeriod& before = period.inputs[exec::input_of(model, change.module)].stage;
    keep(kept, {model.modules[change.module].name, before.batch_pkts, change.batch_pkts,
                before.age_limit_ns, change.age_limit_ns, "device"});
  }
}

void ControlLog::note_decision(uint64_t now_ns, const exec::ControlModel& model,
                               const exec::PeriodSnapshot& period, const exec::Decision& decision) {
  KeptDecision kept{now_ns};
  keep_changes(kept, model, period, decision);
  // A program may repeat credits and polls in every period.
  for (const exec::CreditChange& change : decision.credits) {
    const size_t i = exec::input_of(model, change.module);
    const uint64_t before_pkts = i < period.inputs.size() ? period.inputs[i].credit_pkts : 0;
    if (before_pkts == change.credit_pkts) continue;
    kept.credits.push_back({model.modules[change.module].name, before_pkts, change.credit_pkts});
  }
  for (const exec::PollChange& change : decision.polls) {
    const uint32_t before_pkts = exec::poll_limit_pkts(model, period.tasks[change.task]);
    if (before_pkts == change.poll_pkts) continue;
    std::vector<std::string> inputs;
    for (const uint32_t m : model.tasks[change.task].inputs) {
      inputs.push_back(model.modules[m].name);
    }
    kept.polls.push_back({change.task, std::move(inputs), before_pkts, change.poll_pkts});
  }
  if (kept.changes.empty() && kept.credits.empty() && kept.polls.empty()) return;
  decisions_.push_back(std::move(kept));
  if (decisions_.size() > kDecisionsKept) decisions_.pop_front();
}

// The same error in every period is one event with a count.
void ControlLog::note_event(uint64_t now_ns, const std::string& message, uint64_t period) {
  if (!events_.empty() && events_.back().message == message) {
    events_.back().now_ns = now_ns;
    events_.back().period = period;
    ++events_.back().times;
    return;
  }
  events_.push_back({now_ns, period, 1, message});
  if (events_.size() > kEventsKept) events_.pop_front();
}

Value ControlLog::decisions_value(const std::vector<std::string>& modules) const {
  const auto is_meant = [&](const std::string& module) {
    return modules.empty() || std::ranges::find(modules, module) != modules.end();
  };
  List all;
  for (const KeptDecision& kept : decisions_) {
    List changes;
    for (const Change& change : kept.changes) {
      if (!is_meant(change.module)) continue;
      changes.push_back(Dict{{"module", change.module},
                             {"from_pkts", change.from_pkts},
                             {"to_pkts", change.to_pkts},
                             {"from_age_ns", change.from_age_ns},
                             {"to_age_ns", change.to_age_ns},
                             {"reason", change.reason}});
    }
    List credits;
    for (const CreditSet& change : kept.credits) {
      if (!is_meant(change.module)) continue;
      credits.push_back(Dict{
          {"module", change.module}, {"from_pkts", change.from_pkts}, {"to_pkts", change.to_pkts}});
    }
    List polls;
    for (const PollSet& change : kept.polls) {
      if (std::ranges::none_of(change.inputs, is_meant)) continue;
      polls.push_back(Dict{{"task", change.task},
                           {"inputs", List(change.inputs.begin(), change.inputs.end())},
                           {"from_pkts", change.from_pkts},
                           {"to_pkts", change.to_pkts}});
    }
    if (changes.empty() && credits.empty() && polls.empty()) continue;
    all.push_back(Dict{{"now_ns", kept.now_ns},
                       {"changes", std::move(changes)},
                       {"credits", std::move(credits)},
                       {"polls", std::move(polls)}});
  }
  return all;
}

Value ControlLog::events_value() const {
  List all;
  for (const Event& event : events_) {
    all.push_back(Dict{{"now_ns", event.now_ns},
                       {"period", event.period},
                       {"times", event.times},
                       {"message", event.message}});
  }
  return all;
}

std::string ControlLog::last_reason(const std::string& module) const {
  const auto it = std::ranges::find(reasons_, module, &std::pair<std::string, std::string>::first);
  return it == reasons_.end() ? "" : it->second;
}

// Share of the busiest worker's time; commands from clients count too.
double ControlLog::worker_ratio() const {
  uint64_t max_ns = 0;
  for (size_t w = 0; w < first_control_ns_.size(); ++w) {
    max_ns = std::max(max_ns, last_control_ns_[w] - first_control_ns_[w]);
  }
  return elapsed_ns_ == 0 ? 0 : static_cast<double>(max_ns) / static_cast<double>(elapsed_ns_);
}

}  // namespace batchplane::app
