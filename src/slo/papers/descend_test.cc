// SPDX-License-Identifier: BSD-3-Clause
// descend_test.cc - the gradient step, against numbers worked out by hand.
//
// In an even tree each packet more in a trigger costs a flow 1050 ns, and the least trigger is 9.
#include "slo/papers/descend.h"

#include <gtest/gtest.h>

#include "slo/model/plant_test_util.h"

namespace batchplane::slo {
namespace descend_test {

constexpr uint64_t kSloNs = 100'000;

std::vector<uint32_t> triggers_after(const Model& model, const Snapshot& snapshot,
                                     const Settings& settings = {}, bool is_original = false) {
  const Topology topology(model);
  PeriodState state = measure(topology, settings, snapshot, {.keeps_margin = !is_original});
  descend(topology, settings, state, is_original);
  std::vector<uint32_t> triggers;
  for (const SegmentPeriod& segment : state.segments) triggers.push_back(segment.trigger_pkts);
  return triggers;
}

using Triggers = std::vector<uint32_t>;

TEST(Descend, WithoutAnSloGoesToFullBatches) {
  const Model model = tree_model(2);
  EXPECT_EQ(triggers_after(model, even_tree_period(model, 0, 500'000, 10)), (Triggers{32, 32}));
}

// 15 us below 95 % of the SLO: 15 000 / 1050 = 14.3 packets; 25 would pass it.
TEST(Descend, StopsWhereTheHeadroomEnds) {
  const Model model = tree_model(1);
  Model one = model;
  one.modules[2].is_controlled = true;
  EXPECT_EQ(triggers_after(one, even_tree_period(one, kSloNs, 80'000, 10)), (Triggers{24}));
  // Up to the SLO itself: 20 000 / 1050 = 19.05, to 30 with the original's rounding; then one
  // packet back because that passes 95 % of the SLO.
  EXPECT_EQ(triggers_after(one, even_tree_period(one, kSloNs, 80'000, 10), {}, true),
            (Triggers{29}));
}

TEST(Descend, ToleranceIsASetting) {
  Model one = tree_model(1);
  one.modules[2].is_controlled = true;
  Settings wide;
  wide.tolerance = 0.1;  // 10 000 / 1050 = 9.5
  EXPECT_EQ(triggers_after(one, even_tree_period(one, kSloNs, 80'000, 10), wide), (Triggers{19}));
}

// The branch with twice the rate saves twice as much: its share of the step is double.
TEST(Descend, FollowsTheGradientUntilTheFirstIsFull) {
  const Model model = tree_model(2);
  Snapshot snapshot = even_tree_period(model, 0, 0, 12);
  snapshot.modules[2] = module_period(2e6, 5, 12, {1000, 50});
  EXPECT_EQ(triggers_after(model, snapshot), (Triggers{32, 22}));
  snapshot.modules[2].trigger_pkts = 32;
  snapshot.modules[4].trigger_pkts = 22;
  EXPECT_EQ(triggers_after(model, snapshot), (Triggers{32, 32}));
}

TEST(Descend, ATightFlowKeepsItsTriggersOthersGrow) {
  const Model model = tree_model(2);
  Snapshot snapshot = even_tree_period(model, kSloNs, 97'000, 10);
  snapshot.flows[1] = flow_period(kSloNs, 20'000);
  EXPECT_EQ(triggers_after(model, snapshot), (Triggers{10, 32}));
}

// A flow without room for one more packet counts as tight.
TEST(Descend, AFlowWithoutRoomForAPacketIsTight) {
  const Model model = tree_model(2);
  EXPECT_EQ(triggers_after(model, even_tree_period(model, kSloNs, 94'900, 10)), (Triggers{10, 10}));
}

TEST(Descend, NothingMovesWhenEveryFlowIsInRecovery) {
  const Model model = tree_model(2);
  const Topology topology(model);
  PeriodState state = measure(topology, {}, even_tree_period(model, kSloNs, 50'000, 10), {});
  for (FlowNow& flow : state.flows) flow.is_frozen = true;
  descend(topology, {}, state);
  EXPECT_EQ(state.segments[0].trigger_pkts, 10U);
  state.flows[1].is_frozen = false;
  state.segments[0].is_frozen = true;
  descend(topology, {}, state);
  EXPECT_EQ(state.segments[0].trigger_pkts, 10U);
  EXPECT_EQ(state.segments[1].trigger_pkts, 32U);
}

// Two buffers of one tight flow with the same sensitivity, 4000 and 1000 ns per batch: the sum of
// the triggers stays, and 4000 / q1^2 = 1000 / q2^2 puts them in the ratio 2 : 1.
struct Sequence {
  Sequence(uint32_t q1, uint32_t q2, double delay_ns) {
    model.modules = {{.name = "in"},
                     {.name = "a", .has_buffer = true, .is_controlled = true},
                     {.name = "b", .has_buffer = true, .is_controlled = true},
                     {.name = "out", .has_buffer = true, .is_egress = true}};
    model.edges = {{0, 0, 1}, {1, 0, 2}, {2, 0, 3}};
    model.flows = {{"flow", {0, 1, 2, 3}}};
    model.tasks = {{.inputs = {0}, .modules = {1, 2, 3}}};
    snapshot.period_ns = 100'000'000;
    snapshot.modules = {module_period(1e6, 1, 0, {}), module_period(1e6, 1, q1, {4000, 50}),
                        module_period(1e6, 1, q2, {1000, 50}), module_period(1e6, 1, 0, {})};
    snapshot.flows = {flow_period(kSloNs, delay_ns)};
  }
  Model model;
  Snapshot snapshot;
};

TEST(Descend, TradesDelayBetweenBuffersOfATightFlow) {
  const Sequence even(15, 15, 97'000);
  // The first must not fill more slowly than the second: this constraint keeps both where they are.
  EXPECT_EQ(triggers_after(even.model, even.snapshot), (Triggers{15, 15}));
  // Swapped, the second one is the costly one: to 10 and 20.
  Sequence turned(15, 15, 97'000);
  std::swap(turned.snapshot.modules[1].cost, turned.snapshot.modules[2].cost);
  EXPECT_EQ(triggers_after(turned.model, turned.snapshot), (Triggers{10, 20}));
}

// Without checking the load the original's step goes on until the first reaches its least size of 5;
// its rounding up leaves 6.
TEST(Descend, OnlyTheOriginalOvershoots) {
  Sequence turned(15, 15, 97'000);
  std::swap(turned.snapshot.modules[1].cost, turned.snapshot.modules[2].cost);
  EXPECT_EQ(triggers_after(turned.model, turned.snapshot, {}, true), (Triggers{6, 25}));
}

// At the optimum of a tight flow nothing moves.
TEST(Descend, StaysAtTheOptimum) {
  Sequence turned(10, 20, 97'000);
  std::swap(turned.snapshot.modules[1].cost, turned.snapshot.modules[2].cost);
  EXPECT_EQ(triggers_after(turned.model, turned.snapshot), (Triggers{10, 20}));
}

// The chain's constraint and both flows' are three rows on two buffers: their multipliers are not
// unique, and there is no step. Without traffic, or with a period of zeros, there is none either.
TEST(Descend, SingularAndEmptyCasesMoveNothing) {
  Sequence even(15, 15, 97'000);
  even.model.flows.push_back(even.model.flows[0]);
  even.snapshot.flows.push_back(even.snapshot.flows[0]);
  EXPECT_EQ(triggers_after(even.model, even.snapshot), (Triggers{15, 15}));
  for (exec::ModulePeriod& module : even.snapshot.modules) {
    module.pkts = module.arrived_pkts = module.batches = module.arrived_batches = 0;
  }
  EXPECT_EQ(triggers_after(even.model, even.snapshot), (Triggers{15, 15}));
  EXPECT_EQ(triggers_after(even.model, empty_period(even.model)), (Triggers{0, 0}));
}

// More bounds have to be given up than there are tries: all 16 triggers leave their least size at
// once, where the original would stay for ever.
TEST(Descend, ManyBoundsDoNotHoldItBack) {
  const Model model = tree_model(16);
  Snapshot snapshot = even_tree_period(model, kSloNs, 60'000, 9);
  EXPECT_EQ(triggers_after(model, snapshot), Triggers(16, 32));
}

}  // namespace descend_test
}  // namespace batchplane::slo
