// SPDX-License-Identifier: BSD-3-Clause
// placing.h - stages and devices of a simulation, as placement sees and steers them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "placement/world.h"
#include "sim/graph.h"
#include "sim/spec.h"

namespace batchplane::sim {

class SimulatedStages final : public placement::World {
 public:
  // `graph`: the one that runs, whichever it is by then.
  SimulatedStages(const std::unique_ptr<Graph>& graph, const Spec& spec);

  [[nodiscard]] const std::vector<placement::Device>& devices() const override { return devices_; }
  [[nodiscard]] const std::vector<placement::StageInfo>& stages() const override { return infos_; }
  [[nodiscard]] std::vector<placement::FlowPath> flows() const override;
  [[nodiscard]] bool is_up(size_t /*device*/, uint64_t /*now_ns*/) const override { return true; }
  [[nodiscard]] placement::StageCounts counts(size_t stage) const override;
  void place(size_t stage, const placement::Placing& placing) override;

 private:
  [[nodiscard]] Queue& queue_of(size_t stage) const;
  size_t index_of(const std::string& device, const Spec& spec);

  const std::unique_ptr<Graph>& graph_;
  std::vector<uint64_t> slo_ns_;  // by flow
  std::vector<placement::StageInfo> infos_;
  std::vector<placement::Device> devices_;
};

}  // namespace batchplane::sim
