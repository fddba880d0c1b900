// SPDX-License-Identifier: BSD-3-Clause
// optimal_overload_test.cc - what is no overload, and what an overload must not leave behind.
#include <gtest/gtest.h>

#include <algorithm>

#include "slo/model/ring_plant_test_util.h"
#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace optimal_overload_test {

constexpr double kPeriodNs = 10e6;
constexpr uint64_t kHoleNs = 3'000'000;

// Eight leaves with one promise.
class Rig {
 public:
  Rig(double slo_ns, double rate_pkts_per_ns)
      : plant_(std::vector<RingPlantLeaf>(8, {300, 25, 1, slo_ns}), rate_pkts_per_ns, 1),
        optimal_(plant_.model, {}) {}

  void step() {
    seen_ = plant_.run(kPeriodNs, 0.95);
    decide();
  }
  // A period whose packets took so many times the promise, all of them late or none.
  void step_with_delay(double of_slo) {
    seen_ = plant_.run(kPeriodNs, 0.95);
    for (exec::FlowPeriod& flow : seen_.flows) {
      flow.delay_ns = static_cast<uint64_t>(of_slo * static_cast<double>(flow.slo_ns));
      flow.late_pkts = of_slo > 1 ? flow.pkts : 0;
      flow.delay_max_ns = 2 * flow.delay_ns;
      if (of_slo <= 1) flow.delay_max_ns = flow.delay_ns;
    }
    decide();
  }
  // A period that begins with a hole: full polls from then on, everything late.
  void step_with_hole() {
    seen_ = plant_.run(kPeriodNs, 0.95);
    exec::TaskPeriod& task = seen_.tasks[0];
    task.gaps = 1;
    task.gap_ns = kHoleNs;
    task.runs = task.in_pkts / 31;
    task.busy_ns = seen_.period_ns;
    task.idle_ns = 0;
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
  // Of so many periods.
  int violated_of(int n) {
    int violated = 0;
    for (int i = 0; i < n; ++i) {
      step();
      violated += std::ranges::any_of(seen_.flows, [](const exec::FlowPeriod& flow) {
        return flow.late_pkts * 20 > flow.pkts;
      });
    }
    return violated;
  }
  [[nodiscard]] double mean_trigger() const {
    double sum = 0;
    for (const uint32_t q : optimal_.chosen()) sum += q;
    return sum / static_cast<double>(optimal_.chosen().size());
  }
  [[nodiscard]] bool is_carrying() const {
    return std::ranges::any_of(optimal_.explain().overload, &OverloadExplanation::is_carrying);
  }
  RingPlant& plant() { return plant_; }

 private:
  void decide() { plant_.apply(optimal_.step(seen_)); }

  RingPlant plant_;
  Optimal optimal_;
  Snapshot seen_;
};

TEST(Overload, HolesFarApartAreNone) {
  Rig rig(20'000, 0.006);
  rig.steps(220);
  const double before = rig.mean_trigger();
  ASSERT_GT(before, 4);
  for (int hole = 0; hole < 6; ++hole) {
    rig.step_with_hole();
    EXPECT_FALSE(rig.is_carrying()) << hole;
    EXPECT_LT(rig.mean_trigger(), 1.3 * before) << hole;
    rig.steps(40);
  }
}

// The model may be wrong: what it calls infeasible and was kept is not given up for a try.
TEST(Overload, PromisesThatAreKeptAreNotBroken) {
  Rig rig(7'000, 0);
  for (int i = 0; i < 80; ++i) {
    rig.step_with_delay(0.5);
    EXPECT_FALSE(rig.is_carrying()) << i;
  }
}

TEST(Overload, ABacklogIsCarriedFirst) {
  Rig rig(20'000, 0);
  rig.step_with_delay(40);
  rig.step_with_delay(40);
  EXPECT_TRUE(rig.is_carrying());
  EXPECT_GT(rig.mean_trigger(), 31);
}

// One slow moment and what it leaves waiting must not teach loads and plans for hundreds of
// periods.
TEST(Overload, ASlowMomentLeavesNothingBehind) {
  for (const bool has_backlog : {false, true}) {
    Rig rig(11'500, 0.018);
    for (int i = 0; i < 3; ++i) rig.step_with_delay(40);
    rig.steps(50);
    ASSERT_EQ(rig.violated_of(50), 0);
    const double usual_ns = rig.plant().front_pkt_ns;
    rig.plant().front_pkt_ns = 40;
    rig.step();
    if (has_backlog) rig.step_with_delay(40);
    rig.plant().front_pkt_ns = usual_ns;
    rig.steps(60);
    EXPECT_EQ(rig.violated_of(150), 0) << has_backlog;
  }
}

}  // namespace optimal_overload_test
}  // namespace batchplane::slo
