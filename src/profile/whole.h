// SPDX-License-Identifier: BSD-3-Clause
// whole.h - the pipeline as a whole on the worker's own loop, beside what the parts' costs add up
// to: tells whether the laws explain what a packet takes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/worker.h"
#include "profile/loop_costs.h"
#include "profile/profile.h"
#include "profile/walk.h"

namespace batchplane::profile {

struct WholeCheck {
  double measured_ns_per_pkt = 0;
  double law_ns_per_pkt = 0;
  double pkts_per_loop = 0;
};

// Owner: one thread, pinned and registered with the packet backend by the caller. Every task runs
// on it, buffers bypassed.
class WholeMeter {
 public:
  WholeMeter(Graph& graph, PacketPool& pool);
  ~WholeMeter();

  // False when no generator or source of the pipeline brings packets in.
  [[nodiscard]] bool has_traffic() const;
  void pass(double budget_ms);
  // Two loops: everything that a packet meets is in the caches as far as they reach.
  void stir();
  // Nothing without traffic, or when a module was not measured.
  [[nodiscard]] std::optional<WholeCheck> result(const std::vector<ModuleProfile>& modules,
                                                 const LoopCosts& loop) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace batchplane::profile
