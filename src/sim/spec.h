// SPDX-License-Identifier: BSD-3-Clause
// spec.h - the specification of a simulation: the pipeline as the daemon reads it, costs, routes
// and traffic.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/cost_law.h"
#include "base/engine_costs.h"
#include "base/error.h"
#include "base/value.h"
#include "exec/control.h"
#include "sim/scheduler_spec.h"
#include "sim/source.h"
#include "sim/stage.h"
#include "spec/kinds.h"
#include "spec/parts.h"
#include "spec/pipeline_spec.h"

namespace batchplane::sim {

// Route of a traffic flow: the gate at each module that chooses by flow, kDrop where the flow ends,
// and at a scheduler its flow number.
using FlowRoute = std::map<std::string, std::string>;
inline constexpr const char* kDropGateText = "drop";

struct Spec {
  PipelineSpec pipeline;
  std::map<std::string, CostLaw> costs;             // by module
  std::map<std::string, SchedulerSpec> schedulers;  // by module of kind egress
  std::map<std::string, StageSpec> stages;          // by module with a device
  uint64_t move_ns = 0;                             // time that workers stop for a move
  EngineCosts loop{.empty_poll_ns = 50};
  std::vector<SourceSpec> sources;
  std::vector<std::vector<FlowRoute>> routes;  // [source][flow]
  double noise_sigma = 0;
  StallSpec stalls;  // of every worker
  uint64_t seed = 1;
};

// By source.
using Traces = std::map<std::string, TraceArrivals>;

// Reads canonical JSON with a key `simulation`, as described in docs/simulator.md. `traces` adds
// those that are not in the JSON. Throws ConfigError for the first mistake.
Spec parse_spec(const Value& value, Traces traces = {});

// Module kinds that the simulator knows by name; of others it knows only the edges. `pipeline`:
// after add_stages(), or without devices.
[[nodiscard]] Kinds simulated_kinds(const PipelineSpec& pipeline);

}  // namespace batchplane::sim
