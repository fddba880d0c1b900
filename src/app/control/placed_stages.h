// SPDX-License-Identifier: BSD-3-Clause
// placed_stages.h - stages and devices of an engine's graph, as placement sees and steers them.
#pragma once

#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "offload/stage.h"
#include "placement/world.h"

namespace batchplane::app {

// As long as the graph is there. Serialised by the caller, like the engine.
class PlacedStages final : public placement::World {
 public:
  explicit PlacedStages(const Graph& graph);

  [[nodiscard]] const std::vector<placement::Device>& devices() const override { return devices_; }
  [[nodiscard]] const std::vector<placement::StageInfo>& stages() const override { return infos_; }
  [[nodiscard]] std::vector<placement::FlowPath> flows() const override;
  [[nodiscard]] bool is_up(size_t device, uint64_t now_ns) const override;
  [[nodiscard]] placement::StageCounts counts(size_t stage) const override;
  void place(size_t stage, const placement::Placing& placing) override;

 private:
  size_t index_of(const offload::Device* device);

  const Graph& graph_;
  std::vector<offload::Stage*> stages_;
  std::vector<placement::StageInfo> infos_;
  std::vector<const offload::Device*> known_;  // by index in devices_; null: workers
  std::vector<placement::Device> devices_;
};

// The names of all devices that a pipeline declares.
[[nodiscard]] std::vector<std::string> declared_devices(const Graph& graph);

}  // namespace batchplane::app
