// SPDX-License-Identifier: BSD-3-Clause
// optimal_explain.cc - the optimal controller's view as plain values.
#include <algorithm>

#include "slo/optimal.h"

namespace batchplane::slo {

Value Optimal::explain_flow(uint32_t f) const {
  const FlowMemory& memory = flows_[f];
  const exec::FlowVerdict& verdict = memory.verdict;
  const Program& program = view_.program();
  const ProgramFlow& flow = program.flows[f];
  // By the model; what was measured beyond it is a term of its own, which may be negative.
  auto turnaround_ns = static_cast<double>(settings_.turnaround_extra_ns);
  for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
    const uint32_t t = program.flow_tasks[i];
    if (t < model_chosen_.turnaround_ns.size()) turnaround_ns += model_chosen_.turnaround_ns[t];
  }
  double fill_ns = 0;
  List modules;
  for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
    const uint32_t h = program.flow_modules[i];
    if (model_chosen_.fill_ns.size() <= h) continue;
    fill_ns += model_chosen_.fill_ns[h];
    modules.push_back(Dict{{"module", model_.modules[view_.segments()[h].head].name},
                           {"trigger_pkts", chosen_[h]},
                           {"fill_ns", model_chosen_.fill_ns[h]},
                           {"service_ns", model_chosen_.service_ns[h]}});
  }
  return Dict{{"flow", model_.flows[f].name},
              {"state", exec::kFlowStateNames[static_cast<uint32_t>(verdict.state)]},
              {"slo_ns", memory.slo_ns},
              {"margin_ns", memory.slo_ns * settings_.tolerance},
              {"measured_ns", memory.measured_ns},
              {"turnaround_ns", turnaround_ns},
              {"bias_ns", memory.bias.ns},
              {"fill_ns", fill_ns},
              {"service_ns", verdict.service_ns},
              {"care_ns", care_ns_[f]},
              {"reserve_ns", memory.reserve_ns},
              {"slack_ns", verdict.slack_ns},
              {"multiplier_pps_per_us", verdict.multiplier_pps_per_us},
              {"modules", modules},
              {"hint", verdict.hint}};
}

Value Optimal::explain_module(uint32_t h) const {
  const HeadMemory& head = heads_[h];
  const ProgramModule& module = view_.program().modules[h];
  const bool is_bound = head.binding_flow != ~0U;
  return Dict{{"module", model_.modules[view_.segments()[h].head].name},
              {"trigger_pkts", chosen_[h]},
              {"age_limit_ns", head.age_limit_ns},
              {"arriving_pkts", module.arriving_pkts},
              {"cost_per_batch_ns", module.cost_per_batch_ns},
              {"cost_per_pkt_ns", module.cost_per_pkt_ns},
              {"hold_ns", view_.program().hold_ns},
              {"why", head.why},
              {"binding_flow", is_bound ? Value(model_.flows[head.binding_flow].name) : Value()},
              {"multiplier_pps_per_us", head.price}};
}

// The last decisions that changed something, oldest first.
Value Optimal::explain_past() const {
  List decisions;
  const size_t n = std::min(n_decisions_, kDecisionsKept);
  for (size_t i = n_decisions_ - n; i < n_decisions_; ++i) {
    List changes;
    for (const PastChange& change : past_[i % kDecisionsKept]) {
      changes.push_back(Dict{{"module", model_.modules[view_.segments()[change.head].head].name},
                             {"from_pkts", change.from_pkts},
                             {"to_pkts", change.to_pkts},
                             {"reason", change.reason}});
    }
    decisions.push_back(
        Dict{{"now_ns", past_[i % kDecisionsKept].front().now_ns}, {"changes", changes}});
  }
  return decisions;
}

// What was measured, and which of it decides.
Value Optimal::explain_guard() const {
  static constexpr const char* kChoices[] = {"as solved", "the fastest that was measured",
                                             "a little more than the fastest that was measured",
                                             "a little less than what was late"};
  const OperatingPoint* best = guard_.best();
  return Dict{{"in_force", kChoices[static_cast<uint32_t>(guard_.choice())]},
              {"best_pps", best != nullptr ? best->rate * 1e9 : 0.0},
              {"bypassed_pps", guard_.bypassed_rate() * 1e9},
              {"periods_to_next_try", guard_.periods_left()}};
}

// Of tasks to which more came than they carried at some time.
Value Optimal::explain_overload() const {
  List tasks;
  for (uint32_t t = 0; t < overloads_.size(); ++t) {
    const Overload& overload = overloads_[t];
    if (!overload.is_carrying && !overload.is_known) continue;
    tasks.push_back(Dict{{"task", t},
                         {"in_force", overload.is_carrying ? "what comes is carried first"
                                                           : "promises at the rate that comes"},
                         {"rate_pps", view_.program().tasks[t].rate_pkts_per_ns * 1e9},
                         {"load_ratio", overload.load},
                         {"most_load_ratio", overload.most_load}});
  }
  return tasks;
}

Value Optimal::explain() const {
  List flows;
  List modules;
  for (uint32_t f = 0; f < flows_.size(); ++f) flows.push_back(explain_flow(f));
  for (uint32_t h = 0; h < heads_.size(); ++h) modules.push_back(explain_module(h));
  return Dict{{"controller", name_},
              {"flows", flows},
              {"modules", modules},
              {"measured", explain_guard()},
              {"overload", explain_overload()},
              {"decisions", explain_past()}};
}

}  // namespace batchplane::slo
