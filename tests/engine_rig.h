// SPDX-License-Identifier: BSD-3-Clause
// engine_rig.h - a whole engine on virtual time, looped on the calling thread, its books checked.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "core/engine/engine.h"

namespace batchplane {

inline uint64_t sum_of(const std::vector<uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

class EngineRig {
 public:
  // `spare_pkts` is what the pool has beyond the least: graphs that are applied later may hold
  // more.
  explicit EngineRig(const PipelineSpec& spec, uint32_t spare_pkts = 4096,
                     uint32_t data_bytes = 2048) {
    static std::atomic<uint32_t> next_pool{0};
    auto graph = build(spec);
    const auto n_pkts = static_cast<uint32_t>(Engine::min_pool_pkts(*graph)) + spare_pkts;
    auto pool =
        std::make_unique<PacketPool>("rig" + std::to_string(next_pool++), n_pkts, data_bytes);
    engine_ = std::make_unique<Engine>(std::move(graph), std::move(pool), quiescence_);
    for (const auto& worker : engine_->workers()) worker->use_virtual_clock(&now_ns);
  }

  [[nodiscard]] std::unique_ptr<Graph> build(const PipelineSpec& spec) const {
    auto env = std::make_unique<Environment>();
    env->quiescence = quiescence_.get();
    return build_graph(spec, std::move(env));
  }
  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] Worker& worker(size_t i = 0) { return *engine_->workers()[i]; }
  void loop(uint32_t n, uint64_t step_ns = 100) {
    for (uint32_t i = 0; i < n; ++i) {
      now_ns += step_ns;
      for (const auto& each : engine_->workers()) each->loop_once();
    }
  }

  // What went in has left or is held, by every way of counting it.
  Snapshot balanced() {
    Snapshot snapshot = engine_->snapshot(true);
    const Balance& b = snapshot.balance;
    EXPECT_TRUE(b.is_exact()) << b.in_pkts << " in + " << b.originated_pkts << " made, "
                              << b.sent_pkts << " sent + " << b.dropped_pkts << " dropped + "
                              << b.held_pkts << " held";
    uint64_t metered = 0;
    for (const FlowSnapshot& flow : snapshot.flows) {
      metered += flow.total.pkts;
      EXPECT_EQ(sum_of(flow.fine_buckets), flow.total.pkts) << flow.name;
    }
    EXPECT_EQ(metered, b.sent_pkts);
    uint64_t held = 0;
    for (const ModuleSnapshot& module : snapshot.modules)
      held += module.held_pkts + module.kept_pkts;
    EXPECT_EQ(held, b.held_pkts);
    return snapshot;
  }
  // No packet is anywhere but in the pool or held. Slow with DPDK.
  void expect_pool_whole(const Snapshot& snapshot) {
    const PacketPool& pool = *engine_->pool();
    EXPECT_EQ(pool.available_pkts() + snapshot.balance.held_pkts, pool.size_pkts());
  }

  uint64_t now_ns = 1'000'000;

 private:
  std::shared_ptr<Quiescence> quiescence_ = std::make_shared<Quiescence>();
  std::unique_ptr<Engine> engine_;
};

// The line that tells the first mistake in what is done; "none" where there is none.
inline std::string mistake_in(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigErrors& errors) {
    return errors.errors.front().line();
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "none";
}

}  // namespace batchplane
