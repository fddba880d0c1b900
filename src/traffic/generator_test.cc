// SPDX-License-Identifier: BSD-3-Clause
// generator_test.cc - due times, rates, refusals and live changes, in virtual time.
#include "traffic/generator.h"

#include <gtest/gtest.h>

#include <deque>

#include "traffic/traffic_test_util.h"

namespace batchplane::traffic {
namespace {

struct Rig {
  explicit Rig(const Dict& params, uint32_t ring_pkts = 1024)
      : ring(ring_pkts), generator(make_args(generator_params(), params), ring, pool, told) {}

  // Takes everything out of the ring.
  std::vector<BurstSlot> drain() {
    std::vector<BurstSlot> slots;
    ring.consume(ring.capacity(), [&](uint32_t, const BurstSlot& slot) { slots.push_back(slot); });
    for (const BurstSlot& slot : slots) {
      Packet* pkt = slot.packet<Packet>();
      PacketPool::free_bulk(&pkt, 1);
    }
    return slots;
  }
  // Steps from `from_ns` to `to_ns`, draining at each step.
  std::vector<BurstSlot> run(uint64_t from_ns, uint64_t to_ns, uint64_t step_ns) {
    std::vector<BurstSlot> all;
    for (uint64_t now_ns = from_ns; now_ns <= to_ns; now_ns += step_ns) {
      while (generator.run_burst(now_ns) != 0) {
        const auto some = drain();
        all.insert(all.end(), some.begin(), some.end());
      }
    }
    return all;
  }

  static std::string unique_name() {
    static int n = 0;
    return "generator" + std::to_string(n++);
  }

  PacketPool pool{unique_name(), 2048};
  BurstRing ring;
  ProducerCounts told;
  Generator generator;
};

TEST(Generator, ConstantRateGivesExactDueTimes) {
  Rig rig({{"rate_pps", 1e6}});
  const auto slots = rig.run(1000, 100'000, 3333);
  ASSERT_GE(slots.size(), 90U);
  for (size_t i = 0; i < slots.size(); ++i) EXPECT_EQ(slots[i].entry_ns, 1000 + 1000 * i);
  EXPECT_EQ(rig.generator.stats().sent_pkts, slots.size());
  EXPECT_GE(rig.pool.available_pkts() + 2 * Generator::kBurstPkts, 2048U);
}

// A second generator with the same seed and a ring that is never full shows what was due.
TEST(Generator, CountsWhatWaitsForRoomExactly) {
  for (const char* arrivals : {"constant", "poisson", "on_off"}) {
    const Dict params = {{"rate_pps", 3e6}, {"arrivals", arrivals}, {"burst_pkts", 3}};
    Rig slow(params, 4);
    Rig fast(params);
    uint64_t due = 0;
    uint64_t most = 0;
    for (uint64_t now_ns = 1000; now_ns < 400'000; now_ns += 1700) {
      while (fast.generator.run_burst(now_ns) != 0) due += fast.drain().size();
      while (slow.generator.run_burst(now_ns) != 0) {
      }
      const GeneratorStats stats = slow.generator.stats();
      const uint64_t backlog = slow.told.backlog_pkts.load();
      ASSERT_EQ(stats.sent_pkts + stats.refused_pkts + backlog, due) << arrivals << now_ns;
      most = std::max(most, backlog);
      // Drains half of the time, and always from 300 us on.
      if (now_ns % 3400 < 1700 || now_ns > 300'000) (void)slow.drain();
    }
    EXPECT_GT(most, 50U) << arrivals;
  }
}

TEST(Generator, TellsWhatItGaveUp) {
  Rig rig({{"rate_pps", 1e6}, {"max_late_ns", 10'000}}, 4);
  for (uint64_t now_ns = 0; now_ns <= 100'000; now_ns += 1000)
    (void)rig.generator.run_burst(now_ns);
  EXPECT_EQ(rig.told.lost_pkts.load(), rig.generator.stats().refused_pkts);
  EXPECT_GT(rig.told.lost_pkts.load(), 80U);
  EXPECT_LE(rig.told.backlog_pkts.load(), 11U);
  rig.generator.set_on(false);
  (void)rig.generator.run_burst(101'000);
  EXPECT_EQ(rig.told.backlog_pkts.load(), 0U);
}

TEST(Generator, AFullRingDelaysPacketsButNotTheirDueTimes) {
  Rig rig({{"rate_pps", 1e6}}, 8);
  uint32_t sent = 0;
  for (uint64_t now_ns = 0; now_ns <= 20'000; now_ns += 1000)
    sent += rig.generator.run_burst(now_ns);
  EXPECT_EQ(sent, 8U);
  EXPECT_EQ(rig.generator.stats().late_ns, 12'000U);
  auto slots = rig.drain();
  rig.generator.run_burst(50'000);
  const auto more = rig.drain();
  slots.insert(slots.end(), more.begin(), more.end());
  ASSERT_EQ(slots.size(), 16U);
  for (size_t i = 0; i < slots.size(); ++i) EXPECT_EQ(slots[i].entry_ns, 1000 * i);
  EXPECT_EQ(rig.generator.stats().refused_pkts, 0U);
}

TEST(Generator, PacketsThatAreTooLateAreRefusedAndCounted) {
  Rig rig({{"rate_pps", 1e6}, {"max_late_ns", 5000}}, 8);
  for (uint64_t now_ns = 0; now_ns <= 20'000; now_ns += 1000) rig.generator.run_burst(now_ns);
  // 8 in the ring; of the due times 8..20 us, all except those within 5 us of the end are dropped.
  EXPECT_EQ(rig.generator.stats().sent_pkts, 8U);
  EXPECT_EQ(rig.generator.stats().refused_pkts, 7U);
  rig.drain();
  rig.generator.run_burst(20'000);
  EXPECT_EQ(rig.drain().front().entry_ns, 15'000U);
}

TEST(Generator, FlowsWithOwnRatesKeepThem) {
  Rig rig({{"rate_pps", 1e6},
           {"flows", List{Dict{{"name", "bulk"}}, Dict{{"name", "tight"}, {"rate_pps", 1e5}}}}});
  rig.run(0, 1'000'000, 10'000);
  const auto flows = rig.generator.flow_stats();
  EXPECT_NEAR(static_cast<double>(flows[0].sent_pkts), 1000, 2);
  EXPECT_NEAR(static_cast<double>(flows[1].sent_pkts), 100, 2);
  rig.generator.set_flow_rate("tight", 2e5);
  rig.run(1'000'001, 2'000'000, 10'000);
  EXPECT_NEAR(static_cast<double>(rig.generator.flow_stats()[1].sent_pkts), 300, 12);
  EXPECT_NE(error_of([&] { rig.generator.set_flow_rate("bulk", 1); }), "");
}

TEST(Generator, RateWeightsAndSwitchChangeLive) {
  Rig rig({{"rate_pps", 1e6}, {"flows", List{Dict{{"count", 2}}}}});
  // It does not run for the last 10 us of the first rate: they count at the new one.
  rig.run(0, 999'999, 10'000);
  rig.generator.set_rate(3e6);
  rig.generator.set_weights({0, 1});
  const auto before = rig.generator.flow_stats();
  rig.run(1'000'000, 2'000'000, 10'000);
  const auto after = rig.generator.flow_stats();
  EXPECT_EQ(after[0].sent_pkts, before[0].sent_pkts);
  EXPECT_NEAR(static_cast<double>(after[1].sent_pkts - before[1].sent_pkts), 3000 + 27, 3);
  rig.generator.set_on(false);
  EXPECT_TRUE(rig.run(2'000'001, 3'000'000, 10'000).empty());
  rig.generator.set_on(true);
  // No backlog from the time when it was off.
  EXPECT_NEAR(static_cast<double>(rig.run(9'000'000, 9'100'000, 10'000).size()), 300, 5);
  EXPECT_NE(error_of([&] { rig.generator.set_weights({1}); }), "");
  EXPECT_NE(error_of([&] { rig.generator.set_weights({0, 0}); }), "");
}

TEST(Generator, SaturatingFillsTheRingEveryTime) {
  Rig rig({{"saturate", true}}, 64);
  EXPECT_EQ(rig.generator.run_burst(7), 32U);
  EXPECT_EQ(rig.generator.run_burst(8), 32U);
  EXPECT_EQ(rig.generator.run_burst(9), 0U);
  const auto slots = rig.drain();
  EXPECT_EQ(slots.front().entry_ns, 7U);
  EXPECT_EQ(slots.back().entry_ns, 8U);
}

TEST(Generator, TrainsArriveTogetherAndOfOneFlow) {
  Rig rig({{"rate_pps", 1e6},
           {"burst_pkts", 5},
           {"flows", List{Dict{{"count", 2}, {"dst_ip_step", 1}}}}});
  std::vector<uint8_t> last_bytes;
  std::vector<uint64_t> due;
  for (uint64_t now_ns = 0; now_ns < 10'000; now_ns += 100) rig.generator.run_burst(now_ns);
  rig.ring.consume(1024, [&](uint32_t, const BurstSlot& slot) {
    last_bytes.push_back(fresh_data(*slot.packet<Packet>())[net::kEthBytes + net::kIpDst + 3]);
    due.push_back(slot.entry_ns);
    Packet* pkt = slot.packet<Packet>();
    PacketPool::free_bulk(&pkt, 1);
  });
  ASSERT_EQ(due.size(), 10U);
  EXPECT_EQ(due[4], 0U);
  EXPECT_EQ(due[5], 5000U);
  EXPECT_EQ(last_bytes, (std::vector<uint8_t>{1, 1, 1, 1, 1, 2, 2, 2, 2, 2}));
}

TEST(Generator, StopsAtItsLimitAndSurvivesAnEmptyPool) {
  Rig rig({{"rate_pps", 1e9}, {"limit_pkts", 100}});
  EXPECT_EQ(rig.run(0, 1'000'000, 1000).size(), 100U);

  Rig starved({{"saturate", true}}, 8192);
  for (int i = 0; i < 100; ++i) starved.generator.run_burst(1);
  EXPECT_EQ(starved.drain().size(), 2048U);
  EXPECT_GT(starved.generator.stats().starved_polls, 0U);
}

TEST(Generator, PoissonIsTheSameForTheSameSeed) {
  const Dict params = {{"rate_pps", 1e6},
                       {"arrivals", "poisson"},
                       {"seed", 3},
                       {"order", "random"},
                       {"flows", List{Dict{{"count", 5}}}}};
  const auto times = [&](uint64_t step_ns) {
    Rig rig(params);
    std::vector<uint64_t> due;
    for (const BurstSlot& slot : rig.run(0, 300'000, step_ns)) due.push_back(slot.entry_ns);
    return due;
  };
  // Independent of how often it is asked.
  const auto fine = times(100);
  const auto coarse = times(50'000);
  EXPECT_EQ(fine, coarse);
  EXPECT_NEAR(static_cast<double>(fine.size()), 300, 70);
}

}  // namespace
}  // namespace batchplane::traffic
