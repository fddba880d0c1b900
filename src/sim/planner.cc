// SPDX-License-Identifier: BSD-3-Clause
#include "sim/planner.h"

#include <algorithm>

#include "base/nearest_word.h"
#include "sim/composition.h"
#include "slo/optimal_view.h"

namespace batchplane::sim {
namespace {

constexpr uint32_t kPolls = 1500;  // of each input in a composed period
constexpr uint32_t kMostSteps = 40;
constexpr uint32_t kQuietSteps = 4;  // without another trigger: it rests

class Planning {
 public:
  Planning(const Spec& spec, const PlanRequest& request)
      : spec_(spec), request_(request), composition_(spec), model_(composition_.model()) {
    settings_ = request.settings;
    settings_.releases_when_idle = !spec.pipeline.engine.is_idle_hold;
    if (request.merged) {
      composition_.merge_branch(composition_.graph().at(request.merged->first),
                                request.merged->second);
    }
    read_slos();
  }

  Value run() {
    const auto controller = slo::make_controller(request_.controller, model_, settings_);
    triggers_.assign(model_.modules.size(), 0);
    limits_ns_.assign(model_.modules.size(), exec::kStrandingAge);
    for (uint32_t m = 0; m < triggers_.size(); ++m) {
      triggers_[m] = spec_.pipeline.modules[m].trigger_pkts;
    }
    uint32_t quiet = 0;
    for (steps_ = 0; steps_ < kMostSteps && quiet < kQuietSteps; ++steps_) {
      compose();
      decision_ = controller->step(period_);
      quiet = apply() ? 0 : quiet + 1;
    }
    // A period that begins with full buffers and ends with them, under what was chosen.
    compose();
    const bool is_settled = quiet >= kQuietSteps;
    slo::OptimalView view(model_, settings_);
    view.update(period_);
    slo::Evaluation at;
    slo::evaluate(view.program(), view.current(), at);
    const double rate_pps =
        static_cast<double>(composition_.in_pkts()) * 1e9 / static_cast<double>(period_.period_ns);
    return Dict{{"controller", request_.controller},
                {"rate_pps", rate_pps},
                {"model_pps", decision_.predicted_pps},
                {"steps", steps_},
                {"is_settled", is_settled},
                {"workers", workers_value()},
                {"tasks", tasks_value(view, at)},
                {"flows", flows_value(view, at)},
                {"modules", modules_value(view, controller->explain())}};
  }

 private:
  void read_slos() {
    for (const FlowSpec& flow : spec_.pipeline.flows) slo_ns_.push_back(flow.delay_slo_ns);
    std::vector<std::string> names;
    for (const exec::ControlFlow& flow : model_.flows) names.push_back(flow.name);
    for (const auto& [name, ns] : request_.slo_ns) {
      const auto it = std::ranges::find(names, name);
      if (it == names.end()) {
        const std::string near = nearest_word(name, names);
        throw ConfigError("no flow '" + name + "'", "slo",
                          near.empty() ? "" : "did you mean '" + near + "'?");
      }
      slo_ns_[static_cast<size_t>(it - names.begin())] = ns;
    }
  }

  void compose() {
    composition_.set_triggers(triggers_);
    period_ = composition_.walk(kPolls);
    period_.flows.assign(slo_ns_.size(), {});
    for (size_t f = 0; f < slo_ns_.size(); ++f) period_.flows[f].slo_ns = slo_ns_[f];
    for (size_t m = 0; m < limits_ns_.size(); ++m) period_.modules[m].age_limit_ns = limits_ns_[m];
  }

  // True when a trigger changed.
  bool apply() {
    bool any = false;
    for (const exec::BufferChange& change : decision_.changes) {
      any |= triggers_[change.module] != change.trigger_pkts;
      triggers_[change.module] = change.trigger_pkts;
      if (change.age_limit_ns != exec::kKeepAge) limits_ns_[change.module] = change.age_limit_ns;
    }
    return any;
  }

  List workers_value() const {
    List rows;
    for (size_t w = 0; w < composition_.worker_ns().size(); ++w) {
      rows.push_back(
          Dict{{"name", composition_.graph().worker_names[w]},
               {"load", composition_.worker_ns()[w] / static_cast<double>(period_.period_ns)}});
    }
    return rows;
  }

  List tasks_value(const slo::OptimalView& view, const slo::Evaluation& at) const {
    List rows;
    for (size_t t = 0; t < model_.tasks.size(); ++t) {
      const slo::ProgramTask& task = view.program().tasks[t];
      rows.push_back(Dict{{"worker", composition_.graph().worker_names[model_.tasks[t].worker]},
                          {"run_pkts", task.run_pkts},
                          {"other_run_ns", task.other_run_ns},
                          {"is_saturated", task.is_saturated},
                          {"pkt_ns", at.task_pkt_ns[t]},
                          {"turnaround_ns", at.turnaround_ns[t]}});
    }
    return rows;
  }

  List flows_value(const slo::OptimalView& view, const slo::Evaluation& at) const {
    List rows;
    for (uint32_t f = 0; f < model_.flows.size(); ++f) {
      const slo::ProgramFlow& flow = view.program().flows[f];
      double turnaround_ns = 0;
      double fill_ns = 0;
      double service_ns = 0;
      for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
        turnaround_ns += at.turnaround_ns[view.program().flow_tasks[i]];
      }
      for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
        fill_ns += at.fill_ns[view.program().flow_modules[i]];
        service_ns += at.service_ns[view.program().flow_modules[i]];
      }
      Dict row{{"flow", model_.flows[f].name},
               {"slo_ns", slo_ns_[f]},
               {"delay_ns", turnaround_ns + fill_ns + service_ns},
               {"turnaround_ns", turnaround_ns},
               {"fill_ns", fill_ns},
               {"service_ns", service_ns},
               {"least_ns", view.least_service_ns(f)},
               {"pkts", flow_pkts(f)}};
      if (f < decision_.flows.size()) {
        const exec::FlowVerdict& verdict = decision_.flows[f];
        row["state"] = exec::kFlowStateNames[static_cast<uint32_t>(verdict.state)];
        row["multiplier_pps_per_us"] = verdict.multiplier_pps_per_us;
        row["hint"] = verdict.hint;
      }
      rows.emplace_back(std::move(row));
    }
    return rows;
  }

  // What the least visited module of its path saw.
  uint64_t flow_pkts(uint32_t f) const {
    uint64_t least = ~0ULL;
    for (const uint32_t m : model_.flows[f].path) {
      if (!model_.modules[m].has_buffer) continue;
      least = std::min(least, period_.modules[m].pkts + period_.modules[m].held_pkts);
    }
    return least == ~0ULL ? 0 : least;
  }

  List modules_value(const slo::OptimalView& view, const Value& explained) const {
    std::map<std::string, const Value*> reasons;
    if (explained.has("modules")) {
      for (const Value& row : explained["modules"].as_list()) {
        reasons[row["module"].as_string()] = &row;
      }
    }
    List rows;
    for (uint32_t m = 0; m < model_.modules.size(); ++m) {
      const exec::ModulePeriod& period = period_.modules[m];
      const auto ratio = [](uint64_t part, uint64_t whole) {
        return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
      };
      Dict row{{"module", model_.modules[m].name},
               {"kind", composition_.graph().modules[m]->kind},
               {"is_controlled", model_.modules[m].is_controlled},
               {"share", ratio(period.pkts, composition_.in_pkts())},
               {"batch_pkts", ratio(period.pkts, period.batches)},
               {"arriving_pkts", ratio(period.arrived_pkts, period.arrived_batches)},
               {"trigger_pkts", period.trigger_pkts},
               {"age_limit_ns", limits_ns_[m]}};
      const uint32_t head = view.head_of(m);
      if (head != slo::OptimalView::kNoHead) {
        row["cost_per_batch_ns"] = view.program().modules[head].cost_per_batch_ns;
        row["cost_per_pkt_ns"] = view.program().modules[head].cost_per_pkt_ns;
      }
      if (const auto it = reasons.find(model_.modules[m].name); it != reasons.end()) {
        row["why"] = (*it->second)["why"];
        row["binding_flow"] = (*it->second)["binding_flow"];
        row["multiplier_pps_per_us"] = (*it->second)["multiplier_pps_per_us"];
      }
      rows.emplace_back(std::move(row));
    }
    return rows;
  }

  const Spec& spec_;
  const PlanRequest& request_;
  slo::Settings settings_;
  Composition composition_;
  const exec::ControlModel& model_;
  std::vector<uint64_t> slo_ns_;     // by flow
  std::vector<uint32_t> triggers_;   // by module
  std::vector<uint64_t> limits_ns_;  // by module
  exec::PeriodSnapshot period_;
  exec::Decision decision_;
  uint32_t steps_ = 0;
};

}  // namespace

Value plan(const Spec& spec, const PlanRequest& request) { return Planning(spec, request).run(); }

}  // namespace batchplane::sim
