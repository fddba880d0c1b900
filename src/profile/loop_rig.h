// SPDX-License-Identifier: BSD-3-Clause
// loop_rig.h - a small pipeline whose worker is stepped manually on pre-filled rings.
#pragma once

#include <memory>
#include <vector>

#include "core/engine/worker.h"
#include "profile/stage.h"

namespace batchplane::profile {

// Modules between an input `in` on a ring and the sinks.
enum class Middle : uint8_t {
  kNothing,
  kSplit,   // in turn over `gates` sinks
  kBuffer,  // a merge with a trigger
};

struct LoopCase {
  Middle middle = Middle::kNothing;
  uint32_t batch_pkts = 32;
  uint32_t gates = 1;
  uint32_t trigger_pkts = 0;
};

class LoopRig {
 public:
  static constexpr uint32_t kRingPkts = 256;
  static constexpr uint32_t kEmptyLoops = 32;

  LoopRig(const LoopCase& what, PacketPool& pool);
  ~LoopRig();

  // Loops that run() times at once.
  [[nodiscard]] uint32_t n_loops() const;
  // ns per loop with a batch, averaged over as many loops as the ring has batches for.
  [[nodiscard]] double run();
  // ns per loop that finds nothing.
  [[nodiscard]] double run_empty();

  [[nodiscard]] Graph& graph() { return *graph_; }

 private:
  void fill();

  LoopCase what_;
  PacketPool& pool_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<exec::FlowMeter> meter_;
  std::unique_ptr<Worker> worker_;
  RingPort* ring_;
  std::vector<PacketImage> images_;
};

}  // namespace batchplane::profile
