// SPDX-License-Identifier: BSD-3-Clause
// onoff_test.cc - buffers are bypassed or full, nothing in between.
#include "slo/controllers.h"

#include <gtest/gtest.h>

#include "slo/model/plant_test_util.h"

namespace batchplane::slo {
namespace onoff_test {

// A full buffer costs a flow 32 * 1050 = 33.6 us; 5 % of the SLO stay free.
TEST(OnOff, FillsWhereAFullBufferFits) {
  const Model model = tree_model(2);
  Snapshot snapshot = even_tree_period(model, 100'000, 61'300, 0);
  snapshot.flows[1] = flow_period(100'000, 61'500);
  const Decision decision = make_controller("onoff", model, {})->step(snapshot);
  ASSERT_EQ(decision.changes.size(), 1U);
  EXPECT_EQ(decision.changes[0].module, 2U);
  EXPECT_EQ(decision.changes[0].trigger_pkts, 32U);
  EXPECT_STREQ(decision.changes[0].reason, "pull");
  EXPECT_EQ(decision.changes[0].age_limit_ns, exec::kStrandingAge);
}

TEST(OnOff, BypassesThePathOfALateFlowAndNotInTheSamePeriodBack) {
  const Model model = tree_model(2);
  Snapshot snapshot = even_tree_period(model, 100'000, 50'000, 32);
  snapshot.flows[0] = flow_period(100'000, 100'100);
  const Decision decision = make_controller("onoff", model, {})->step(snapshot);
  ASSERT_EQ(decision.changes.size(), 1U);
  EXPECT_EQ(decision.changes[0].module, 2U);
  EXPECT_EQ(decision.changes[0].trigger_pkts, 0U);
  EXPECT_STREQ(decision.changes[0].reason, "recover");
}

TEST(OnOff, NeverEndsBetween) {
  Plant plant(tree_model(4));
  for (const uint32_t m : {2, 4, 6, 8}) plant.costs[m] = {1000, 50};
  plant.slo_ns = {20'000, 30'000, 60'000, 0};
  const auto controller = make_controller("onoff", plant.model, {});
  for (int i = 0; i < 10; ++i) plant.step(*controller);
  EXPECT_EQ(plant.triggers[2], 0U);
  EXPECT_EQ(plant.triggers[4], 0U);
  EXPECT_EQ(plant.triggers[6], 32U);
  EXPECT_EQ(plant.triggers[8], 32U);
}

}  // namespace onoff_test
}  // namespace batchplane::slo
