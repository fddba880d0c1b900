// SPDX-License-Identifier: BSD-3-Clause
// graph_numbers.cc - modules that know a packet scheduler's flows by number: the scheduler, `pace` and
// `early_drop`.
#include <charconv>

#include "sim/graph_build.h"
#include "sim/spec_fields.h"

namespace batchplane::sim {
namespace {

constexpr const char* kPaceKind = "pace";
constexpr const char* kEarlyDropKind = "early_drop";
constexpr uint32_t kMostPaceFlows = 1U << 20;

std::unique_ptr<Pacing> pacing_of(const ModuleSpec& spec, const std::string& where) {
  const Value params(spec.params);
  const auto us = [&](const char* key, uint32_t fallback) {
    constexpr double kMostUs = egress::kMaxDepartureAheadNs / 1e3;
    return static_cast<uint32_t>(number(params, key, fallback, where, kMostUs));
  };
  const egress::DepartureParams given{
      .rate_bps = whole(params, "rate_bps", 0, where),
      .delay_us = us("delay_us", 0),
      .jitter_us = us("jitter_us", 0),
      .horizon_us = us("horizon_us", egress::DepartureParams{}.horizon_us)};
  const auto flows = static_cast<uint32_t>(
      number(params, "max_flows", egress::Departures::kDefaultFlows, where, kMostPaceFlows));
  return std::make_unique<Pacing>(
      Pacing{egress::Departures(std::max(flows, 1U)), egress::departure_rule(given, where)});
}

Queue* scheduler_named(const GraphBuild& build, const std::string& name, const std::string& where) {
  const auto at = build.graph.index.find(name);
  Queue* const queue =
      at == build.graph.index.end() ? nullptr : build.graph.modules[at->second]->queue;
  if (queue != nullptr && queue->scheduler() != nullptr) return queue;
  throw ConfigError("there is no scheduler '" + name + "'", where + ".scheduler",
                    "name a module of kind egress");
}

// A route gives the flow's number there instead of a gate; 0 if it gives none.
std::vector<uint32_t> numbers_at(const GraphBuild& build, const Module& module) {
  std::vector<uint32_t> numbers(build.n_traffic_flows, 0);
  for (size_t s = 0; s < build.graph.sources.size(); ++s) {
    for (size_t f = 0; f < build.spec.routes[s].size(); ++f) {
      const auto it = build.spec.routes[s][f].find(module.name);
      if (it == build.spec.routes[s][f].end() || it->second == kDropGateText) continue;
      const auto [end, error] =
          std::from_chars(it->second.data(), it->second.data() + it->second.size(),
                          numbers[build.graph.sources[s]->first_flow() + f]);
      if (error == std::errc() && *end == 0) continue;
      throw ConfigError("'" + it->second + "' is no flow of '" + module.name + "'",
                        "simulation.routes." + build.spec.sources[s].name, "give its number");
    }
  }
  return numbers;
}

}  // namespace

void make_pacing(GraphBuild& build) {
  for (const auto& module : build.graph.modules) {
    if (module->role != Role::kPass) continue;
    const ModuleSpec& spec = build.spec.pipeline.modules[module->index];
    const std::string where = build.spec.pipeline.where("modules." + spec.name);
    if (spec.kind == kPaceKind) module->pacing = pacing_of(spec, where);
    if (spec.kind != kEarlyDropKind) continue;
    module->refused_by = scheduler_named(build, text(Value(spec.params), "scheduler", ""), where);
  }
}

void set_flow_numbers(GraphBuild& build) {
  for (const auto& module : build.graph.modules) {
    if (module->has_numbers()) module->numbers = numbers_at(build, *module);
    if (module->kind == kSchedulerKind && module->ring == 0) {
      module->queue->scheduler()->set_flows(numbers_at(build, *module));
    }
  }
}

}  // namespace batchplane::sim
