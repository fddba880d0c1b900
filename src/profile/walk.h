// SPDX-License-Identifier: BSD-3-Clause
// walk.h - carries traffic through a graph module by module and keeps what arrives at each, so that
// a module is measured on packets it would really see.
#pragma once

#include <functional>
#include <vector>

#include "profile/stage.h"
#include "traffic/generator.h"

namespace batchplane::profile {

struct Arrived {
  std::vector<PacketImage> pkts;
  bool is_stand_in = false;  // no traffic of the pipeline reaches it: plain packets instead
};

// One of the pipeline's generators, switched on but without a thread. Throws ConfigError.
[[nodiscard]] std::unique_ptr<traffic::Generator> generator_of(const GeneratorSpec& spec,
                                                               RingPort& ring, PacketPool& pool);

// The pipeline's generators, stepped on a clock of their own.
class Traffic {
 public:
  Traffic(const Graph& graph, PacketPool& pool);
  ~Traffic();

  // Fills the ring of `port` with the packets due next. False if nothing feeds it.
  bool feed(const std::string& port);

 private:
  struct Feeder {
    std::string port;
    std::shared_ptr<RingPort> ring;
    std::unique_ptr<traffic::Generator> generator;
    uint64_t now_ns = 1'000'000;
    uint64_t step_ns = 1'000;
  };
  std::vector<Feeder> feeders_;
};

// Up to `max_pkts` packets that arrive at each instance, in the order of instances. Module state
// (connections, neighbours) stays as the traffic made it.
[[nodiscard]] std::vector<Arrived> walk(Stage& stage, Traffic& traffic, uint32_t max_pkts);

}  // namespace batchplane::profile
