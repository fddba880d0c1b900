// SPDX-License-Identifier: BSD-3-Clause
// explanation.h - why each trigger was chosen and where each flow's budget goes, in the same terms
// for all controllers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/control.h"

namespace batchplane::slo {

// One flow: slo = turnaround + bias + fill + service + slack, and what a packet scheduler may take beyond its mean.
// Terms that a controller does not know are 0.
struct FlowExplanation {
  // One buffer on its path.
  struct Part {
    uint32_t module = 0;
    uint32_t trigger_pkts = 0;
    double fill_ns = 0;
    double service_ns = 0;
    uint32_t heaviest = 0;  // the most expensive module that runs on its batches, ports included
    double heaviest_ns = 0;
  };
  exec::FlowState state = exec::FlowState::kNoSlo;
  double slo_ns = 0;  // 0 = none
  double measured_ns = 0;
  double margin_ns = 0;  // kept free
  double turnaround_ns = 0;
  double bias_ns = 0;  // measured delay minus modelled delay
  double fill_ns = 0;
  double service_ns = 0;
  double slack_ns = 0;
  double multiplier_pps_per_us = 0;
  std::vector<Part> modules;
  std::string hint;
  exec::EgressPromise egress;         // of the packet scheduler on the path
  std::vector<exec::LegBudget> legs;  // by task, in path order; empty if the path has one task
};

// One module where a buffer may pay off.
struct ModuleExplanation {
  static constexpr uint32_t kNoFlow = ~0U;
  uint32_t module = 0;
  uint32_t trigger_pkts = 0;
  uint64_t age_limit_ns = 0;
  double arriving_pkts = 0;
  double cost_per_batch_ns = 0;  // of all modules that run on its batches
  double cost_per_pkt_ns = 0;
  double hold_ns = 0;
  std::string why;
  uint32_t binding_flow = kNoFlow;
  double multiplier_pps_per_us = 0;
};

struct Explanation {
  std::vector<FlowExplanation> flows;      // of the model, in order; empty before the first step
  std::vector<ModuleExplanation> modules;  // controlled ones
};

}  // namespace batchplane::slo
