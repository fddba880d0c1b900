// SPDX-License-Identifier: BSD-3-Clause
// optimal_overload_test.cc - real overload, and periods that only look like it.
#include <gtest/gtest.h>

#include <algorithm>

#include "exec/promise.h"
#include "slo/model/ring_plant_test_util.h"
#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace optimal_overload_test {

constexpr double kPeriodNs = 10e6;
constexpr double kPercentile = 0.95;
constexpr uint64_t kHoleNs = 3'000'000;

// Eight leaves with one SLO.
class Rig {
 public:
  Rig(double slo_ns, double rate_pkts_per_ns)
      : plant_(std::vector<RingPlantLeaf>(8, {300, 25, 1, slo_ns}), rate_pkts_per_ns, 1),
        optimal_(plant_.model, {}) {}

  void step() {
    seen_ = plant_.run(kPeriodNs, kPercentile);
    decide();
  }
  // A period that begins with a gap: full polls from then on, everything late.
  void step_with_hole() {
    seen_ = plant_.run(kPeriodNs, kPercentile);
    exec::TaskPeriod& task = seen_.tasks[0];
    task.gaps = 1;
    task.gap_ns = task.busy_gap_ns = kHoleNs;
    task.runs = task.in_pkts / 31;
    task.busy_ns = seen_.period_ns;
    task.idle_ns = 0;
    seen_.inputs[0].lost_pkts = seen_.inputs[0].offered_pkts / 4;
    for (exec::FlowPeriod& flow : seen_.flows) {
      flow.late_pkts = flow.pkts;
      flow.delay_ns = kHoleNs;
      flow.delay_max_ns = kHoleNs;
    }
    decide();
  }
  void steps(int n) {
    for (int i = 0; i < n; ++i) step();
  }
  // Periods with a broken SLO, of the next n.
  int violated_of(int n) {
    int violated = 0;
    for (int i = 0; i < n; ++i) {
      step();
      violated += std::ranges::any_of(seen_.flows, [](const exec::FlowPeriod& flow) {
        return exec::is_slo_broken(flow, kPercentile);
      });
    }
    return violated;
  }
  [[nodiscard]] double mean_trigger() const {
    double sum = 0;
    for (const uint32_t q : optimal_.chosen()) sum += q;
    return sum / static_cast<double>(optimal_.chosen().size());
  }
  [[nodiscard]] double lost_ratio() const {
    return static_cast<double>(seen_.inputs[0].lost_pkts) /
           static_cast<double>(seen_.inputs[0].offered_pkts);
  }
  [[nodiscard]] const exec::FlowVerdict& verdict() const { return told_.flows[0]; }
  RingPlant& plant() { return plant_; }

 private:
  void decide() {
    told_ = optimal_.step(seen_);
    plant_.apply(told_);
  }

  RingPlant plant_;
  Optimal optimal_;
  Snapshot seen_;
  Decision told_;
};

TEST(Overload, GapsFarApartHaveNoEffect) {
  Rig rig(20'000, 0.006);
  rig.steps(220);
  const double before = rig.mean_trigger();
  ASSERT_GT(before, 4);
  for (int hole = 0; hole < 6; ++hole) {
    rig.step_with_hole();
    EXPECT_LT(rig.mean_trigger(), 1.3 * before) << hole;
    rig.steps(40);
  }
}

// Twice the load that is carried without buffers: triggers that carry it also keep the SLOs.
TEST(Overload, WhatComesIsCarriedAndInTime) {
  Rig rig(20'000, 0.018);
  rig.step();
  EXPECT_GT(rig.lost_ratio(), 0.3);
  rig.steps(10);
  EXPECT_EQ(rig.violated_of(100), 0);
  EXPECT_LT(rig.lost_ratio(), 0.01);
}

// No triggers both carry the load and keep the SLO: all is carried, a little late, and the verdict
// says so.
TEST(Overload, TheLoadIsCarriedIfSlosCannotBeMet) {
  Rig rig(6'000, 0.018);
  rig.steps(20);
  EXPECT_LT(rig.lost_ratio(), 0.01);
  EXPECT_EQ(rig.verdict().state, exec::FlowState::kInfeasible);
  EXPECT_NE(rig.verdict().hint.find("carry all that comes"), std::string::npos);
}

// More than full batches carry: packets that get in are in time.
TEST(Overload, WhatCannotBeCarriedLeavesTheRestInTime) {
  Rig rig(20'000, 0.060);
  rig.steps(30);
  EXPECT_GT(rig.lost_ratio(), 0.5);
  EXPECT_LE(rig.violated_of(100), 2);
}

// One slow moment and its backlog must not distort loads and plans for hundreds of periods.
TEST(Overload, ASlowMomentLeavesNothingBehind) {
  Rig rig(11'500, 0.018);
  rig.steps(50);
  ASSERT_LE(rig.violated_of(50), 1);
  const double usual_ns = rig.plant().front_pkt_ns;
  rig.plant().front_pkt_ns = 40;
  rig.step();
  rig.plant().front_pkt_ns = usual_ns;
  rig.steps(60);
  EXPECT_LE(rig.violated_of(150), 1);
}

// While the input pauses, runs are as full as ever and the worker is idle: nothing to judge triggers by, unless
// it always is so.
TEST(Overload, OnlyPausesWithoutEndChangeTriggers) {
  RingPlant plant(std::vector<RingPlantLeaf>(8, {300, 25, 1, 1e6}), 0, 1);
  Optimal optimal(plant.model, {});
  const auto wants_change = [&] {
    Snapshot seen = plant.run(kPeriodNs, kPercentile);
    seen.tasks[0].idle_ns = 2 * seen.tasks[0].busy_ns;
    return !optimal.step(seen).changes.empty();
  };
  EXPECT_TRUE(wants_change()) << "the first period counts, whatever it is";
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(wants_change()) << i;
  EXPECT_TRUE(wants_change());
}

// A worker that is idle for most of the time, on a core that fires held packets then. In every other period the
// laws say six times what is measured, as those of a kernel's ports may: no buffer is to hold anything.
TEST(OptimalOverload, AnIdleWorkerHoldsNothingWhateverLawsSay) {
  RingPlant plant(std::vector<RingPlantLeaf>(8, {300, 25, 1, 2e6}), 1e-3, 1);
  Settings settings;
  settings.releases_when_idle = true;
  Optimal optimal(plant.model, settings);
  for (int i = 0; i < 20; ++i) {
    Snapshot seen = plant.run(kPeriodNs, 0.95);
    ASSERT_GT(seen.tasks[0].idle_ns, seen.period_ns / 3);
    for (exec::ModulePeriod& module : seen.modules) {
      const double times = i % 2 == 0 ? 1 : 6;
      module.cost = {times * module.cost.line().cost_per_batch_ns,
                     times * module.cost.line().cost_per_pkt_ns};
    }
    for (const exec::BufferChange& change : optimal.step(seen).changes) {
      EXPECT_EQ(change.trigger_pkts, 0U) << "period " << i;
    }
  }
}

// Gaps in idle time took nothing from the work.
TEST(OptimalOverload, GapsInIdleTimeAreNoWork) {
  RingPlant plant(std::vector<RingPlantLeaf>(8, {300, 25, 1, 2e6}), 1e-3, 1);
  Snapshot seen = plant.run(kPeriodNs, 0.95);
  exec::TaskPeriod& task = seen.tasks[0];
  const double work_ns = task.work_ns();
  task.gap_ns = task.idle_ns / 2;
  EXPECT_EQ(task.work_ns(), work_ns);
  ProgramView view(plant.model, {});
  Load load(plant.model);
  view.update(seen);
  ASSERT_TRUE(load.update(seen, view));
  const double idle_ns = static_cast<double>(task.idle_ns) / 2;
  const double share = work_ns / (work_ns + idle_ns);
  EXPECT_NEAR(load.work_share(0), share, 1e-6);
  // A period of which gaps left little counts for little.
  task.busy_ns = seen.period_ns;
  task.idle_ns = 0;
  task.gap_ns = task.busy_gap_ns = seen.period_ns - 100;
  ASSERT_TRUE(load.update(seen, view));
  EXPECT_NEAR(load.work_share(0), share, 1e-3);
}

}  // namespace optimal_overload_test
}  // namespace batchplane::slo
