// SPDX-License-Identifier: BSD-3-Clause
// whole.h - runs the whole pipeline on the worker's own loop and compares it with the sum of the
// parts' costs: shows the time of a packet in context, and when it comes from another core.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/engine_costs.h"
#include "core/engine/worker.h"
#include "profile/far_feed.h"
#include "profile/profile.h"
#include "profile/walk.h"

namespace batchplane::profile {

// Before and behind the first splitter: the same code on whole batches, or many pieces of code on
// parts of them.
enum Stretch : uint8_t { kBefore, kBehind, kStretches };

// One way to run the pipeline, and the time per packet.
struct WholePoint {
  bool is_far = false;        // fed from another core
  uint32_t trigger_pkts = 0;  // of every buffer behind a splitter
  double measured_ns_per_pkt = 0;
  CostLaw::Line parts[kStretches];  // share of each cost per packet, by the laws of the parts
  double pkts_per_loop = 0;
  double weight = 1;
};

// Measured costs over those by the laws of the parts.
struct Factors {
  double batch = 1;  // of what is paid per batch
  double pkt = 1;    // and per packet
};

// time of a packet = sum over both stretches of factors.batch * (per batch) + factors.pkt *
// (per packet), and from another core far.ns(n) / n more, n being the packets of a poll.
struct WholeCheck {
  std::vector<WholePoint> points;
  Factors factors[kStretches];
  FarCost far;
  double sampled_per_batch_ns = 0;  // that a sampled run takes longer for a module's batch
  GeneratorCosts generator;
  uint32_t n_rejected = 0;  // points that cannot be
  Doubts doubts;

  [[nodiscard]] double at(const WholePoint& point) const {
    double near_ns = 0;
    for (int s = 0; s < kStretches; ++s) {
      near_ns += point.parts[s].work_ns(factors[s].batch, factors[s].pkt);
    }
    if (!point.is_far) return near_ns;
    return near_ns + far.ns(point.pkts_per_loop) / point.pkts_per_loop;
  }
};

// Leaves out, and tells, points of packets from another core that cannot be: cheaper than the packets of the
// same core with the same trigger in full polls, or so dear that generator or worker had lost its core.
void reject_impossible(WholeCheck& check);

// Fits the factors, and the extra cost of packets from another core, to all measurements. Factors
// start at 1, and little evidence moves them little.
void fit_whole(WholeCheck& check);

// Owner: one thread, pinned and registered with the packet backend by the caller. Every task runs
// on it.
class WholeMeter {
 public:
  // `far_pool`: for generators on another core; as large as the daemon's would be, because they
  // cycle through all of it. `generator_core`: for generators that name no core; -1 = do not run
  // them.
  WholeMeter(Graph& graph, PacketPool& pool, PacketPool& far_pool, int generator_core);
  ~WholeMeter();

  // False if no generator or source of the pipeline brings packets.
  [[nodiscard]] bool has_traffic() const;
  void pass(double budget_ms);
  // Runs two loops, which leave the caches as the pipeline's loop leaves them.
  void stir();
  // Nothing if there is no traffic or a module was not measured.
  [[nodiscard]] std::optional<WholeCheck> result(const std::vector<ModuleProfile>& modules,
                                                 const EngineCosts& loop) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace batchplane::profile
