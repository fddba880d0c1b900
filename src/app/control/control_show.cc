// SPDX-License-Identifier: BSD-3-Clause
// control_show.cc - reports of the control loop: SLOs and how they are met, and the reason for each trigger.
#include <algorithm>
#include <cmath>

#include "app/control/control_loop.h"
#include "base/cost_law_value.h"
#include "base/nearest_word.h"
#include "exec/percentiles.h"
#include "exec/promise.h"
#include "slo/model/model.h"
#include "telemetry/explanation.h"

namespace batchplane::app {
namespace {

// A cost that has changed by this factor, up or down, is reported as drifted.
constexpr double kDriftRatio = 1.5;

const Value& row_of(const Value& rows, const char* key, const std::string& name) {
  static const Value kNone;
  if (!rows.is_list()) return kNone;
  for (const Value& row : rows.as_list()) {
    if (row[key].is_string() && row[key].as_string() == name) return row;
  }
  return kNone;
}

Value ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? Value() : Value(static_cast<double>(part) / static_cast<double>(whole));
}

const char* state_of(uint64_t slo_ns, const exec::FlowPeriod& flow, double percentile) {
  if (slo_ns == 0) return "no_slo";
  return exec::is_slo_broken(flow, percentile) ? "violating" : "met";
}

Value last_value(const exec::FlowPeriod& last) {
  if (last.pkts == 0) return {};
  return Dict{{"pkts", last.pkts},
              {"late_pkts", last.late_pkts},
              {"p50_ns", exec::has_percentile(last.pkts, 0.5) ? Value(last.p50_ns) : Value()},
              {"p99_ns", exec::has_percentile(last.pkts, 0.99) ? Value(last.p99_ns) : Value()},
              {"delay_max_ns", last.delay_max_ns}};
}

Value counted_value(const CountedDelays& counted, uint64_t violated_periods, uint64_t slo_ns) {
  return Dict{{"periods", counted.periods},
              {"violated_periods", violated_periods},
              {"pkts", counted.pkts},
              {"late_pkts", counted.late_pkts},
              {"p50_ns", counted.percentile_ns(0.5, slo_ns)},
              {"p95_ns", counted.percentile_ns(0.95, slo_ns)},
              {"p99_ns", counted.percentile_ns(0.99, slo_ns)},
              {"delay_max_ns", counted.delay_max_ns}};
}

// Since the controller was chosen or the SLO changed.
void show_record(const FlowRecord& record, uint64_t slo_ns, double percentile, Dict& row) {
  row["pkts"] = record.all.pkts;
  row["late_pkts"] = record.all.late_pkts;
  row["late_ratio"] = ratio(record.all.late_pkts, record.all.pkts);
  row["delay_max_ns"] = record.all.delay_max_ns;
  row["p50_ns"] = record.all.percentile_ns(0.5, slo_ns);
  row["p99_ns"] = record.all.percentile_ns(0.99, slo_ns);
  row["periods"] = record.all.periods;
  row["violated_periods"] = record.violated_periods;
  row["stalled_periods"] = record.stalled_periods;
  const uint64_t unexcused = record.violated_periods - record.stalled_periods;
  row["excess_ratio"] =
      unexcused == 0 ? Value() : Value(record.excess_ratio_sum / static_cast<double>(unexcused));
  row["last"] = last_value(record.last);
  const uint64_t violated = record.violated_periods;
  row["counted"] = counted_value(record.all, violated, slo_ns);
  row["undisturbed"] = counted_value(record.quiet, violated - record.stalled_periods, slo_ns);
  row["quiet_periods"] = record.quiet_periods;
  row["period_delay_mean_ns"] =
      record.quiet_periods == 0 ? Value() : Value(ratio(record.delay_sum_ns, record.quiet_periods));
  const bool has_delay = record.last.pkts != 0;
  row["delay_ns"] = has_delay ? Value(record.last.delay_ns) : Value();
  row["headroom_ns"] =
      has_delay && slo_ns != 0
          ? Value(static_cast<double>(slo_ns) - static_cast<double>(record.last.delay_ns))
          : Value();
  const exec::FlowPeriod all{.slo_ns = slo_ns,
                             .pkts = record.all.pkts,
                             .late_pkts = record.all.late_pkts,
                             .delay_sum_ns = record.all.delay_sum_ns};
  row["state_since"] = state_of(slo_ns, all, percentile);
}

// Since the start, without a controller.
void show_engine_counts(const Value& shown, uint64_t slo_ns, double percentile, Dict& row) {
  const auto count = [&](const char* key) {
    return shown[key].is_int() ? static_cast<uint64_t>(shown[key].as_int()) : 0;
  };
  row["pkts"] = count("pkts");
  row["late_pkts"] = count("late_pkts");
  row["late_ratio"] = ratio(count("late_pkts"), count("pkts"));
  row["delay_max_ns"] = count("delay_max_ns");
  const Value& mean_ns = shown["delay_mean_ns"];
  const double sum_ns =
      mean_ns.is_double() ? mean_ns.as_double() * static_cast<double>(count("pkts")) : 0;
  const exec::FlowPeriod all{.slo_ns = slo_ns,
                             .pkts = count("pkts"),
                             .late_pkts = count("late_pkts"),
                             .delay_sum_ns = static_cast<uint64_t>(sum_ns)};
  row["state"] = row["state_since"] = state_of(slo_ns, all, percentile);
  row["hint"] = "";
  for (const char* key :
       {"periods", "violated_periods", "stalled_periods", "excess_ratio", "delay_ns", "headroom_ns",
        "last", "counted", "undisturbed", "quiet_periods", "period_delay_mean_ns"}) {
    row[key] = Value();
  }
}

std::vector<std::string> names_of(const exec::ControlModel& model) {
  std::vector<std::string> names;
  for (const exec::ControlFlow& flow : model.flows) names.push_back(flow.name);
  for (const exec::ControlModule& module : model.modules) names.push_back(module.name);
  return names;
}

}  // namespace

Value ControlLoop::show_slo(const Value& flows) const {
  List rows;
  for (uint32_t f = 0; f < model_.flows.size(); ++f) {
    const Value& shown = row_of(flows, "name", model_.flows[f].name);
    const uint64_t slo_ns = engine_.graph().spec.flows[f].delay_slo_ns;
    Dict row{{"flow", model_.flows[f].name},
             {"slo_ns", slo_ns},
             {"percentile", settings_.percentile},
             {"p50_ns", shown["percentiles_ns"]["p50"]},
             {"p99_ns", shown["percentiles_ns"]["p99"]}};
    if (is_on() && f < log_.flows.size()) {
      show_record(log_.flows[f], slo_ns, settings_.percentile, row);
      const exec::FlowVerdict verdict =
          f < decision_.flows.size() ? decision_.flows[f] : exec::FlowVerdict{};
      const bool is_judged = f < decision_.flows.size();
      row["state"] = is_judged ? exec::kFlowStateNames[static_cast<size_t>(verdict.state)]
                               : state_of(slo_ns, log_.flows[f].last, settings_.percentile);
      row["hint"] = verdict.hint;
    } else {
      show_engine_counts(shown, slo_ns, settings_.percentile, row);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Value ControlLoop::show_costs() const {
  List rows;
  for (uint32_t m = 0; estimator_ != nullptr && m < model_.modules.size(); ++m) {
    Dict row = cost_law_value(estimator_->cost(m));
    row["module"] = model_.modules[m].name;
    row["drift_ratio"] = estimator_->drift_ratio(m);
    rows.push_back(std::move(row));
  }
  return rows;
}

Value ControlLoop::show_periods() const { return history_.value(model_, settings_.percentile); }

Value ControlLoop::drifting() const {
  List rows;
  for (uint32_t m = 0; estimator_ != nullptr && m < model_.modules.size(); ++m) {
    const double drift = estimator_->drift_ratio(m);
    if (drift < kDriftRatio && drift > 1 / kDriftRatio) continue;
    const CostLaw::Line line = estimator_->cost(m).line();
    rows.push_back(Dict{{"module", model_.modules[m].name},
                        {"drift_ratio", drift},
                        {"cost_per_batch_ns", line.cost_per_batch_ns},
                        {"cost_per_pkt_ns", line.cost_per_pkt_ns}});
  }
  return rows;
}

Value ControlLoop::show_control() const {
  if (!is_on()) return Dict{{"controller", kNoController}};
  return Dict{{"controller", choice_.name},
              {"label", choice_.label.empty() ? choice_.name : choice_.label},
              {"has_program", is_remote() ? Value(seat_.client != 0) : Value()},
              {"period_ns", choice_.period_ns},
              {"percentile", settings_.percentile},
              {"tolerance", settings_.tolerance},
              {"costs", choice_.costs_origin},
              {"steps", log_.steps},
              {"failed_steps", log_.failed_steps},
              {"count_ns", log_.count_times.value()},
              {"controller_ns", log_.controller_times.value()},
              {"apply_ns", log_.apply_times.value()},
              {"step_ns", log_.total_times.value()},
              {"any_flow", Dict{{"periods", log_.any_flow.periods},
                                {"violated_periods", log_.any_flow.violated_periods},
                                {"quiet_periods", log_.any_flow.quiet_periods},
                                {"violated_quiet_periods", log_.any_flow.violated_quiet_periods}}},
              {"worker_ratio", log_.worker_ratio()},
              {"predicted_load", decision_.predicted_load},
              {"predicted_pps", decision_.predicted_pps},
              {"drifting", drifting()},
              {"decisions", log_.decisions_value({})},
              {"events", log_.events_value()}};
}

// The controller's explanation of a flow, completed with known facts where it gives none (a remote program).
Value ControlLoop::flow_row(uint32_t f, const slo::Explanation& explained) const {
  slo::FlowExplanation told;
  const bool is_explained = f < explained.flows.size();
  if (is_explained) told = explained.flows[f];
  if (f < period_.flows.size()) told.egress = period_.flows[f].egress;
  if (is_explained) return telemetry::flow_value(told, model_.flows[f], model_);
  if (f < decision_.flows.size()) told.state = decision_.flows[f].state;
  if (f < period_.flows.size()) told.measured_ns = static_cast<double>(period_.flows[f].delay_ns);
  told.slo_ns = static_cast<double>(engine_.graph().spec.flows[f].delay_slo_ns);
  return telemetry::flow_value(told, model_.flows[f], model_);
}

std::string ControlLoop::why_no_buffer(uint32_t m) const {
  const exec::ControlModule& module = model_.modules[m];
  if (!module.has_buffer) return "an input: it has no buffer";
  if (module.is_egress) return "packets leave here: larger batches would gain nothing";
  for (const slo::Segment& segment : slo::segments_of(model_)) {
    if (std::ranges::find(segment.members, m) == segment.members.end()) continue;
    return "shares the batches of " + model_.modules[segment.head].name;
  }
  return "batches arrive here as they were polled";
}

namespace {

// Its batches are those that go to its device.
void tell_stage(const exec::StagePeriod& stage, Dict& row) {
  row["trigger_pkts"] = stage.batch_pkts;
  row["age_limit_ns"] = stage.age_limit_ns;
  row["batch_mean_pkts"] = ratio(stage.totals.pkts, stage.totals.jobs);
}

}  // namespace

Value ControlLoop::module_row(uint32_t m, const slo::Explanation& explained) const {
  const exec::ControlModule& module = model_.modules[m];
  const auto own = std::ranges::find(explained.modules, m, &slo::ModuleExplanation::module);
  slo::ModuleExplanation told{.module = m};
  if (own != explained.modules.end()) {
    told = *own;
  } else {
    told.why = module.is_controlled ? "as the program says" : why_no_buffer(m);
  }
  Dict row = telemetry::module_value(told, model_).as_dict();
  if (const std::string reason = log_.last_reason(module.name); !reason.empty()) {
    row["last_reason"] = reason;
  }
  if (period_.modules.size() <= m) return row;
  const exec::ModulePeriod& period = period_.modules[m];
  row["trigger_pkts"] = period.trigger_pkts;
  row["age_limit_ns"] = period.age_limit_ns;
  row["held_pkts"] = period.held_pkts;
  row["cost_per_batch_ns"] = period.cost.line().cost_per_batch_ns;
  row["cost_per_pkt_ns"] = period.cost.line().cost_per_pkt_ns;
  row["batch_mean_pkts"] = ratio(period.pkts, period.batches);
  row["arrived_mean_pkts"] = ratio(period.arrived_pkts, period.arrived_batches);
  for (const exec::BufferChange& change : decision_.changes) {  // after the period was counted
    if (change.module != m || change.trigger_pkts == exec::kKeepTrigger) continue;
    row["trigger_pkts"] = change.trigger_pkts;
  }
  if (const exec::StagePeriod* const stage = stage_of(m)) tell_stage(*stage, row);
  for (const exec::StageChange& change : decision_.stages) {
    if (change.module == m) row["trigger_pkts"] = change.batch_pkts;
  }
  return row;
}

Value ControlLoop::explain(const std::string& name) const {
  const std::vector<std::string> names = names_of(model_);
  if (!name.empty() && std::ranges::find(names, name) == names.end()) {
    const std::string near = nearest_word(name, names);
    throw ConfigError(
        "there is no flow or module '" + name + "'", "name",
        near.empty() ? "show slo and show graph list them" : "did you mean '" + near + "'?");
  }
  if (!is_on()) {
    throw ConfigError("no controller is on, so that triggers are what somebody set", "controller",
                      "set controller=optimal");
  }
  const slo::Explanation explained = controller_->explain();
  const auto may_hold = [this](uint32_t m) {
    return model_.modules[m].is_controlled || stage_of(m) != nullptr;
  };
  List flows;
  List modules;
  std::vector<std::string> related;
  for (uint32_t f = 0; f < model_.flows.size(); ++f) {
    if (!name.empty() && model_.flows[f].name != name) continue;
    flows.push_back(flow_row(f, explained));
    if (name.empty()) continue;
    for (const uint32_t m : model_.flows[f].path) {
      related.push_back(model_.modules[m].name);
      if (may_hold(m)) modules.push_back(module_row(m, explained));
    }
  }
  for (uint32_t m = 0; m < model_.modules.size(); ++m) {
    const bool is_meant = name.empty() ? may_hold(m) : model_.modules[m].name == name;
    if (!is_meant) continue;
    modules.push_back(module_row(m, explained));
    if (!name.empty()) related.push_back(name);
  }
  return Dict{{"controller", choice_.name},
              {"flows", std::move(flows)},
              {"modules", std::move(modules)},
              {"decisions", log_.decisions_value(related)}};
}

}  // namespace batchplane::app
