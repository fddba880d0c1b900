// SPDX-License-Identifier: BSD-3-Clause
// many_workers_test.cc - many workers: which loop is next, rings between them, and that idle workers
// sleep no longer than until something reaches them.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "base/rng.h"
#include "sim/loop_order.h"
#include "sim/many_workers_util.h"
#include "sim/simulation.h"
#include "sim/slots.h"

namespace batchplane::sim {
namespace many_workers_test {

TEST(LoopOrder, TheEarliestLoopIsNextAndOfEqualOnesTheFirstWorkers) {
  for (const uint32_t n : {1U, 2U, 3U, 16U, 37U, 64U}) {
    LoopOrder order;
    order.resize(n);
    std::vector<uint64_t> ticks(n, ~0ULL);
    Rng rng(n);
    for (uint32_t i = 0; i < 2000; ++i) {
      const uint32_t worker = rng.below(n);
      ticks[worker] = rng.below(n / 2 + 2);
      order.set(worker, ticks[worker]);
      const auto first = std::ranges::min_element(ticks);
      ASSERT_EQ(order.first(), first - ticks.begin());
      ASSERT_EQ(order.ticks_of(order.first()), *first);
    }
  }
}

TEST(Slots, KeepTheirOrderAsTheyWrapAndGrow) {
  Slots slots;
  std::deque<uint64_t> wanted;
  Rng rng(1);
  for (uint64_t i = 0; i < 20'000; ++i) {
    // Fills and empties in turn, so that it grows at any place of its head.
    if (rng.below(100) < (i / 200 % 2 == 0 ? 60 : 40)) {
      slots.push_back({nullptr, i});
      wanted.push_back(i);
    } else if (!slots.empty()) {
      slots.pop_front();
      wanted.pop_front();
    }
    ASSERT_EQ(slots.size(), wanted.size());
    if (wanted.empty()) continue;
    const uint32_t at = rng.below(static_cast<uint32_t>(wanted.size()));
    ASSERT_EQ(slots.front().since_ns, wanted.front());
    ASSERT_EQ(slots[at].since_ns, wanted[at]);
  }
}

void randomize(SourceSpec& source, Rng& rng) {
  source.is_saturating = rng.below(4) == 0;
  source.rate_pps = 1e4 * (1 + rng.below(600));
  source.arrivals = static_cast<exec::ArrivalKind>(rng.below(3));
  source.order = rng.below(2) == 0 ? exec::Order::kRandom : exec::Order::kRoundRobin;
  source.on_ns = 20'000;
  source.off_ns = 30'000;
  if (rng.below(4) == 0) source.window_pkts = 1 + rng.below(100);
  if (rng.below(3) != 0) return;
  source.costs.per_pkt_ns = 5;
  source.costs.look_ns = 7;
  source.costs.store_ns = 60;
}

// Stars, some with queues that hold the first worker back, some with several or no tasks on a
// worker; and rows.
Spec random_workers(uint64_t seed) {
  Rng rng(seed);
  const uint32_t n = 2 + rng.below(6);
  const uint32_t shape = rng.below(3);
  SpecMaker maker = shape == 0 ? make_row(n) : make_star(n, rng.below(2) == 0, 10 + rng.below(300));
  Spec& spec = maker.spec();
  spec.pipeline.engine.is_idle_hold = rng.below(3) == 0;
  spec.pipeline.engine.runs_by_deadline = rng.below(4) == 0;
  spec.pipeline.engine.sample_one_run_in = 7;
  for (ModuleSpec& module : spec.pipeline.modules) {
    const bool is_queue = module.kind == "queue";
    if (is_queue) module.params["size_pkts"] = Value(32U << rng.below(4));
    if (is_queue && shape == 2 && rng.below(2) == 0) module.worker = worker_name(rng.below(n));
    if ((module.kind != "cost" && !is_queue) || rng.below(3) != 0) continue;
    module.trigger_pkts = 1 + rng.below(32);
    module.age_limit_ns = rng.below(2) == 0 ? 0 : 1000 + rng.below(60'000);
  }
  for (SourceSpec& source : spec.sources) randomize(source, rng);
  spec.loop.empty_poll_ns = 20 + rng.below(40);
  spec.loop.clock_read_ns = rng.below(2) == 0 ? 0 : 11.3;
  if (rng.below(3) == 0) spec.noise_sigma = 0.1;
  if (rng.below(3) == 0) spec.stalls = {3000, {1000, 7000, 30'000}};
  return spec;
}

void run(Simulation& sim, uint64_t seed) {
  sim.recorder().limit(5000, 20'000);
  sim.update_recording();
  Rng rng(seed);
  for (uint32_t period = 0; period < 6; ++period) {
    sim.run_until(sim.now_ns() + 20'000 + rng.below(40'000));
    (void)sim.period();
    if (period == 2) sim.source("load").set_rate(2e5 + rng.below(3'000'000), sim.now_ns());
    if (period == 3) sim.stall(rng.below(2), rng.below(20'000));
    if (period == 4) sim.source("load").set_on(false, sim.now_ns());
  }
}

void expect_same_records(const Recorder& a, const Recorder& b, uint64_t seed) {
  ASSERT_EQ(a.executions.size(), b.executions.size()) << seed;
  for (size_t i = 0; i < a.executions.size(); ++i) {
    ASSERT_EQ(a.executions[i].start_ns, b.executions[i].start_ns) << seed << ", " << i;
    ASSERT_EQ(a.executions[i].module, b.executions[i].module) << seed << ", " << i;
    ASSERT_EQ(a.executions[i].batch_pkts, b.executions[i].batch_pkts) << seed << ", " << i;
  }
  ASSERT_EQ(a.packets.size(), b.packets.size()) << seed;
  for (size_t i = 0; i < a.packets.size(); ++i) {
    ASSERT_EQ(a.packets[i].flow, b.packets[i].flow) << seed << ", " << i;
    ASSERT_EQ(a.packets[i].exit_ns, b.packets[i].exit_ns) << seed << ", " << i;
  }
}

TEST(ManyWorkers, IdleWorkersSleepAndMissNothing) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Spec spec = random_workers(seed);
    Simulation sleeps(spec);
    Simulation steps(spec);
    steps.set_idle_skipping(false);
    run(sleeps, seed);
    run(steps, seed);
    for (const char* const what : {"runtime", "flows", "buffers", "drops", "generators"}) {
      EXPECT_TRUE(sleeps.show(what) == steps.show(what)) << what << ", seed " << seed;
    }
    expect_same_records(sleeps.recorder(), steps.recorder(), seed);
  }
}

}  // namespace many_workers_test
}  // namespace batchplane::sim
