// SPDX-License-Identifier: BSD-3-Clause
// aqm_test.cc - CoDel's times against its control law, PIE's probability against its equations,
// connections of one queue, and throughput of TCP-like senders.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>

#include "base/rng.h"
#include "egress/aqm/fq_codel.h"
#include "egress/aqm/line_model.h"
#include "egress/aqm/pie.h"

namespace batchplane::egress {
namespace aqm_test {

constexpr uint64_t kMs = 1'000'000;

// One packet per millisecond, each with this sojourn time; returns the milliseconds in which one is
// dropped.
std::vector<double> drops_ms(CodelState& state, uint64_t waited_ms, uint64_t from_ms,
                             uint64_t until_ms) {
  const Codel codel({}, 1500);
  std::vector<double> drops;
  for (uint64_t ms = from_ms; ms < until_ms; ++ms) {
    const Verdict verdict = codel.judge(state, waited_ms * kMs, 0, 100'000, ms * kMs, false);
    if (verdict == Verdict::kDrop) drops.push_back(static_cast<double>(ms));
  }
  return drops;
}

TEST(Codel, DropsAtTheTimesOfItsLaw) {
  CodelState state;
  const std::vector<double> drops = drops_ms(state, 20, 1000, 2000);
  ASSERT_GT(drops.size(), 12U);
  double want_ms = 1100;
  for (size_t k = 0; k < drops.size(); ++k) {
    EXPECT_NEAR(drops[k], want_ms, 2) << k;
    want_ms += 100 / std::sqrt(static_cast<double>(k + 1));
  }
}

TEST(Codel, LetsBurstsThrough) {
  CodelState state;
  // Late for 90 ms, then once in time, again and again.
  for (uint64_t ms = 0; ms < 3000; ms += 91) {
    EXPECT_TRUE(drops_ms(state, 20, ms, ms + 90).empty());
    EXPECT_TRUE(drops_ms(state, 1, ms + 90, ms + 91).empty());
  }
  // Less than 5 ms late, or less than a packet left behind.
  EXPECT_TRUE(drops_ms(state, 4, 3000, 9000).empty());
  const Codel codel({}, 1500);
  for (uint64_t ms = 9000; ms < 12'000; ++ms) {
    EXPECT_EQ(codel.judge(state, 50 * kMs, 0, 1500, ms * kMs, false), Verdict::kSend);
    EXPECT_EQ(codel.judge(state, 50 * kMs, 60 * kMs, 90'000, ms * kMs, false), Verdict::kSend);
  }
}

TEST(Codel, GoesOnWhereItWasWhenItIsLateSoonAgain) {
  CodelState state;
  const size_t first = drops_ms(state, 20, 0, 1000).size();
  drops_ms(state, 1, 1000, 1200);
  const std::vector<double> again = drops_ms(state, 20, 1200, 1500);
  ASSERT_GT(again.size(), 5U) << first;
  EXPECT_LT(again[1] - again[0], 40) << "not a whole interval";
  // Long after that it starts anew.
  drops_ms(state, 1, 1500, 60'000);
  const std::vector<double> anew = drops_ms(state, 20, 60'000, 60'400);
  EXPECT_NEAR(anew.at(1) - anew.at(0), 100, 2);
}

TEST(Codel, MarksInsteadOfDropping) {
  const Codel codel({}, 1500);
  CodelState state;
  uint32_t marks = 0;
  for (uint64_t ms = 0; ms < 500; ++ms) {
    const Verdict verdict = codel.judge(state, 20 * kMs, 0, 100'000, ms * kMs, true);
    EXPECT_NE(verdict, Verdict::kDrop);
    marks += verdict == Verdict::kMark ? 1 : 0;
  }
  EXPECT_GE(marks, 4U);
}

// The equations of RFC 8033, section 4.2, as given there, in double precision; without drops.
class PieEquations {
 public:
  explicit PieEquations(double target_s) : target_s_(target_s) {}

  void update(double delay_s) {
    double p = 0.125 * (delay_s - target_s_) + 1.25 * (delay_s - before_s_);
    const std::pair<double, double> kScales[] = {{1e-6, 2048}, {1e-5, 512}, {1e-4, 128},
                                                 {1e-3, 32},   {1e-2, 8},   {1e-1, 2}};
    for (const auto& [below, divisor] : kScales) {
      if (probability_ >= below) continue;
      p /= divisor;
      break;
    }
    if (probability_ >= 0.1 && p > 0.02) p = 0.02;
    if (delay_s > 0.25) p += 0.02;
    probability_ = std::clamp(probability_ + p, 0.0, 1.0);
    before_s_ = delay_s;
  }
  [[nodiscard]] double probability() const { return probability_; }

 private:
  double target_s_;
  double probability_ = 0;
  double before_s_ = 0;
};

TEST(Pie, FollowsItsEquations) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    Pie pie(15 * kMs, 1500);
    PieEquations equations(0.015);
    PieState state;
    double delay_ms = 10;
    for (uint64_t k = 1; k < 2000; ++k) {
      delay_ms = std::clamp(delay_ms + 6 * (rng.uniform() - 0.5), 0.0, 400.0);
      // In the steps in which a queue stores it: near a threshold, finer steps would make a
      // difference.
      const uint64_t delay_ns = static_cast<uint64_t>(delay_ms * 62.5) * 16'000;
      // Updates are 15 ms apart, plus one tick of a microsecond.
      pie.judge(state, delay_ns, 0, 100'000, k * 15'001'000, true);
      equations.update(static_cast<double>(delay_ns) * 1e-9);
      ASSERT_NEAR(state.probability, equations.probability(), 1e-3 + 0.02 * equations.probability())
          << seed << " " << k;
    }
  }
}

TEST(Pie, DropsAsOftenAsItsProbabilitySays) {
  Pie pie(15 * kMs, 1500);
  for (const float probability : {0.02F, 0.1F, 0.3F}) {
    PieState state;
    uint64_t now_ns = kMs;
    pie.judge(state, 20 * kMs, 0, 100'000, now_ns, false);
    uint32_t drops = 0;
    uint32_t since = 0;
    uint32_t most = 0;
    for (uint32_t k = 0; k < 100'000; ++k) {
      state.probability = probability;
      state.burst_ms = 0;
      const bool is_dropped =
          pie.judge(state, 20 * kMs, 0, 100'000, now_ns, false) == Verdict::kDrop;
      drops += is_dropped ? 1 : 0;
      since = is_dropped ? 0 : since + 1;
      most = std::max(most, since);
    }
    // One drop per 1/p packets, counted from the packet at which the sum reaches 0.85; at most
    // 8.5/p apart.
    const double apart = std::ceil(0.85 / probability) - 1 + 1 / probability;
    EXPECT_NEAR(drops, 100'000 / apart, 5'000 / apart) << probability;
    EXPECT_LE(most, static_cast<uint32_t>(8.5F / probability) + 1) << probability;
  }
}

TEST(Pie, SparesBurstsAndShortQueues) {
  Pie pie(15 * kMs, 1500);
  PieState state;
  // Late from the start: 150 ms are let through, then it drops.
  uint64_t first_ms = 0;
  for (uint64_t ms = 1; ms < 3000 && first_ms == 0; ++ms) {
    if (pie.judge(state, 60 * kMs, 0, 100'000, ms * kMs, false) == Verdict::kDrop) first_ms = ms;
    EXPECT_EQ(pie.judge(state, 60 * kMs, 0, 3000, ms * kMs, false), Verdict::kSend);
  }
  EXPECT_GT(first_ms, 150U);
  // Low delay for a while: the next burst is let through again.
  for (uint64_t ms = 3000; ms < 20'000; ++ms) pie.judge(state, kMs, 0, 100'000, ms * kMs, false);
  EXPECT_EQ(state.probability, 0);
  for (uint64_t ms = 20'000; ms < 20'130; ++ms) {
    EXPECT_EQ(pie.judge(state, 60 * kMs, 0, 100'000, ms * kMs, false), Verdict::kSend);
  }
}

TEST(Pie, MarksWhileTheProbabilityIsSmallAndDropsBeyond) {
  Pie pie(15 * kMs, 1500);
  PieState state;
  std::map<Verdict, float> most;
  for (uint64_t ms = 1; ms < 20'000; ++ms) {
    const Verdict verdict = pie.judge(state, 80 * kMs, 0, 100'000, ms * kMs, true);
    most.try_emplace(verdict, state.probability);
    if (verdict == Verdict::kMark) most[verdict] = std::max(most[verdict], state.probability);
  }
  EXPECT_GT(most.at(Verdict::kMark), 0);
  EXPECT_LE(most.at(Verdict::kMark), 0.1F);
  EXPECT_GT(most.at(Verdict::kDrop), 0.1F);
}

// Random packets in and out: each leaves or is dropped once, in its connection's order.
TEST(FqCodel, LosesNothing) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    PktStore pkts(300);
    FqCodel fq(12, {.target_ns = kMs, .interval_ns = 5 * kMs}, 1500);
    std::map<uint32_t, FqLists> lists;
    std::map<uint32_t, uint32_t> backlog;
    std::map<uint64_t, std::deque<uint64_t>> want;
    DropList drops;
    uint64_t handle = 0;
    const auto expect = [&](const Descriptor& pkt) {
      auto& queue = want[uint64_t{pkt.flow & kFlowMask} << 8 | pkt.handle() % 128];
      ASSERT_FALSE(queue.empty());
      ASSERT_EQ(queue.front(), pkt.handle());
      queue.pop_front();
      --backlog[pkt.flow & kFlowMask];
    };
    for (uint64_t step = 0; step < 5000; ++step) {
      const uint64_t now_ns = step * 300'000;
      const uint32_t flow = rng.below(4);
      for (uint32_t k = rng.below(4); k > 0; --k) {
        const uint32_t hash = rng.below(rng.below(5) == 0 ? 128 : 3);
        const uint64_t id = ++handle << 7 | hash;
        const uint32_t word = flow_word(flow, hash, rng.below(2) == 0);
        if (!fq.push(pkts, lists[flow], Descriptor::of(id, rng.below(1500), word, now_ns)))
          continue;
        want[uint64_t{flow} << 8 | hash].push_back(id);
        ++backlog[flow];
      }
      const uint32_t from = rng.below(4);
      if (rng.below(30) == 0 && backlog[from] > 1)
        fq.shed(pkts, lists[from], drops, backlog[from] - 1);
      for (uint32_t k = rng.below(4); k > 0 && backlog[from] > 0; --k) {
        const Descriptor pkt = fq.pop(pkts, lists[from], now_ns, 0, drops);
        for (uint32_t i = 0; i < drops.n; ++i) expect(drops.all[i]);
        expect(pkt);
        drops.n = 0;
        if (testing::Test::HasFatalFailure()) return;
      }
      for (uint32_t i = 0; i < drops.n; ++i) expect(drops.all[i]);
      drops.n = 0;
      if (backlog[from] == 0) fq.clear(lists[from]);
    }
    for (auto& [flow, of_flow] : lists) {
      while (backlog[flow] > 0) expect(fq.drain(pkts, of_flow));
      fq.clear(of_flow);
    }
    ASSERT_EQ(pkts.size_pkts(), 0U);
    // No state is left of connections that are gone: there is room for twelve.
    FqLists fresh;
    for (uint32_t hash = 0; hash < 12; ++hash) {
      ASSERT_TRUE(fq.push(pkts, fresh, Descriptor::of(1, 64, flow_word(9, hash, false), 0)));
    }
    ASSERT_FALSE(fq.push(pkts, fresh, Descriptor::of(1, 64, flow_word(9, 12, false), 0)));
    ASSERT_EQ(pkts.size_pkts(), 12U);
  }
}

TEST(FqCodel, KeepsDelaysShortAndTheLineFull) {
  const uint64_t until_ns = 20'000 * kMs;
  LineModel tail(LineModel::Kind::kTailDrop, false);
  tail.run(until_ns);
  EXPECT_GT(tail.ping_ms(0.95), 60);
  for (const bool marks : {false, true}) {
    LineModel codel(LineModel::Kind::kCodel, marks);
    codel.run(until_ns);
    EXPECT_LT(codel.ping_ms(0.95), 15) << marks;
    EXPECT_GT(codel.goodput(until_ns), 0.95) << marks;
    LineModel pie(LineModel::Kind::kPie, marks);
    pie.run(until_ns);
    EXPECT_LT(pie.ping_ms(0.95), 30) << marks;
    EXPECT_GT(pie.goodput(until_ns), 0.95) << marks;
    LineModel fq(LineModel::Kind::kFqCodel, marks);
    fq.run(until_ns);
    EXPECT_LT(fq.ping_ms(0.95), 2) << marks;
    EXPECT_GT(fq.goodput(until_ns), 0.95) << marks;
  }
}

}  // namespace aqm_test
}  // namespace batchplane::egress
