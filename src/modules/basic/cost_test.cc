// SPDX-License-Identifier: BSD-3-Clause
// cost_test.cc - the cost module takes the given time per batch and per packet.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "module_harness.h"
#include "modules/basic/cost_times.h"

namespace batchplane {
namespace {

// The shortest of a few calls on n packets. The module never takes less than it was told; anything
// above that is the machine's other work, not the module's.
double min_ns(ModuleHarness& harness, uint32_t n) {
  std::vector<Packet*> pkts;
  for (uint32_t i = 0; i < n; ++i) pkts.push_back(harness.make_packet(make_frame()));
  double least = 1e18;
  for (int round = 0; round < 50; ++round) {
    const uint64_t start = TscClock::cycles();
    harness.info().run(&harness.module(), harness.ctx(), pkts.data(), n);
    const auto cycles = static_cast<double>(TscClock::cycles() - start);
    least = std::min(least, cycles / TscClock::instance().cycles_per_ns());
  }
  harness.ctx().free(pkts.data(), n);
  harness.ctx().flush_free();
  return least;
}

TEST(Cost, FollowsTheCostLaw) {
  const CostTimes times{.per_batch_ns = 2000, .per_pkt_ns = 100};
  EXPECT_EQ(times.busy_ns(1), 2100);
  EXPECT_EQ(times.busy_ns(32), 5200);
  ModuleHarness harness("cost", {{"cost_per_batch_ns", 2000}, {"cost_per_pkt_ns", 100.0}});
  EXPECT_EQ(harness.module().show()["cost_per_batch_ns"].as_double(), 2000);
  EXPECT_EQ(harness.module().show()["cost_per_pkt_ns"].as_double(), 100);
  EXPECT_GT(min_ns(harness, 1), 0.8 * 2100);
  EXPECT_GT(min_ns(harness, 32), 0.8 * 5200) << "more than for the batch alone";
}

TEST(Cost, CyclesAreAdded) {
  const double cycles = 1000 * TscClock::instance().cycles_per_ns();
  ModuleHarness harness("cost", {{"cost_per_batch_ns", 500}, {"cost_per_batch_cycles", cycles}});
  EXPECT_GT(min_ns(harness, 4), 0.8 * 1500);
  EXPECT_NEAR(harness.module().show()["cost_per_batch_ns"].as_double(), 1500, 1e-6);
}

TEST(Cost, LiveChangeAndSavedForm) {
  ModuleHarness harness("cost", {{"cost_per_batch_cycles", 1000}});
  harness.command("set", Dict{{"cost_per_batch_ns", 3000}, {"cost_per_pkt_ns", 0}});
  EXPECT_EQ(harness.module().show()["cost_per_batch_ns"].as_double(), 3000);
  EXPECT_GT(min_ns(harness, 8), 0.8 * 3000);
  ModuleHarness again("cost", harness.module().saved_params());
  EXPECT_EQ(again.module().show(), harness.module().show());
  EXPECT_THROW(harness.command("set", Dict{{"cost_per_pkt_ns", -1}}), ConfigError);
  EXPECT_THROW(harness.command("set", Dict{{"cost", 1}}), ConfigError);
}

TEST(Cost, NothingAskedNothingDone) {
  ModuleHarness harness("cost");
  const std::vector<Bytes> frames(5, make_frame());
  EXPECT_EQ(harness.run(frames).at(0), frames);
}

}  // namespace
}  // namespace batchplane
