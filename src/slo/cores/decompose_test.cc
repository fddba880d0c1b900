// SPDX-License-Identifier: BSD-3-Clause
// decompose_test.cc - which parts leave, where they go, and when they return.
#include "slo/cores/decompose.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "slo/model/settings.h"

namespace batchplane::slo {
namespace decompose_test {

constexpr uint64_t kPeriodNs = 10'000'000;

// in -> split -> a -> ea (flow 0) and split -> b -> eb (flow 1), on worker 0 of three.
struct Fork {
  Fork() {
    model.batch_limit_pkts = 32;
    model.workers = {"w0", "w1", "w2"};
    for (const char* name : {"in", "split", "a", "ea", "b", "eb"}) {
      model.modules.push_back({.name = name, .has_buffer = std::string(name) != "in"});
      snapshot.modules.push_back({.batches = 100, .pkts = 3200, .cost = CostLaw(CostLaw::Line{})});
    }
    model.edges = {{0, 0, 1}, {1, 0, 2}, {2, 0, 3}, {1, 1, 4}, {4, 0, 5}};
    model.flows = {{"fa", {0, 1, 2, 3}}, {"fb", {0, 1, 4, 5}}};
    model.tasks = {{.worker = 0, .inputs = {0}, .modules = {1, 2, 4, 3, 5}}};
    model.inputs = {{.module = 0, .task = 0}};
    snapshot.period_ns = kPeriodNs;
    snapshot.flows.resize(2);
    snapshot.tasks.resize(1);
    snapshot.inputs.resize(1);
    settings.master_periods = 2;
  }
  void cost(uint32_t module, double batch_ns, double pkt_ns = 0) {
    snapshot.modules[module].cost = CostLaw(CostLaw::Line{batch_ns, pkt_ns});
  }
  void traffic(uint32_t module, uint64_t batches, uint64_t pkts) {
    snapshot.modules[module].batches = batches;
    snapshot.modules[module].pkts = pkts;
  }
  void flow(uint32_t f, uint64_t slo_ns, uint64_t delay_ns) {
    snapshot.flows[f] = {.slo_ns = slo_ns,
                         .pkts = 100,
                         .late_pkts = delay_ns > slo_ns ? 100U : 0U,
                         .delay_ns = delay_ns};
  }
  // b and the modules behind it run on this worker now, behind a queue.
  void move_b(uint32_t worker) {
    model.modules.push_back({.name = "b/in", .has_buffer = true});
    snapshot.modules.push_back({.cost = CostLaw(CostLaw::Line{})});
    model.edges = {{0, 0, 1}, {1, 0, 2}, {2, 0, 3}, {1, 1, 6}, {6, 0, 4}, {4, 0, 5}};
    model.flows[1].path = {0, 1, 6, 4, 5};
    model.tasks = {{.worker = 0, .inputs = {0}, .modules = {1, 2, 6, 3}},
                   {.worker = worker, .inputs = {6}, .modules = {4, 5}}};
    model.modules[4].task = model.modules[5].task = 1;
    model.inputs.push_back({.module = 6, .task = 1, .is_queue = true});
    snapshot.tasks.resize(2);
    snapshot.inputs.resize(2);
  }

  Model model;
  Snapshot snapshot;
  Settings settings;
};

// Steps until moves are decided, at most for so many periods.
std::vector<exec::MoveChange> moves_within(Decomposer& decomposer, const Fork& fork,
                                           uint32_t periods) {
  for (uint32_t i = 0; i < periods; ++i) {
    auto moves = decomposer.step(fork.model, fork.snapshot);
    if (!moves.empty()) return moves;
  }
  return {};
}

// The paper's example: functions of one and of ten units on one worker, and an SLO of two units for
// the first one's flow. A packet may arrive while the other function is running.
TEST(Decompose, GreedyMovesAwayWhatBreaksAnSlo) {
  Fork fork;
  fork.settings.decompose = Decompose::kGreedy;
  fork.cost(2, 1'000);
  fork.cost(4, 10'000);
  fork.flow(0, 2'000, 10'000);
  fork.flow(1, 0, 10'000);
  Decomposer decomposer(fork.settings);
  EXPECT_TRUE(decomposer.step(fork.model, fork.snapshot).empty()) << "only every other period";
  const auto moves = decomposer.step(fork.model, fork.snapshot);
  ASSERT_EQ(moves.size(), 1U);
  EXPECT_EQ(moves[0].module, 4U);
  EXPECT_NE(moves[0].worker, 0U);
  EXPECT_STREQ(moves[0].reason, "inherent");
}

TEST(Decompose, GreedyLeavesAlone) {
  Fork fork;
  fork.settings.decompose = Decompose::kGreedy;
  fork.cost(2, 1'000);
  fork.cost(4, 10'000);
  fork.flow(1, 0, 10'000);
  Decomposer kept(fork.settings);
  fork.flow(0, 2'000, 1'500);
  EXPECT_TRUE(moves_within(kept, fork, 6).empty()) << "the promise is kept as it is";
  Decomposer enough(fork.settings);
  fork.flow(0, 12'000, 13'000);
  EXPECT_TRUE(moves_within(enough, fork, 6).empty()) << "triggers can mend that";
  fork.model.workers = {"w0"};
  fork.flow(0, 2'000, 10'000);
  Decomposer alone(fork.settings);
  EXPECT_TRUE(moves_within(alone, fork, 6).empty()) << "there is no other worker";
}

TEST(Decompose, ComesBackOnceThereIsRoomAndTime) {
  Fork fork;
  fork.settings.decompose = Decompose::kGreedy;
  fork.cost(2, 1'000);
  fork.cost(4, 100'000);
  fork.flow(0, 20'000, 100'000);
  fork.flow(1, 0, 100'000);
  Decomposer decomposer(fork.settings);
  const auto away = moves_within(decomposer, fork, 2);
  ASSERT_EQ(away.size(), 1U);
  fork.move_b(away[0].worker);
  fork.flow(0, 20'000, 2'000);
  EXPECT_TRUE(moves_within(decomposer, fork, 40).empty()) << "there is as much to do as before";
  fork.traffic(4, 1, 1);
  fork.cost(4, 5'000);
  const auto back = moves_within(decomposer, fork, 40);
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0].module, 4U);
  EXPECT_EQ(back[0].worker, 0U);
  EXPECT_STREQ(back[0].reason, "return");
}

TEST(Decompose, StaysWhereTheHomeWorkerIsGone) {
  Fork fork;
  fork.settings.decompose = Decompose::kGreedy;
  fork.cost(2, 1'000);
  fork.cost(4, 100'000);
  fork.flow(0, 20'000, 100'000);
  fork.flow(1, 0, 100'000);
  Decomposer decomposer(fork.settings);
  const auto away = moves_within(decomposer, fork, 2);
  ASSERT_EQ(away.size(), 1U);
  fork.move_b(away[0].worker);
  fork.flow(0, 20'000, 2'000);
  fork.traffic(4, 1, 1);
  fork.cost(4, 5'000);
  fork.model.workers[0] = "new";
  EXPECT_TRUE(moves_within(decomposer, fork, 40).empty());
  fork.model.workers[0] = "w0";
  EXPECT_TRUE(moves_within(decomposer, fork, 40).empty()) << "its home was forgotten";
}

// A part that has to leave again right after its return stays away longer each time.
TEST(Decompose, DoesNotGoBackAndForth) {
  Fork fork;
  fork.settings.decompose = Decompose::kGreedy;
  Decomposer decomposer(fork.settings);
  uint32_t n_moves = 0;
  bool is_away = false;
  for (uint32_t period = 0; period < 2000; ++period) {
    Fork now = fork;
    // Late whenever the part is here, idle whenever it is not: a load that no rule can foresee.
    now.cost(2, 100);
    now.cost(4, 10'000);
    now.flow(0, 2'000, is_away ? 500 : 10'000);
    if (is_away) {
      now.move_b(1);
      now.traffic(4, 0, 0);
    }
    for (const exec::MoveChange& move : decomposer.step(now.model, now.snapshot)) {
      is_away = move.worker != 0;
      ++n_moves;
    }
  }
  EXPECT_GE(n_moves, 4U);
  EXPECT_LE(n_moves, 40U) << "every other period would be 1000";
}

TEST(Decompose, BalanceHalvesTheLoadOfAFullWorker) {
  Fork fork;
  fork.settings.decompose = Decompose::kBalance;
  for (const uint32_t m : {2U, 4U}) {
    fork.traffic(m, 1'000, 32'000);
    fork.cost(m, 100, 147);  // 0.48 of the period each
  }
  Decomposer decomposer(fork.settings);
  const auto moves = moves_within(decomposer, fork, 2);
  ASSERT_EQ(moves.size(), 1U);
  EXPECT_TRUE(moves[0].module == 2 || moves[0].module == 4);
  EXPECT_STREQ(moves[0].reason, "overload");
  Decomposer far(fork.settings, {.send_per_pkt_ns = 150, .take_per_pkt_ns = 150});
  EXPECT_TRUE(moves_within(far, fork, 6).empty())
      << "handing packets over costs as much as the part";
  fork.cost(2, 0);
  fork.cost(4, 100, 280);
  Decomposer whole(fork.settings);
  EXPECT_TRUE(moves_within(whole, fork, 6).empty()) << "all of the load in one module: no gain";
}

// Whatever the costs say: what polls always find full has more than the worker can do.
TEST(Decompose, BalanceKnowsAFullWorkerByItsPolls) {
  Fork fork;
  fork.settings.decompose = Decompose::kBalance;
  for (const uint32_t m : {2U, 4U}) {
    fork.traffic(m, 1'000, 8'000);
    fork.cost(m, 100, 400);  // 0.33 of the period each
  }
  fork.snapshot.tasks[0] = {.in_pkts = 16'000, .runs = 2'000, .busy_ns = kPeriodNs};
  Decomposer empty(fork.settings);
  EXPECT_TRUE(moves_within(empty, fork, 6).empty()) << "8 packets of 32";
  fork.snapshot.tasks[0].poll_pkts = 8;
  Decomposer full(fork.settings);
  EXPECT_EQ(moves_within(full, fork, 2).size(), 1U);
}

TEST(Decompose, BalanceIsKeptUntilTheRateFalls) {
  Fork fork;
  fork.settings.decompose = Decompose::kBalance;
  for (const uint32_t m : {2U, 4U}) fork.traffic(m, 1'000, 32'000);
  fork.cost(2, 100, 168);
  fork.cost(4, 100, 128);
  fork.traffic(0, 2'000, 64'000);
  Decomposer decomposer(fork.settings);
  ASSERT_EQ(moves_within(decomposer, fork, 2).size(), 1U);
  fork.move_b(1);
  // By their costs both would fit on one worker; but as many packets arrive as before.
  fork.cost(2, 10, 10);
  fork.cost(4, 10, 10);
  EXPECT_TRUE(moves_within(decomposer, fork, 60).empty());
  fork.traffic(0, 500, 16'000);
  const auto back = moves_within(decomposer, fork, 60);
  ASSERT_EQ(back.size(), 1U);
  EXPECT_STREQ(back[0].reason, "return");
}

TEST(Decompose, BalanceIsUndoneWhereItGainsNothing) {
  Fork fork;
  fork.settings.decompose = Decompose::kBalance;
  for (const uint32_t m : {2U, 4U}) fork.traffic(m, 1'000, 32'000);
  fork.cost(2, 100, 168);
  fork.cost(4, 100, 128);
  fork.traffic(0, 2'000, 64'000);
  Decomposer decomposer(fork.settings);
  const auto away = moves_within(decomposer, fork, 2);
  ASSERT_EQ(away.size(), 1U);
  Fork moved = fork;
  moved.move_b(away[0].worker);
  const uint32_t part = away[0].module;
  ASSERT_EQ(part, 4U) << "move_b() moves that one";
  moved.traffic(0, 2'000, 32'000);
  const auto back = moves_within(decomposer, moved, 2);
  ASSERT_EQ(back.size(), 1U);
  EXPECT_STREQ(back[0].reason, "no gain");
  EXPECT_EQ(back[0].worker, 0U);
  for (const exec::MoveChange& move : moves_within(decomposer, fork, 60)) {
    EXPECT_NE(move.module, part) << "it has been tried";
  }
}

// Overload moves no part to a worker where it would break an SLO, even if that worker has little to
// do.
TEST(Decompose, BalanceBreaksNoSloElsewhere) {
  Fork fork;
  fork.move_b(1);
  fork.settings.decompose = Decompose::kBalance;
  fork.model.workers.pop_back();
  fork.traffic(4, 2'000, 32'000);
  fork.cost(4, 3'000, 100);
  fork.traffic(5, 2'000, 32'000);
  fork.cost(5, 100, 100);
  Decomposer free(fork.settings);
  EXPECT_EQ(moves_within(free, fork, 2).size(), 1U) << "eb, to the worker with little to do";
  fork.flow(0, 3'000, 2'000);
  Decomposer bound(fork.settings);
  EXPECT_TRUE(moves_within(bound, fork, 2).empty());
}

TEST(Decompose, NormGreedyMovesTheTaskWithMostTime) {
  Fork fork;
  fork.move_b(0);  // two tasks on one worker
  fork.settings.decompose = Decompose::kNormGreedy;
  fork.flow(0, 10'000, 16'000);
  fork.flow(1, 1'000'000, 20'000);
  Decomposer decomposer(fork.settings);
  const auto moves = moves_within(decomposer, fork, 2);
  ASSERT_EQ(moves.size(), 1U);
  EXPECT_EQ(moves[0].module, 6U) << "who polls the queue before b";
  EXPECT_NE(moves[0].worker, 0U);
  fork.flow(0, 10'000, 14'000);
  Decomposer patient(fork.settings);
  EXPECT_TRUE(moves_within(patient, fork, 6).empty()) << "missed by less than half";
}

TEST(Decompose, SettingTakesItsNames) {
  const Settings settings = settings_from(Dict{{"decompose", "greedy"}});
  EXPECT_EQ(settings.decompose, Decompose::kGreedy);
  EXPECT_THROW(settings_from(Dict{{"decompose", "gredy"}}), ConfigError);
  EXPECT_THROW(settings_from(Dict{{"decompose", 1}}), ConfigError);
}

}  // namespace decompose_test
}  // namespace batchplane::slo
