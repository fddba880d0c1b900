// SPDX-License-Identifier: BSD-3-Clause
// pace_test.cc - departure times against exact fractions, flows apart, horizons and live changes.
#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "module_harness.h"

namespace batchplane {
namespace pace_test {

// Departure times have 32 bits and wrap here.
constexpr uint64_t kWrapNs = 1ULL << (32 + kDepartureTickShift);

Packet* marked(ModuleHarness& harness, uint32_t mark, uint32_t len_bytes) {
  Packet* const pkt = harness.make_packet(make_frame({.len_bytes = len_bytes}));
  pkt->set_mark(mark);
  return pkt;
}
// How much later than at_ns the packet leaves, in steps of 16 ns.
int64_t after_ns(const Output& output, uint64_t at_ns) {
  EXPECT_NE(output.meta.flags & kMetaDeparture, 0);
  const auto ticks = static_cast<uint32_t>(at_ns >> kDepartureTickShift);
  const int64_t ahead = static_cast<int32_t>(output.departure_ticks - ticks);
  return ahead * 16 - static_cast<int64_t>(at_ns % 16);
}
std::vector<int64_t> departures_of(ModuleHarness& harness, uint32_t n_pkts, uint32_t len_bytes,
                                   uint32_t mark = 0) {
  std::vector<Packet*> pkts;
  for (uint32_t i = 0; i < n_pkts; ++i) pkts.push_back(marked(harness, mark, len_bytes));
  std::vector<int64_t> found;
  for (const Output& output : harness.run_packets(pkts).outputs) {
    found.push_back(after_ns(output, harness.ctx().now_ns));
  }
  return found;
}

// Times are compared multiplied by the rate, so that they are whole numbers.
TEST(Pace, SpacesEachFlowExactly) {
  constexpr uint32_t kFlows = 5;
  for (const uint64_t rate_bps : {64'000UL, 7'000'000UL, 999'999'937UL, 100'000'000'000UL}) {
    ModuleHarness harness(
        "pace", {{"rate_bps", rate_bps}, {"max_flows", kFlows}, {"horizon_us", 10'000'000}});
    Rng rng(rate_bps);
    const uint64_t pkt_ns = 8'000'000'000'000 / rate_bps;
    uint64_t now_ns = kWrapNs - 60 * pkt_ns;
    std::map<uint32_t, __int128> next;  // of a flow, in ns at one bit a second
    for (uint32_t round = 0; round < 300; ++round) {
      now_ns += rng.below(2) * rng.below(static_cast<uint32_t>(2 * pkt_ns + 2));
      harness.set_now_ns(now_ns);
      std::vector<Packet*> pkts;
      std::vector<uint64_t> exact_ns;
      for (uint32_t i = 1 + rng.below(3); i != 0; --i) {
        const uint32_t mark = rng.below(3 * kFlows);
        const uint32_t len_bytes = 60 + rng.below(1400);
        __int128& at = next[mark % kFlows];
        at = std::max(at, static_cast<__int128>(now_ns) * rate_bps);
        const auto at_ns = static_cast<uint64_t>(at / rate_bps);
        if (at_ns > now_ns + 9'000'000'000) continue;
        exact_ns.push_back(at_ns);
        pkts.push_back(marked(harness, mark, len_bytes));
        at += static_cast<__int128>(len_bytes) * 8'000'000'000;
      }
      if (pkts.empty()) continue;
      const Outcome outcome = harness.run_packets(pkts);
      ASSERT_EQ(outcome.outputs.size(), exact_ns.size());
      for (size_t i = 0; i < exact_ns.size(); ++i) {
        const int64_t late_ns = after_ns(outcome.outputs[i], exact_ns[i]);
        ASSERT_GE(late_ns, 0) << rate_bps;
        ASSERT_LE(late_ns, 17) << rate_bps;
      }
    }
    EXPECT_GT(now_ns, kWrapNs);
    EXPECT_EQ(harness.leaked_pkts(), 0U);
  }
}

TEST(Pace, AnotherFlowDoesNotWait) {
  ModuleHarness harness("pace", {{"rate_bps", 8'000'000}});  // a byte in 1000 ns
  EXPECT_EQ(departures_of(harness, 3, 100, 1), (std::vector<int64_t>{0, 100'000, 200'000}));
  EXPECT_EQ(departures_of(harness, 2, 100, 2), (std::vector<int64_t>{0, 100'000}));
  // A mark's generation does not make another flow.
  EXPECT_EQ(departures_of(harness, 1, 100, 7U << 24 | 0), (std::vector<int64_t>{300'000}));
}

TEST(Pace, ConnectionsHaveRatesOfTheirOwn) {
  ModuleHarness harness("pace", {{"rate_bps", 8'000'000}, {"flow_by", "hash"}});
  std::vector<Bytes> frames(2, make_frame({.len_bytes = 96}));
  for (uint16_t port = 1; port <= 40; ++port) frames.push_back(make_frame({.port_src = port}));
  const Outcome outcome = harness.run(frames);
  EXPECT_EQ(after_ns(outcome.outputs[1], harness.ctx().now_ns), 96'000);
  uint32_t n_at_once = 0;
  for (const Output& output : outcome.outputs) {
    n_at_once += after_ns(output, harness.ctx().now_ns) == 0 ? 1 : 0;
  }
  EXPECT_GE(n_at_once, 8U);  // of 16 flows
  EXPECT_LE(n_at_once, 16U);
}

TEST(Pace, DropsWhatWouldLeaveBeyondTheHorizon) {
  ModuleHarness harness("pace", {{"rate_bps", 8'000'000}, {"horizon_us", 5000}});
  std::vector<Packet*> pkts;
  for (uint32_t i = 0; i < 20; ++i) pkts.push_back(marked(harness, 0, 1000));
  const Outcome outcome = harness.run_packets(pkts);
  EXPECT_EQ(outcome.outputs.size(), 6U);  // after 0 to 5 ms
  EXPECT_EQ(outcome.dropped_for("pace_horizon"), 14U);
  // They have cost the flow nothing.
  harness.set_now_ns(harness.ctx().now_ns + 1'000'000);
  EXPECT_EQ(departures_of(harness, 2, 1000), (std::vector<int64_t>{5'000'000}));
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

// Repeated packets come faster than any clock goes.
TEST(Pace, HasNoHorizonWhileItIsTimed) {
  Environment env;
  env.repeats_packets = true;
  ModuleHarness harness("pace", {{"rate_bps", 8'000'000}, {"horizon_us", 5000}}, 1, &env);
  EXPECT_EQ(departures_of(harness, 20, 1000).size(), 20U);
}

TEST(Pace, DelaysAndScatters) {
  ModuleHarness harness("pace", {{"delay_us", 300}, {"jitter_us", 100}});
  int64_t least_ns = 1'000'000;
  int64_t most_ns = 0;
  for (const int64_t at_ns : departures_of(harness, 200, 60)) {
    least_ns = std::min(least_ns, at_ns);
    most_ns = std::max(most_ns, at_ns);
  }
  EXPECT_GE(least_ns, 300'000);
  EXPECT_LT(least_ns, 320'000);
  EXPECT_GT(most_ns, 380'000);
  EXPECT_LT(most_ns, 400'016);
}

TEST(Pace, ChangesLive) {
  ModuleHarness harness("pace", {{"rate_bps", 8'000'000}});
  (void)departures_of(harness, 2, 1000);
  harness.command("set", Dict{{"rate_bps", 80'000'000}});
  // What has its time keeps it.
  EXPECT_EQ(departures_of(harness, 3, 1000),
            (std::vector<int64_t>{2'000'000, 2'100'000, 2'200'000}));
  harness.command("set", Dict{{"rate_bps", 0}, {"delay_us", 50}});
  EXPECT_EQ(departures_of(harness, 2, 1000), (std::vector<int64_t>{50'000, 50'000}));
  EXPECT_EQ(harness.module().saved_params().at("delay_us").as_int(), 50);
  const auto refused = [&](const Dict& args) {
    return refusal_of([&] { harness.command("set", args); });
  };
  EXPECT_NE(refused({{"rate_bps", 15'999}}).find("at least 16000"), std::string::npos);
  EXPECT_NE(refused({{"horizon_us", 49}}).find("raise horizon_us"), std::string::npos);
  EXPECT_NE(refused({{"max_flows", 7}}).find("max_flows"), std::string::npos);
  EXPECT_EQ(departures_of(harness, 1, 1000), (std::vector<int64_t>{50'000}));
}

TEST(Pace, AnApplyForgetsNoTimes) {
  const Dict params{{"rate_bps", 8'000'000}, {"max_flows", 8}};
  ModuleHarness old("pace", params);
  (void)departures_of(old, 3, 1000);
  ModuleHarness same("pace", params);
  same.module().adopt(old.module());
  EXPECT_EQ(departures_of(same, 1, 1000), (std::vector<int64_t>{3'000'000}));
  ModuleHarness other("pace", {{"rate_bps", 8'000'000}, {"max_flows", 9}});
  other.module().adopt(same.module());
  EXPECT_EQ(departures_of(other, 1, 1000), (std::vector<int64_t>{0}));
}

}  // namespace pace_test
}  // namespace batchplane
