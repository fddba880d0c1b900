// SPDX-License-Identifier: BSD-3-Clause
// graph_stages.cc - devices of a specification, and the modules that run there.
#include <utility>

#include "sim/graph_build.h"

namespace batchplane::sim {

void make_stages(GraphBuild& build) {
  Graph& graph = build.graph;
  const PipelineSpec& pipeline = build.spec.pipeline;
  // Jobs in progress there continue.
  if (build.running != nullptr) graph.devices = build.running->devices;
  for (const DeviceSpec& device : pipeline.devices) {
    if (!graph.devices.contains(device.name))
      graph.devices[device.name] = std::make_shared<Device>(device);
  }
  for (const auto& [name, spec] : build.spec.stages) {
    std::vector<Stage::Place> places;
    bool is_on_worker = false;
    for (StageSpec::Place place : spec.places) {
      const bool is_inline = place.device == placement::kInline;
      if (is_inline) place.is_known = build.spec.costs.contains(name);
      is_on_worker |= is_inline && (place.share > 0 || !pipeline.placement.is_null());
      places.push_back({place, is_inline ? nullptr : graph.devices.at(place.device)});
    }
    auto stage = std::make_unique<Stage>(spec, std::move(places), pipeline.engine.batch_pkts);
    const auto cost = build.spec.costs.find(name);
    if (cost != build.spec.costs.end()) {
      stage->set_cost(cost->second, pipeline.engine.batch_pkts);
    } else if (is_on_worker) {
      throw ConfigError("no cost is known of " + name + ", which runs on its worker",
                        "simulation.costs." + name, "measure it, or use --costs prior");
    }
    graph.modules[graph.at(name)]->queue->set_stage(std::move(stage));
  }
}

}  // namespace batchplane::sim
