// SPDX-License-Identifier: BSD-3-Clause
// budget_test.cc - the model's equations against finite differences and known values.
#include "slo/model/budget.h"

#include <gtest/gtest.h>

#include <cmath>

#include "slo/solver/program_test_util.h"

namespace batchplane::slo {
namespace {

// Below saturation the slopes are the derivatives of load, turnaround, fill and service.
TEST(Budget, SlopesAreFiniteDifferences) {
  Rng rng(11);
  for (int i = 0; i < 300; ++i) {
    const Program program = random_program(rng, false);
    std::vector<double> q;
    for (const ProgramModule& module : program.modules) {
      q.push_back(module.arriving_pkts + 0.5 + 5 * rng.uniform());
    }
    Evaluation at;
    Slopes slopes;
    evaluate(program, q, at);
    slopes_at(program, at, slopes);
    for (size_t v = 0; v < q.size(); ++v) {
      const double h = 1e-4 * q[v];
      std::vector<double> moved = q;
      Evaluation up;
      Evaluation down;
      moved[v] = q[v] + h;
      evaluate(program, moved, up);
      moved[v] = q[v] - h;
      evaluate(program, moved, down);
      const double per_square = 1 / (q[v] * q[v]);
      const auto near = [&](double expected, double above, double below) {
        EXPECT_NEAR((above - below) / (2 * h), expected, 1e-5 * std::abs(expected) + 1e-12);
      };
      near(-slopes.load_weight[v] * per_square, up.load, down.load);
      near(slopes.turnaround_slope[v] - slopes.turnaround_weight[v] * per_square,
           up.turnaround_ns[0], down.turnaround_ns[0]);
      near(slopes.delay_slope[v], up.fill_ns[v] + up.service_ns[v],
           down.fill_ns[v] + down.service_ns[v]);
    }
  }
}

// Flows that take sums over from the flow before them have the same delays, bit by bit.
TEST(Budget, SharedPathsAreSummedOnce) {
  Rng rng(12);
  for (const bool is_saturated : {false, true}) {
    Program program = grouped_program(rng, is_saturated);
    program.mixes_fills = true;
    // Longer and shorter than the path before them, the same, and none in common.
    add_flow(program, 1e5, {9, 10, 1});
    add_flow(program, 1e5, {9, 10, 2});
    add_flow(program, 1e5, {9});
    add_flow(program, 1e5, {9});
    add_flow(program, 1e5, {18, 9, 10});
    std::vector<double> q;
    for (size_t v = 0; v < program.modules.size(); ++v) q.push_back(rng.below(2) * 20.0);
    Evaluation alone;
    evaluate(program, q, alone);
    share_paths(program);
    EXPECT_EQ(program.flows[0].shared_modules, 0);
    EXPECT_EQ(program.flows[1].shared_modules, 1);
    EXPECT_EQ(program.flows[8].shared_modules, 0);
    EXPECT_EQ(program.flows[65].shared_modules, 2);
    EXPECT_EQ(program.flows[66].shared_modules, 1);
    Evaluation shared;
    evaluate(program, q, shared);
    EXPECT_EQ(alone.delay_ns, shared.delay_ns);
    EXPECT_EQ(alone.mixing_ns, shared.mixing_ns);
  }
}

TEST(Budget, RateAtSaturationIsTheInverseOfWorkPerPacket) {
  Program program{.hold_ns = 0, .sigmas = 0};
  program.tasks = {{.rate_pkts_per_ns = 1,
                    .is_saturated = true,
                    .run_pkts = 32,
                    .other_run_ns = 64,
                    .runs_waited = 3}};
  program.modules = {{.cost_per_batch_ns = 320,
                      .cost_per_pkt_ns = 5,
                      .share = 0.5,
                      .arriving_pkts = 16,
                      .max_pkts = 32}};
  add_flow(program, kNoBudgetNs, {0});
  Evaluation at;
  evaluate(program, {32}, at);
  EXPECT_DOUBLE_EQ(at.task_pkt_ns[0], 2 + 0.5 * (10 + 5));
  EXPECT_DOUBLE_EQ(at.fill_ns[0], (32 - 16) * 9.5 / 0.5);
  EXPECT_DOUBLE_EQ(at.turnaround_ns[0], 3 * 32 * 9.5);
  EXPECT_DOUBLE_EQ(at.delay_ns[0], at.fill_ns[0] + 480 + at.turnaround_ns[0]);
  evaluate(program, {0}, at);
  EXPECT_DOUBLE_EQ(at.task_pkt_ns[0], 2 + 0.5 * (20 + 5));
  EXPECT_DOUBLE_EQ(at.fill_ns[0], 0);
}

// They are those of triggers that hold, also where nothing is held yet.
TEST(Budget, SlopesDoNotDependOnHowRunsThatHoldNothingVary) {
  Rng rng(12);
  for (int i = 0; i < 50; ++i) {
    Program program = random_program(rng, true);
    program.tasks[0].spread_scale = 0.7;
    Slopes usual;
    Slopes other;
    for (Slopes* slopes : {&usual, &other}) {
      Evaluation at;
      evaluate(program, std::vector<double>(program.modules.size(), 0), at);
      slopes_at(program, at, *slopes);
      program.tasks[0].bare_scale = 0.1;
    }
    for (size_t v = 0; v < program.modules.size(); ++v) {
      EXPECT_NEAR(other.turnaround_weight[v], usual.turnaround_weight[v],
                  1e-9 * usual.turnaround_weight[v]);
    }
  }
}

TEST(Budget, NoTrafficMeansNoNumbersThatAreNone) {
  Program program;
  program.tasks = {{}};
  program.modules = {{.cost_per_batch_ns = 100, .share = 0}, {}};
  add_flow(program, 1000, {0, 1});
  for (const bool is_saturated : {false, true}) {
    program.tasks[0].is_saturated = is_saturated;
    Evaluation at;
    evaluate(program, {32, 0}, at);
    EXPECT_TRUE(std::isfinite(at.load));
    EXPECT_TRUE(std::isfinite(at.delay_ns[0]));
  }
}

TEST(Budget, ExpectedBatchIsTheMeanOfThePoissonCut) {
  EXPECT_DOUBLE_EQ(expected_batch_pkts(8, 0), 1);
  EXPECT_DOUBLE_EQ(expected_batch_pkts(1, 5), 1);
  EXPECT_NEAR(expected_batch_pkts(8, 1e3), 8, 1e-9);
  EXPECT_NEAR(expected_batch_pkts(2, 0.7), 2 - std::exp(-0.7), 1e-12);
  Rng rng(5);
  for (const double arrivals : {0.5, 3.0, 12.0, 40.0}) {
    for (const uint32_t q : {2U, 5U, 16U, 32U}) {
      double sum = 0;
      constexpr int kDraws = 40'000;
      for (int i = 0; i < kDraws; ++i) {
        uint32_t n = 1;
        for (double t = rng.exponential(1); t < arrivals && n < q; t += rng.exponential(1)) ++n;
        sum += n;
      }
      EXPECT_NEAR(expected_batch_pkts(q, arrivals), sum / kDraws, 0.02 * q);
    }
  }
}

TEST(Budget, BranchBatchIsTheMeanOfBatchesThatAreNotEmpty) {
  EXPECT_DOUBLE_EQ(branch_batch_pkts(32, 1), 32);
  EXPECT_DOUBLE_EQ(branch_batch_pkts(1, 0.3), 1);
  EXPECT_NEAR(branch_batch_pkts(32, 1.0 / 16), 2 / (1 - std::pow(15.0 / 16, 32)), 1e-9);
}

TEST(Budget, SigmasAreThoseOfTheNormalDistribution) {
  EXPECT_EQ(sigmas_of(0), 0);
  EXPECT_EQ(sigmas_of(0.5), 0);
  EXPECT_NEAR(sigmas_of(0.95), 1.645, 1e-3);
  EXPECT_NEAR(sigmas_of(0.99), 2.326, 1e-3);
  EXPECT_EQ(sigmas_of(1), 3.1);
}

// Where arriving batches may be cut, a batch's first packet may be the last one of its arriving
// batch. For a flow that is held anywhere, turnaround counts at least as much as its age limits
// reserve.
TEST(Budget, CutBunchesFillForLongerAndHoldingHasAFloor) {
  Program program{.hold_ns = 0, .sigmas = 0};
  program.tasks = {{.rate_pkts_per_ns = 1e-3, .run_pkts = 8, .runs_waited = 2}};
  program.modules = {{.cost_per_batch_ns = 100,
                      .cost_per_pkt_ns = 10,
                      .share = 1,
                      .arriving_pkts = 8,
                      .max_pkts = 32}};
  add_flow(program, 1e6, {0});
  Evaluation at;
  evaluate(program, {24}, at);
  EXPECT_DOUBLE_EQ(at.fill_ns[0], 16'000);
  EXPECT_DOUBLE_EQ(min_fill_ns(program, program.modules[0], 1e-3), 0);
  program.modules[0].sure_pkts = 1;
  evaluate(program, {24}, at);
  EXPECT_DOUBLE_EQ(at.fill_ns[0], 23'000);
  EXPECT_DOUBLE_EQ(min_fill_ns(program, program.modules[0], 1e-3), 7'000);
  program.modules[0].arriving_pkts = 8.8;
  evaluate(program, {9}, at);
  EXPECT_DOUBLE_EQ(at.fill_ns[0], 8'800) << "a cut batch waits for the next one to arrive";
  program.modules[0].arriving_pkts = 8;
  program.flows[0].least_turnaround_ns = 50'000;
  evaluate(program, {24}, at);
  EXPECT_DOUBLE_EQ(at.delay_ns[0], 50'000 + 23'000 + at.service_ns[0]);
  evaluate(program, {0}, at);
  EXPECT_DOUBLE_EQ(at.delay_ns[0], at.turnaround_ns[0] + at.service_ns[0]);
}

}  // namespace
}  // namespace batchplane::slo
