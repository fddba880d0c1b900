// SPDX-License-Identifier: BSD-3-Clause
// world.h - what the placement loop sees and steers: modules on devices, of an engine or of a simulation.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "placement/placing.h"
#include "placement/problem.h"

namespace batchplane::placement {

// A module that may run on devices. All counts are since the start.
struct StageInfo {
  struct Place {
    size_t device = 0;              // its index in World::devices()
    std::optional<BatchLaw> given;  // its law there, as the pipeline has it
    std::optional<BatchLaw> tried;  // as measured at the start
  };
  std::string name;
  std::string kind;
  uint32_t max_batch_pkts = 1;
  std::vector<Place> places;
};

struct StageCounts {
  struct Done {
    uint64_t jobs = 0;
    uint64_t pkts = 0;
    uint64_t run_ns = 0;  // that its device, or the worker, took
  };
  uint64_t offered_pkts = 0;
  uint64_t pkts = 0;   // of batches that were sent
  uint64_t bytes = 0;  // of those packets
  uint64_t held_pkts = 0;
  uint64_t max_held_pkts = 0;
  std::array<Done, kMaxPlaces> done;  // by place
};

struct FlowPath {
  uint64_t delay_slo_ns = 0;  // 0: none
  std::vector<std::string> modules;
};

class World {
 public:
  virtual ~World() = default;
  // The worker, if any module may run there, is kInline; without watts.
  [[nodiscard]] virtual const std::vector<Device>& devices() const = 0;
  [[nodiscard]] virtual const std::vector<StageInfo>& stages() const = 0;
  [[nodiscard]] virtual std::vector<FlowPath> flows() const = 0;
  [[nodiscard]] virtual bool is_up(size_t device, uint64_t now_ns) const = 0;
  [[nodiscard]] virtual StageCounts counts(size_t stage) const = 0;
  virtual void place(size_t stage, const Placing& placing) = 0;
};

}  // namespace batchplane::placement
