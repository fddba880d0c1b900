// SPDX-License-Identifier: BSD-3-Clause
#include "sim/placing.h"

#include <algorithm>

#include "sim/queue.h"
#include "spec/stages.h"

namespace batchplane::sim {
namespace {

// On its worker a batch is run in pieces of the engine's batch size.
BatchLaw law_on_worker(const CostLaw& cost, uint32_t batch_limit_pkts) {
  constexpr uint32_t kPieces = 1024;
  BatchTable table{.pkt_bytes = {64}};
  for (uint32_t n = 1; n < batch_limit_pkts; n *= 2) {
    table.batch_pkts.push_back(n);
    table.alone_ns.push_back(cost.ns(n));
  }
  for (const uint32_t pieces : {1U, kPieces}) {
    table.batch_pkts.push_back(pieces * batch_limit_pkts);
    table.alone_ns.push_back(pieces * cost.ns(batch_limit_pkts));
  }
  return {.batch_ns = cost.line().cost_per_batch_ns,
          .pkt_ns = cost.line().cost_per_pkt_ns,
          .table = std::make_shared<const BatchTable>(std::move(table))};
}

double watts_of(const DeviceSpec& device, const std::string& key) {
  const auto given = device.params.find(key);
  return given == device.params.end() ? 0 : given->second.as_double();
}

}  // namespace

SimulatedStages::SimulatedStages(const std::unique_ptr<Graph>& graph, const Spec& spec)
    : graph_(graph) {
  for (const FlowSpec& flow : spec.pipeline.flows) slo_ns_.push_back(flow.delay_slo_ns);
  for (const ModuleSpec& module : spec.pipeline.modules) {
    const auto given = spec.stages.find(module.name);
    if (given == spec.stages.end()) continue;
    placement::StageInfo info{.name = module.name,
                              .kind = module.kind,
                              .max_batch_pkts = given->second.max_batch_pkts,
                              .places = {}};
    if (info.kind.ends_with(kStageSuffix))
      info.kind.resize(info.kind.size() - std::string(kStageSuffix).size());
    for (const StageSpec::Place& of : given->second.places) {
      placement::StageInfo::Place place{
          .device = index_of(of.device, spec), .given = of.law, .tried = {}};
      const auto cost = spec.costs.find(module.name);
      if (of.device == placement::kInline) {
        place.given.reset();
        if (cost != spec.costs.end())
          place.given = law_on_worker(cost->second, spec.pipeline.engine.batch_pkts);
      }
      info.places.push_back(std::move(place));
    }
    infos_.push_back(std::move(info));
  }
}

size_t SimulatedStages::index_of(const std::string& name, const Spec& spec) {
  const auto known = std::ranges::find(devices_, name, &placement::Device::name);
  if (known != devices_.end()) return static_cast<size_t>(known - devices_.begin());
  placement::Device made{.name = name};
  const auto declared = std::ranges::find(spec.pipeline.devices, name, &DeviceSpec::name);
  if (declared != spec.pipeline.devices.end()) {
    made.off_w = watts_of(*declared, "off_w");
    made.idle_w = watts_of(*declared, "idle_w");
    made.active_w = watts_of(*declared, "active_w");
  }
  devices_.push_back(std::move(made));
  return devices_.size() - 1;
}

Queue& SimulatedStages::queue_of(size_t stage) const {
  return *graph_->modules[graph_->at(infos_[stage].name)]->queue;
}

std::vector<placement::FlowPath> SimulatedStages::flows() const {
  std::vector<placement::FlowPath> flows;
  for (size_t f = 0; f < slo_ns_.size(); ++f) flows.push_back({slo_ns_[f], graph_->flow_paths[f]});
  return flows;
}

placement::StageCounts SimulatedStages::counts(size_t stage) const {
  Queue& queue = queue_of(stage);
  placement::StageCounts seen = queue.stage()->counts();
  seen.held_pkts = queue.held_pkts();
  seen.max_held_pkts = queue.most_pkts() + queue.stage()->max_inside_pkts();
  seen.offered_pkts += seen.held_pkts + queue.lost_pkts();
  return seen;
}

void SimulatedStages::place(size_t stage, const placement::Placing& placing) {
  queue_of(stage).stage()->place(placing);
}

}  // namespace batchplane::sim
