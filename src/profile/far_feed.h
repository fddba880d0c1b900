// SPDX-License-Identifier: BSD-3-Clause
// far_feed.h - runs the pipeline's generators on a thread of another core, always ahead of the
// worker.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/engine_costs.h"
#include "core/graph/graph.h"
#include "core/packet/packet_pool.h"
#include "ports/ring_port.h"
#include "profile/doubts.h"
#include "traffic/generator.h"

namespace batchplane::profile {

// Owner: one thread. Generators run from start() to stop().
class FarFeed {
 public:
  // `core`: for generators that name no core; -1 = do not run them.
  FarFeed(const Graph& graph, PacketPool& pool, int core);
  ~FarFeed() { stop(); }
  FarFeed(const FarFeed&) = delete;
  FarFeed& operator=(const FarFeed&) = delete;

  // Whether there is a generator, and a core for it other than the caller's.
  [[nodiscard]] bool is_possible() const;
  // rate_pps 0: as fast as the rings take packets.
  void start(double rate_pps);
  void stop();
  // Measures the transfer time of a cache line between both cores; takes less than a millisecond.
  void time_line();
  // From the measurements so far; 0 = not measured. Not while running.
  [[nodiscard]] GeneratorCosts costs(Doubts& doubts) const;

 private:
  struct Feeder {
    std::shared_ptr<RingPort> ring;  // outlives the generator
    std::unique_ptr<traffic::Generator> generator;
    std::vector<double> look_ns;
    std::vector<std::vector<double>> burst_ns;  // [n]: bursts of n
  };
  void run(Feeder& feeder);

  int core_;
  std::vector<Feeder> feeders_;
  std::vector<double> trip_ns_;
  std::atomic<bool> must_stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace batchplane::profile
