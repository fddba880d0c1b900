// SPDX-License-Identifier: BSD-3-Clause
// traffic.cc - runs generators without threads: each call sends the packets due in the next stretch
// of generator time.
#include <algorithm>

#include "core/module/args.h"
#include "profile/walk.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kMaxSteps = 64;

}  // namespace

std::unique_ptr<traffic::Generator> generator_of(const GeneratorSpec& spec, RingPort& ring,
                                                 PacketPool& pool) {
  std::vector<ConfigError> errors;
  Args args(traffic::generator_params(), spec.params, "generators." + spec.name, errors);
  if (!errors.empty()) throw errors.front();
  args.set_name(spec.name);
  auto generator =
      std::make_unique<traffic::Generator>(args, ring.ring(), pool, ring.producer_counts());
  generator->set_on(true);
  return generator;
}

Traffic::Traffic(const Graph& graph, PacketPool& pool) {
  for (const GeneratorSpec& spec : graph.spec.generators) {
    Feeder feeder{.port = spec.port,
                  .ring = std::dynamic_pointer_cast<RingPort>(graph.env->port(spec.port))};
    if (feeder.ring == nullptr) continue;
    feeder.generator = generator_of(spec, *feeder.ring, pool);
    feeders_.push_back(std::move(feeder));
  }
}

Traffic::~Traffic() = default;

// A stretch in which nothing is due is doubled, because rates span nine orders of magnitude.
bool Traffic::feed(const std::string& port) {
  const auto feeder = std::ranges::find(feeders_, port, &Feeder::port);
  if (feeder == feeders_.end()) return false;
  for (uint32_t step = 0; step < kMaxSteps; ++step) {
    if (feeder->generator->run_burst(feeder->now_ns) != 0) return true;
    if (feeder->ring->ring().free_slots() == 0) return true;
    feeder->now_ns += feeder->step_ns;
    if (step % 4 == 3) feeder->step_ns = std::min<uint64_t>(feeder->step_ns * 2, 1ULL << 40);
  }
  return false;
}

}  // namespace batchplane::profile
