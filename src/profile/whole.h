// SPDX-License-Identifier: BSD-3-Clause
// whole.h - the pipeline as a whole on the worker's own loop, beside what the parts' costs add up
// to: what a packet takes in its company, and what it takes when it comes from another core.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/engine/worker.h"
#include "profile/far_feed.h"
#include "profile/loop_costs.h"
#include "profile/profile.h"
#include "profile/walk.h"

namespace batchplane::profile {

// Up to the first splitter and behind it: one piece of code on whole batches, and many on what is
// left of them.
enum Stretch : uint8_t { kBefore, kBehind, kStretches };

// One way to run the pipeline, and what a packet took then.
struct WholePoint {
  bool is_far = false;        // fed from another core
  uint32_t trigger_pkts = 0;  // of every buffer behind a splitter
  double measured_ns_per_pkt = 0;
  CostLaw::Line parts[kStretches];  // by the laws of the parts, a packet's share of each cost
  double pkts_per_loop = 0;
  double weight = 1;
};

// What was measured, over what the laws of the parts say.
struct Factors {
  double batch = 1;  // of what is paid per batch
  double pkt = 1;    // and per packet
};

// time of a packet = sum over both stretches of factors.batch * (per batch) + factors.pkt *
// (per packet), and from another core far.at(n) / n more, n being the packets of a poll.
struct WholeCheck {
  std::vector<WholePoint> points;
  Factors factors[kStretches];
  FarCost far;                      // ns
  double sampled_per_batch_ns = 0;  // that a sampled run takes longer for a module's batch
  GeneratorCosts generator;

  [[nodiscard]] double at(const WholePoint& point) const {
    double near_ns = 0;
    for (int s = 0; s < kStretches; ++s) {
      near_ns += point.parts[s].work_ns(factors[s].batch, factors[s].pkt);
    }
    if (!point.is_far) return near_ns;
    return near_ns + far.at(point.pkts_per_loop) / point.pkts_per_loop;
  }
};

// The factors, and what packets from another core take more, that explain best all that was
// measured. Little evidence moves factors little: they begin at 1.
void fit_whole(WholeCheck& check);

// Owner: one thread, pinned and registered with the packet backend by the caller. Every task runs
// on it.
class WholeMeter {
 public:
  // `far_pool`: for generators on another core, as large as the daemon's would be: they go through
  // all of it. `generator_core`: where those run that name no core themselves; -1 = nowhere.
  WholeMeter(Graph& graph, PacketPool& pool, PacketPool& far_pool, int generator_core);
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
