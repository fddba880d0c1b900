// SPDX-License-Identifier: BSD-3-Clause
#include "telemetry/explanation.h"

namespace batchplane::telemetry {

namespace {

Value egress_value(const exec::EgressPromise& promise) {
  const bool has_bound = promise.bound_ns != exec::EgressPromise::kNone;
  return Dict{{"flow", promise.flow},
              {"bound_ns", has_bound ? Value(promise.bound_ns) : Value()},
              {"share_bps", promise.share_bps},
              {"is_beyond_share", promise.is_beyond_share}};
}

}  // namespace

Value flow_value(const slo::FlowExplanation& flow, const exec::ControlFlow& of,
                 const exec::ControlModel& model) {
  List parts;
  for (const slo::FlowExplanation::Part& part : flow.modules) {
    parts.push_back(Dict{{"module", model.modules[part.module].name},
                         {"trigger_pkts", part.trigger_pkts},
                         {"fill_ns", part.fill_ns},
                         {"service_ns", part.service_ns},
                         {"heaviest", model.modules[part.heaviest].name},
                         {"heaviest_ns", part.heaviest_ns}});
  }
  List legs;
  const size_t f = static_cast<size_t>(&of - model.flows.data());
  for (size_t i = 0; i < flow.legs.size() && f < model.legs.of_flow.size(); ++i) {
    const exec::Leg& leg = model.legs.all[model.legs.of_flow[f][i]];
    legs.push_back(Dict{{"task", leg.task},
                        {"ends_at", model.modules[leg.ends_at].name},
                        {"budget_ns", flow.legs[i].budget_ns},
                        {"measured_ns", flow.legs[i].measured_ns},
                        {"load_per_us", flow.legs[i].load_per_us}});
  }
  Dict told{{"flow", of.name},
            {"state", exec::kFlowStateNames[static_cast<size_t>(flow.state)]},
            {"slo_ns", flow.slo_ns},
            {"margin_ns", flow.margin_ns},
            {"measured_ns", flow.measured_ns},
            {"turnaround_ns", flow.turnaround_ns},
            {"bias_ns", flow.bias_ns},
            {"fill_ns", flow.fill_ns},
            {"service_ns", flow.service_ns},
            {"slack_ns", flow.slack_ns},
            {"multiplier_pps_per_us", flow.multiplier_pps_per_us},
            {"modules", std::move(parts)},
            {"legs", std::move(legs)},
            {"hint", flow.hint}};
  if (flow.egress.is_on_way) told["egress"] = egress_value(flow.egress);
  return told;
}

Value module_value(const slo::ModuleExplanation& module, const exec::ControlModel& model) {
  const bool is_bound = module.binding_flow != slo::ModuleExplanation::kNoFlow;
  return Dict{{"module", model.modules[module.module].name},
              {"trigger_pkts", module.trigger_pkts},
              {"age_limit_ns", module.age_limit_ns},
              {"arriving_pkts", module.arriving_pkts},
              {"cost_per_batch_ns", module.cost_per_batch_ns},
              {"cost_per_pkt_ns", module.cost_per_pkt_ns},
              {"hold_ns", module.hold_ns},
              {"why", module.why},
              {"binding_flow", is_bound ? Value(model.flows[module.binding_flow].name) : Value()},
              {"multiplier_pps_per_us", module.multiplier_pps_per_us}};
}

Value explanation_value(const slo::Explanation& explained, const exec::ControlModel& model) {
  List flows;
  List modules;
  for (size_t f = 0; f < explained.flows.size(); ++f) {
    flows.push_back(flow_value(explained.flows[f], model.flows[f], model));
  }
  for (const slo::ModuleExplanation& module : explained.modules) {
    modules.push_back(module_value(module, model));
  }
  return Dict{{"flows", std::move(flows)}, {"modules", std::move(modules)}};
}

}  // namespace batchplane::telemetry
