// SPDX-License-Identifier: BSD-3-Clause
#include "app/control/placed_stages.h"

#include <algorithm>

namespace batchplane::app {

PlacedStages::PlacedStages(const Graph& graph) : graph_(graph) {
  for (const Instance& instance : graph.instances) {
    auto* const stage = dynamic_cast<offload::Stage*>(instance.module.get());
    if (stage == nullptr) continue;
    placement::StageInfo info{.name = stage->name(),
                              .kind = stage->kind(),
                              .max_batch_pkts = stage->max_batch_pkts(),
                              .places = {}};
    for (uint32_t p = 0; p < stage->n_places(); ++p) {
      const offload::Device* const device = stage->device_at(p);
      placement::StageInfo::Place place{.device = index_of(device), .given = {}, .tried = {}};
      const BatchLaw* const law = device == nullptr ? nullptr : stage->law_on(*device);
      if (law != nullptr) {
        const bool is_given = device->options().laws.contains(stage->kind());
        (is_given ? place.given : place.tried) = *law;
      }
      info.places.push_back(std::move(place));
    }
    stages_.push_back(stage);
    infos_.push_back(std::move(info));
  }
}

size_t PlacedStages::index_of(const offload::Device* device) {
  const auto known = std::ranges::find(known_, device);
  if (known != known_.end()) return static_cast<size_t>(known - known_.begin());
  known_.push_back(device);
  placement::Device made{.name = placement::kInline};
  if (device != nullptr) {
    const offload::DeviceOptions& options = device->options();
    made = {options.name, options.off_w, options.idle_w, options.active_w, true};
  }
  devices_.push_back(std::move(made));
  return devices_.size() - 1;
}

std::vector<placement::FlowPath> PlacedStages::flows() const {
  std::vector<placement::FlowPath> flows;
  for (size_t f = 0; f < graph_.flow_paths.size(); ++f)
    flows.push_back({graph_.spec.flows[f].delay_slo_ns, graph_.flow_paths[f]});
  return flows;
}

bool PlacedStages::is_up(size_t device, uint64_t now_ns) const {
  return known_[device] == nullptr || known_[device]->is_up(now_ns);
}

placement::StageCounts PlacedStages::counts(size_t index) const {
  const offload::Stage& stage = *stages_[index];
  const offload::StageCounts& counts = stage.counts();
  const auto now = [](const std::atomic<uint64_t>& value) {
    return value.load(std::memory_order_relaxed);
  };
  placement::StageCounts seen;
  seen.held_pkts = stage.held_pkts();
  seen.max_held_pkts = stage.max_held_pkts();
  // Put in, found no room, or refused.
  seen.offered_pkts = stage.taken_pkts() + seen.held_pkts + now(counts.refused_pkts) +
                      stage.arrival_counts().lost_pkts;
  seen.pkts = now(counts.pkts);
  seen.bytes = now(counts.bytes);
  for (size_t p = 0; p < infos_[index].places.size(); ++p) {
    const offload::StageCounts::Done& done = counts.done[p];
    seen.done[p] = {now(done.jobs), now(done.pkts), now(done.run_ns)};
  }
  return seen;
}

void PlacedStages::place(size_t stage, const placement::Placing& placing) {
  stages_[stage]->place(placing);
}

std::vector<std::string> declared_devices(const Graph& graph) {
  std::vector<std::string> names;
  for (const DeviceSpec& device : graph.spec.devices) names.push_back(device.name);
  return names;
}

}  // namespace batchplane::app
