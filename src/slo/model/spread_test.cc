// SPDX-License-Identifier: BSD-3-Clause
// spread_test.cc - how much the work of runs varies, against buffers that are filled and emptied at random.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "slo/solver/program_test_util.h"

namespace batchplane::slo {
namespace spread_test {

constexpr uint32_t kRunPkts = 32;
constexpr double kServiceNs = 100;  // of a batch

// A saturated task with one buffer that gets `share` of the packets.
Program one_buffer(double share, double runs) {
  Program program{.hold_ns = 0, .sigmas = 1};
  program.counts_firings = true;
  program.tasks = {{.is_saturated = true, .run_pkts = kRunPkts, .runs_waited = runs}};
  program.modules = {{.cost_per_batch_ns = kServiceNs, .share = share, .max_pkts = 64}};
  add_flow(program, kNoBudgetNs, {0});
  return program;
}

// Standard deviation of the work of `runs` runs in a row, each packet going to the buffer by chance.
double simulated_ns(Rng& rng, double share, uint32_t trigger_pkts, uint32_t runs) {
  constexpr uint32_t kWindows = 20'000;
  uint32_t held_pkts = 0;
  double sum = 0;
  double squares = 0;
  for (uint32_t i = 0; i < kWindows; ++i) {
    double firings = 0;
    for (uint32_t k = 0; k < runs * kRunPkts; ++k) {
      held_pkts += rng.uniform() < share ? 1 : 0;
      if (held_pkts < trigger_pkts) continue;
      held_pkts = 0;
      ++firings;
    }
    sum += firings;
    squares += firings * firings;
  }
  const double mean = sum / kWindows;
  return kServiceNs * std::sqrt(squares / kWindows - mean * mean);
}

// A buffer that has fired does not fire again before it is full: three runs vary by less than three times
// one run. The model may be off by a third.
TEST(Spread, OfSeveralRunsIsThatOfBuffersThatFillAgain) {
  Rng rng(21);
  for (const double share : {1.0 / 16, 1.0 / 8, 0.25, 0.5}) {
    for (const uint32_t trigger_pkts : {4U, 8U, 16U, 32U}) {
      for (const uint32_t runs : {1U, 2U, 3U}) {
        Evaluation at;
        const Program program = one_buffer(share, runs);
        evaluate(program, {static_cast<double>(trigger_pkts)}, at);
        const double ratio = at.task_spread_ns[0] / simulated_ns(rng, share, trigger_pkts, runs);
        EXPECT_GT(ratio, 0.7) << share << " " << trigger_pkts << " " << runs;
        EXPECT_LT(ratio, 1.45) << share << " " << trigger_pkts << " " << runs;
        Evaluation one;
        evaluate(one_buffer(share, 1), {static_cast<double>(trigger_pkts)}, one);
        EXPECT_DOUBLE_EQ(run_spread_ns(program, at, 0), one.task_spread_ns[0]);
      }
    }
  }
}

TEST(Spread, FullRunsThatHoldNothingVaryAsMeasured) {
  Program program = one_buffer(0.25, 3);
  program.modules[0].arriving_pkts = 8;
  program.tasks[0].rate_pkts_per_ns = 1e-3;
  program.tasks[0].bare_scale = 0.25;
  const auto spread_ns = [&](double trigger_pkts) {
    Evaluation at;
    evaluate(program, {trigger_pkts}, at);
    return at.task_spread_ns[0];
  };
  const double bare_ns = spread_ns(0);
  EXPECT_GT(spread_ns(9), bare_ns);
  program.tasks[0].is_saturated = false;
  EXPECT_DOUBLE_EQ(spread_ns(0), 4 * bare_ns) << "runs differ where the input is not full";
}

TEST(Spread, PacketsThatLeaveTheirRunEarlyWaitForLessOfIt) {
  Program program = one_buffer(0.25, 3);
  Evaluation whole;
  evaluate(program, {8}, whole);
  program.flows[0].runs_early = 0.5;
  Evaluation early;
  evaluate(program, {8}, early);
  const double half_ns = 0.5 * kRunPkts * whole.task_pkt_ns[0];
  EXPECT_DOUBLE_EQ(early.delay_ns[0], whole.delay_ns[0] - half_ns);
  EXPECT_DOUBLE_EQ(turnaround_of(program, early, program.flows[0]),
                   early.turnaround_ns[0] - half_ns);
}

}  // namespace spread_test
}  // namespace batchplane::slo
