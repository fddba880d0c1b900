// SPDX-License-Identifier: BSD-3-Clause
// spec.cc - reads a simulation from plain values and refuses invalid ones.
#include "sim/spec.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/cost_law_value.h"
#include "sim/spec_fields.h"
#include "sim/spec_read.h"
#include "spec/config_json.h"
#include "spec/doors.h"
#include "spec/parts.h"

namespace batchplane::sim {
namespace {

constexpr double kMaxCostNs = 1e9;

void read_costs(const Value& costs, Spec& spec) {
  if (costs.is_null()) return;
  std::vector<std::string> names;
  for (const ModuleSpec& module : spec.pipeline.modules) names.push_back(module.name);
  names.emplace_back(kAnyInQueue);
  for (const auto& [name, value] : costs.as_dict()) {
    const std::string where = "simulation.costs." + name;
    if (std::ranges::find(names, name) == names.end()) refuse_name("module", name, names, where);
    const CostLaw& law = spec.costs[name] = cost_law_from(value, where);
    const uint32_t batch_limit_pkts = spec.pipeline.engine.batch_pkts;
    if (law.is_table() && law.points().back().size_pkts < batch_limit_pkts) {
      throw ConfigError("the table ends at batches of " +
                            std::to_string(law.points().back().size_pkts) + " of " +
                            std::to_string(batch_limit_pkts),
                        where + ".table_ns", "measure up to engine.batch_pkts");
    }
  }
}

void read_schedulers(const Value& schedulers, Spec& spec) {
  for (const ModuleSpec& module : spec.pipeline.modules) {
    if (module.kind != kSchedulerKind || !module.door_of.empty()) continue;
    if (schedulers.is_null() || !schedulers.has(module.name)) {
      throw ConfigError("nobody says what '" + module.name + "' schedules",
                        "simulation.schedulers." + module.name,
                        "let batchplaned say it, which knows it with the routes: build it");
    }
    spec.schedulers[module.name] =
        parse_scheduler(schedulers[module.name], "simulation.schedulers." + module.name);
  }
}

}  // namespace

Kinds simulated_kinds(const PipelineSpec& pipeline) {
  Kinds kinds;
  for (const ModuleSpec& module : pipeline.modules) {
    if (!module.device.is_null()) kinds.modules[module.kind] = {.shape = Shape::kQueue};
  }
  kinds.modules["queue"] = {.shape = Shape::kQueue};
  kinds.modules[kSchedulerKind] = {.shape = Shape::kQueue};
  return kinds;
}

Spec parse_spec(const Value& value, Traces traces) {
  Spec spec;
  Dict pipeline = value.as_dict();
  const Value simulation = value["simulation"];
  pipeline.erase("simulation");
  std::vector<ConfigError> errors;
  spec.pipeline = spec_from_value(Value(std::move(pipeline)), errors);
  if (!errors.empty()) throw errors.front();
  read_stages(simulation["stages"], spec);
  const Kinds kinds = simulated_kinds(spec.pipeline);
  add_parts(spec.pipeline, kinds);
  add_doors(spec.pipeline, kinds);
  read_schedulers(simulation["schedulers"], spec);
  read_costs(simulation["costs"], spec);
  if (const Value& loop = simulation["loop"]; !loop.is_null()) {
    read_cost_fields(loop, "simulation.loop", fields_of(spec.loop));
  }
  // Time has to pass in an idle loop.
  spec.loop.empty_poll_ns = std::max(spec.loop.empty_poll_ns, 1.0);
  read_sources(simulation, std::move(traces), spec);
  spec.noise_sigma = number(simulation["noise"], "sigma", 0, "simulation.noise", 10);
  spec.seed = whole(simulation, "seed", 1, "simulation");
  spec.stalls = read_stalls(simulation, "stalls");
  spec.move_ns = static_cast<uint64_t>(number(simulation, "move_ns", 0, "simulation", kMaxCostNs));
  return spec;
}

}  // namespace batchplane::sim
