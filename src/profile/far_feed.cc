// SPDX-License-Identifier: BSD-3-Clause
#include "profile/far_feed.h"

#include <sched.h>

#include "base/clock.h"
#include "base/percentile.h"
#include "base/pin_thread.h"
#include "core/engine/thread.h"
#include "profile/fit.h"
#include "profile/walk.h"

namespace batchplane::profile {
namespace {

constexpr size_t kMaxTimes = 1U << 14;
constexpr size_t kMinTimes = 20;
constexpr uint32_t kTrips = 1000;
constexpr uint32_t kOver = ~0U;
// If the trips take longer, both threads shared a core, or one lost its own.
constexpr uint64_t kMaxTripsNs = 20'000'000;
constexpr uint64_t kMaxTripNs = 10'000;  // longer trips waited for a core, not for the cache line
// Each direction of a round trip has two equal halves: the writer takes the cache line from the
// reader, and the reader gets it back. The second half is the reader's time and part of the cost of
// its polls.
constexpr double kHalvesOfTrip = 4;

void note(std::vector<double>& times, double ns) {
  if (times.size() < kMaxTimes) times.push_back(ns);
}

}  // namespace

FarFeed::FarFeed(const Graph& graph, PacketPool& pool, int core) : core_(core) {
  for (const GeneratorSpec& spec : graph.spec.generators) {
    auto ring = std::dynamic_pointer_cast<RingPort>(graph.env->port(spec.port));
    if (ring == nullptr) continue;
    if (spec.core >= 0) core_ = spec.core;
    auto generator = generator_of(spec, *ring, pool);
    feeders_.push_back({std::move(ring), std::move(generator), {}, {}});
    Feeder& feeder = feeders_.back();
    feeder.look_ns.reserve(kMaxTimes);
    feeder.burst_ns.resize(traffic::Generator::kBurstPkts + 1);
    for (std::vector<double>& times : feeder.burst_ns) times.reserve(kMaxTimes);
  }
}

bool FarFeed::is_possible() const {
  return core_ >= 0 && core_ != sched_getcpu() && !feeders_.empty();
}

void FarFeed::start(double rate_pps) {
  must_stop_.store(false, std::memory_order_release);
  for (Feeder& feeder : feeders_) {
    feeder.generator->set_saturating(rate_pps <= 0);
    if (rate_pps > 0) feeder.generator->set_rate(rate_pps);
    threads_.emplace_back([this, &feeder] {
      pin_this_thread(core_);
      run(feeder);
    });
  }
}

void FarFeed::stop() {
  must_stop_.store(true, std::memory_order_release);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void FarFeed::time_line() {
  alignas(64) std::atomic<uint32_t> line{0};
  std::thread other([&] {
    if (!pin_this_thread(core_)) line.store(kOver, std::memory_order_release);
    for (uint32_t turn = 1; turn < 2 * kTrips; turn += 2) {
      uint32_t seen = 0;
      while ((seen = line.load(std::memory_order_acquire)) != turn && seen != kOver) {
      }
      if (seen == kOver) return;
      line.store(turn + 1, std::memory_order_release);
    }
  });
  const TscClock& clock = TscClock::instance();
  const uint64_t end_ns = clock.now_ns() + kMaxTripsNs;
  for (uint32_t turn = 1; turn < 2 * kTrips; turn += 2) {
    if (line.load(std::memory_order_acquire) == kOver || clock.now_ns() > end_ns) break;
    const uint64_t begin_ns = clock.now_ns();
    line.store(turn, std::memory_order_release);
    uint64_t now_ns = begin_ns;
    while (line.load(std::memory_order_acquire) == turn && now_ns <= end_ns) {
      now_ns = clock.now_ns();
    }
    if (now_ns > end_ns) break;
    const uint64_t trip_ns = clock.now_ns() - begin_ns;
    if (trip_ns <= kMaxTripNs) note(trip_ns_, static_cast<double>(trip_ns));
  }
  line.store(kOver, std::memory_order_release);
  other.join();
}

// Same as Generator::run, but timed.
void FarFeed::run(Feeder& feeder) {
  [[maybe_unused]] const PacketThread registered;
  const TscClock& clock = TscClock::instance();
  // The schedule starts now; otherwise all that fell due before would be sent at once.
  feeder.generator->set_on(false);
  (void)feeder.generator->run_burst(clock.now_ns());
  feeder.generator->set_on(true);
  while (!must_stop_.load(std::memory_order_acquire)) {
    const uint64_t begin_ns = clock.now_ns();
    const uint32_t sent = feeder.generator->run_burst(begin_ns);
    if (sent == 0) std::this_thread::yield();
    const auto taken_ns = static_cast<double>(clock.now_ns() - begin_ns);
    note(sent == 0 ? feeder.look_ns : feeder.burst_ns[sent], taken_ns);
  }
}

GeneratorCosts FarFeed::costs(Doubts& doubts) const {
  GeneratorCosts costs;
  if (!trip_ns_.empty()) costs.store_ns = percentile(trip_ns_, 0.5) / kHalvesOfTrip;
  for (const Feeder& feeder : feeders_) {
    if (!feeder.look_ns.empty()) costs.look_ns = percentile(feeder.look_ns, 0.5);
    std::vector<CostLaw::Point> points;
    for (uint32_t n = 1; n < feeder.burst_ns.size(); ++n) {
      if (feeder.burst_ns[n].size() < kMinTimes) continue;
      points.push_back({n, percentile(feeder.burst_ns[n], 0.5)});
    }
    if (points.empty()) continue;
    const CostLaw::Line line =
        line_of(points, kLeastNoiseNs,
                {"a burst of a generator", "a packet of a generator's burst"}, doubts);
    costs.per_burst_ns = line.cost_per_batch_ns;
    costs.per_pkt_ns = line.cost_per_pkt_ns;
  }
  return costs;
}

}  // namespace batchplane::profile
