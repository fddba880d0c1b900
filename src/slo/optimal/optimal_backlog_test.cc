// SPDX-License-Identifier: BSD-3-Clause
// optimal_backlog_test.cc - packets that waited outside must not be learned from.
#include <gtest/gtest.h>

#include "slo/model/ring_plant_test_util.h"
#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace optimal_backlog_test {

constexpr double kPeriodNs = 10e6;
constexpr uint64_t kSloNs = 20'000;

class Backlog : public ::testing::Test {
 protected:
  // A period with this share of late packets and these delays, and the decision on it.
  void step(double late_share, uint64_t delay_ns, uint64_t worst_ns) {
    Snapshot seen = plant_.run(kPeriodNs, 0.95);
    for (exec::FlowPeriod& flow : seen.flows) {
      if (late_share <= 0) break;
      flow.late_pkts = static_cast<uint64_t>(late_share * static_cast<double>(flow.pkts));
      flow.delay_ns = delay_ns;
      flow.delay_max_ns = worst_ns;
    }
    plant_.apply(optimal_.step(seen));
  }
  void settle() {
    for (int i = 0; i < 10; ++i) step(0, 0, 0);
  }
  // Mean trigger in force.
  double trigger_pkts() {
    double sum = 0;
    for (const uint32_t q : optimal_.chosen()) sum += q;
    return sum / static_cast<double>(optimal_.chosen().size());
  }

  RingPlant plant_{std::vector<RingPlantLeaf>(8, {300, 25, 1, static_cast<double>(kSloNs)}), 0, 1};
  Optimal optimal_{plant_.model, {}};
};

TEST_F(Backlog, ItsLastPacketsTeachNothing) {
  settle();
  const double before = trigger_pkts();
  ASSERT_GT(before, 4);
  for (int i = 0; i < 3; ++i) step(1, 40 * kSloNs, 80 * kSloNs);
  EXPECT_GT(trigger_pkts(), 0.95 * before);
  step(0.09, kSloNs + kSloNs / 3, 30 * kSloNs);
  EXPECT_GT(trigger_pkts(), 0.95 * before);
}

// The same period without a backlog before it is learned from.
TEST_F(Backlog, LatePacketsTeachOtherwise) {
  settle();
  const double before = trigger_pkts();
  step(0.09, kSloNs + kSloNs / 3, 30 * kSloNs);
  EXPECT_LT(trigger_pkts(), 0.9 * before);
}

// Small batches, learned from late packets, may be the cause of a backlog.
TEST_F(Backlog, LastsNoLongerThanWhatItConfirms) {
  settle();
  const double before = trigger_pkts();
  step(0.09, kSloNs + kSloNs / 3, 30 * kSloNs);
  const double taught = trigger_pkts();
  ASSERT_LT(taught, 0.9 * before);
  for (int i = 0; i < 60; ++i) step(1, 40 * kSloNs, 80 * kSloNs);
  EXPECT_GT(trigger_pkts(), 0.85 * before);
}

}  // namespace optimal_backlog_test
}  // namespace batchplane::slo
