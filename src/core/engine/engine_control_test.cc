// SPDX-License-Identifier: BSD-3-Clause
// engine_control_test.cc - periods add up to the reports, whoever else reads meanwhile, and buffer changes
// are all or none.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/module/register.h"
#include "engine_rig.h"

namespace batchplane {
namespace engine_control_test {

// in -> s -> {a0, a1} -> out: 16 packets per loop to each side.
PipelineSpec fork() {
  PipelineSpec spec;
  spec.engine.is_idle_hold = true;
  spec.modules = {{"in", "source", {}},
                  {"s", "split", {{"gates", 2}}},
                  {"a0", "counter", {}},
                  {"a1", "counter", {}},
                  {"out", "sink", {}}};
  spec.edges = {
      {"in", "0", "s"}, {"s", "0", "a0"}, {"s", "1", "a1"}, {"a0", "0", "out"}, {"a1", "0", "out"}};
  spec.flows = {{"f0", {"in", "s", "a0", "out"}, 10'000}, {"f1", {"in", "s", "a1", "out"}, 0}};
  return spec;
}

constexpr uint32_t kIn = 0, kSplit = 1, kA0 = 2, kA1 = 3, kOut = 4;

TEST(EngineControl, TheModelNamesWhatThePipelineHas) {
  EngineRig rig(fork());
  const exec::ControlModel& model = rig.engine().control_model();
  ASSERT_EQ(model.modules.size(), 5U);
  EXPECT_EQ(model.modules[kA1].name, "a1");
  EXPECT_FALSE(model.modules[kIn].has_buffer);
  EXPECT_TRUE(model.modules[kSplit].has_buffer);
  EXPECT_TRUE(model.modules[kOut].is_egress);
  ASSERT_EQ(model.tasks.size(), 1U);
  EXPECT_EQ(model.tasks[0].inputs, std::vector<uint32_t>{kIn});
  EXPECT_EQ(model.tasks[0].modules.size(), 4U);
  ASSERT_EQ(model.flows.size(), 2U);
  EXPECT_EQ(model.flows[0].path, (std::vector<uint32_t>{kIn, kSplit, kA0, kOut}));
}

// a -> first -> q | second -> out: the flow has a leg on each worker.
PipelineSpec two_workers() {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}};
  spec.modules = {{"a", "source", {}, 0, 0, "w0"},
                  {"first", "counter", {}},
                  {"q", "queue", {{"size_pkts", 256}}, 0, 0, "w1"},
                  {"second", "counter", {}},
                  {"out", "sink", {}}};
  spec.edges = {
      {"a", "0", "first"}, {"first", "0", "q"}, {"q", "0", "second"}, {"second", "0", "out"}};
  spec.flows = {{"f", {"a", "out"}, 10'000}};
  return spec;
}

TEST(EngineControl, EachTaskOfAFlowIsMeasured) {
  EngineRig rig(two_workers());
  rig.loop(5);
  const exec::ControlModel& model = rig.engine().control_model();
  ASSERT_EQ(model.legs.all.size(), 2U);
  EXPECT_EQ(model.modules[model.legs.all[0].ends_at].name, "q");
  EXPECT_EQ(model.modules[model.legs.all[1].ends_at].name, "out");
  EXPECT_NE(model.legs.all[0].task, model.legs.all[1].task);
  rig.loop(5);
  const exec::PeriodSnapshot& period = rig.engine().period(0.95);
  ASSERT_EQ(period.legs.size(), 2U);
  EXPECT_GT(period.flows[0].pkts, 0U);
  EXPECT_EQ(period.legs[1].pkts, period.flows[0].pkts);
  EXPECT_GE(period.legs[0].pkts, period.flows[0].pkts);
  // Sent packets are not counted twice: legs are not packets of their own.
  const Snapshot now = rig.engine().snapshot(false);
  EXPECT_TRUE(now.balance.is_exact());
}

// One poll in 256. What is sampled of a queue is the work of those that fill it.
TEST(EngineControl, PollsOfInputsAreSampledLikeModules) {
  EngineRig rig(two_workers());
  rig.loop(1024);
  const exec::PeriodSnapshot& period = rig.engine().period(0.95);
  const CostSamples& source = period.modules[0].samples;
  EXPECT_GE(source.batches, 1U);
  EXPECT_EQ(source.pkts, 32 * source.batches);
  EXPECT_GT(source.cycles, 0U);
  const auto& tasks = rig.engine().graph().tasks;
  const auto& queue = tasks[rig.engine().control_model().modules[3].task]->inputs.front();
  EXPECT_GT(queue.batches, 0U);
  EXPECT_EQ(queue.cost.batches, 0U);
}

TEST(EngineControl, CreditsChangeAllOrNone) {
  EngineRig rig(two_workers());
  rig.engine().change_credits({{2, 64}});
  EXPECT_EQ(rig.engine().credit_pkts(2), 64U);
  EXPECT_THROW(rig.engine().change_credits({{2, 32}, {1, 32}}), ConfigError);
  EXPECT_EQ(rig.engine().credit_pkts(2), 64U);
  // Both name a queue, but the second credit exceeds its capacity.
  EXPECT_THROW(rig.engine().change_credits({{2, 32}, {2, 257}}), ConfigError);
  EXPECT_EQ(rig.engine().credit_pkts(2), 64U);
  EXPECT_EQ(rig.engine().credit_pkts(1), 0U);
}

TEST(EngineControl, PollsTakeNoMoreThanTheirLimit) {
  EngineRig rig(two_workers());
  const exec::ControlModel& model = rig.engine().control_model();
  const uint32_t first = model.modules[0].task;
  EXPECT_EQ(rig.engine().period(0.95).tasks[first].poll_pkts, 32U);
  rig.engine().change_polls({{first, 5}});
  rig.loop(40);
  const exec::PeriodSnapshot& period = rig.engine().period(0.95);
  EXPECT_EQ(period.tasks[first].in_pkts, 200U);
  EXPECT_EQ(period.tasks[first].runs, 40U);
  EXPECT_EQ(period.tasks[first].poll_pkts, 5U);
  EXPECT_EQ(period.tasks[1 - first].poll_pkts, 32U) << "each task has its own";
  for (const exec::InputSnapshot& input : rig.balanced().inputs) {
    EXPECT_EQ(input.poll_pkts, input.module == "a" ? 5U : 32U);
  }
}

TEST(EngineControl, PollsChangeAllOrNone) {
  EngineRig rig(two_workers());
  rig.engine().change_polls({{0, 8}, {1, 32}});
  const auto refused = [&](const std::vector<exec::PollChange>& polls) -> std::string {
    try {
      rig.engine().change_polls(polls);
    } catch (const ConfigError& error) {
      return error.line();
    }
    return "";
  };
  EXPECT_EQ(refused({{1, 4}, {0, 0}}),
            "a: a poll of 0 packets is out of range (1 to engine.batch_pkts, 32)");
  EXPECT_EQ(refused({{0, 4}, {1, 33}}),
            "q: a poll of 33 packets is out of range (1 to engine.batch_pkts, 32)");
  EXPECT_EQ(refused({{0, 4}, {2, 4}}),
            "decision: a change names task 2 of 2 (tasks are numbered from 0, as the model lists "
            "them)");
  EXPECT_EQ(rig.engine().poll_pkts(0), 8U);
  EXPECT_EQ(rig.engine().poll_pkts(1), 32U);
  EXPECT_THROW((void)rig.engine().poll_changes({{"first", 4}}), ConfigError) << "is not polled";
}

// What a pipeline gives its inputs, and what is saved of it.
TEST(EngineControl, PollLimitsAreThoseOfThePipelineUntilChanged) {
  PipelineSpec spec = fork();
  spec.modules[kIn].poll_pkts = 8;
  spec.modules.push_back({"other", "source", {}});
  spec.edges.push_back({"other", "0", "s"});
  EngineRig rig(spec);
  EXPECT_EQ(rig.engine().poll_pkts(0), 8U) << "the least of the task's inputs";
  EXPECT_EQ(rig.engine().current_spec().modules.back().poll_pkts, 0U);
  EXPECT_TRUE(rig.engine().difference(*rig.build(spec)).changed.empty());
  rig.engine().change_polls(rig.engine().poll_changes({{"in", 16}, {"other", 6}}));
  EXPECT_EQ(rig.engine().poll_pkts(0), 6U);
  const PipelineSpec saved = rig.engine().current_spec();
  EXPECT_EQ(rig.engine().difference(*rig.build(spec)).changed,
            (std::vector<std::string>{"in", "other"}));
  rig.engine().change_polls({{0, 32}});
  EXPECT_EQ(rig.engine().current_spec().modules.back().poll_pkts, 32U);
  rig.engine().apply(rig.build(saved));
  EXPECT_EQ(rig.engine().poll_pkts(0), 6U);
}

// Packets that have come before the end; none after them.
class Backlog final : public Module {
 public:
  static constexpr uint32_t kPkts = 3000;
  explicit Backlog(const Args& /*args*/) {}
  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    const uint32_t n = std::min(max, left_pkts_);
    if (n == 0 || !ctx.pool->alloc_bulk(pkts, n)) return 0;
    left_pkts_ -= n;
    for (uint32_t i = 0; i < n; ++i) {
      pkts[i]->reset(64);
      pkts[i]->meta() = PacketMeta{.entry_ns = ctx.now_ns};
    }
    return n;
  }

 private:
  uint32_t left_pkts_ = kPkts;
};
const Register<Backlog> kBacklog{
    {.kind = "test_backlog", .state = StateOf::kOneOwner, .help = "Test."}};

// A stop counts loops, so that it ends.
TEST(EngineControl, AStopTakesFullPolls) {
  PipelineSpec spec = fork();
  spec.modules[kIn] = {"in", "test_backlog", {}};
  EngineRig rig(spec);
  rig.engine().change_polls({{0, 1}});
  rig.engine().stop(true);
  EXPECT_EQ(rig.balanced().balance.in_pkts, Backlog::kPkts);
}

TEST(EngineControl, APeriodCountsWhatHappenedSinceTheLastOne) {
  EngineRig rig(fork());
  rig.loop(7);
  (void)rig.engine().period(0.95);
  rig.engine().change_buffers({{kA0, 32, 50'000, "test"}});
  const uint64_t begin_ns = rig.now_ns;
  rig.loop(10);
  const exec::PeriodSnapshot& period = rig.engine().period(0.95);
  EXPECT_EQ(period.now_ns, rig.now_ns);
  EXPECT_EQ(period.period_ns, rig.now_ns - begin_ns);
  EXPECT_EQ(period.modules[kIn].pkts, 320U);
  EXPECT_EQ(period.modules[kA0].pkts, 160U);
  EXPECT_EQ(period.modules[kA0].batches, 5U) << "32 at a time";
  EXPECT_EQ(period.modules[kA0].arrived_batches, 10U);
  EXPECT_EQ(period.modules[kA0].trigger_pkts, 32U);
  EXPECT_EQ(period.modules[kA0].age_limit_ns, 50'000U);
  EXPECT_EQ(period.modules[kA1].batches, 10U);
  EXPECT_EQ(period.modules[kA1].arrived_pkts, 160U) << "what reached a bypassed buffer is what ran";
  EXPECT_EQ(period.tasks[0].in_pkts, 320U);
  EXPECT_EQ(period.tasks[0].runs, 10U);
  EXPECT_EQ(period.tasks[0].firings, 5U);
  EXPECT_EQ(period.tasks[0].busy_ns + period.tasks[0].idle_ns, 10 * 100U);
  EXPECT_GE(period.tasks[0].run_p99_ns, 100U);
  EXPECT_LE(period.tasks[0].run_p99_ns, 113U) << "eight buckets an octave";
  EXPECT_EQ(period.flows[0].slo_ns, 10'000U);
  EXPECT_EQ(period.flows[1].slo_ns, 0U);
}

TEST(EngineControl, APeriodCountsDropsWhereTheyHappen) {
  PipelineSpec spec = fork();
  spec.modules[kA1] = {"a1", "drop", {}};
  spec.edges.erase(std::ranges::find(spec.edges, "a1", &EdgeSpec::from));
  spec.flows.pop_back();
  EngineRig rig(spec);
  rig.loop(3);
  (void)rig.engine().period(0.95);
  rig.loop(10);
  const exec::PeriodSnapshot& period = rig.engine().period(0.95);
  EXPECT_EQ(period.modules[kA1].dropped_pkts, 160U) << "of this period only";
  EXPECT_EQ(period.modules[kA0].dropped_pkts, 0U);
  const Snapshot all = rig.balanced();
  EXPECT_EQ(sum_of(all.modules[kA1].drops), 13 * 16U) << "reports have them by reason";
}

TEST(EngineControl, ReportsAndPeriodsDoNotTakeFromEachOther) {
  EngineRig rig(fork());
  uint64_t in_periods = 0;
  uint64_t in_epochs = 0;
  for (int round = 0; round < 20; ++round) {
    rig.loop(3);
    if (round % 2 == 0) in_periods += rig.engine().period(0.95).flows[0].pkts;
    if (round % 3 == 0) in_epochs += rig.balanced().flows[0].epoch.pkts;
  }
  in_periods += rig.engine().period(0.95).flows[0].pkts;
  const Snapshot last = rig.balanced();
  in_epochs += last.flows[0].epoch.pkts;
  EXPECT_EQ(last.flows[0].total.pkts, 20U * 3 * 16);
  EXPECT_EQ(in_periods, last.flows[0].total.pkts);
  EXPECT_EQ(in_epochs, last.flows[0].total.pkts);
}

TEST(EngineControl, PercentilesAndLatenessAreOfThePeriod) {
  EngineRig rig(fork());
  rig.engine().change_buffers({{kA0, 32, exec::kKeepAge, ""}});  // half waits for the next loop
  rig.loop(20, 100);
  (void)rig.engine().period(1);
  rig.engine().set_slo("f0", 400);
  rig.loop(10, 500);
  const exec::PeriodSnapshot& slow = rig.engine().period(1);
  EXPECT_GE(slow.flows[0].delay_ns, 500U);
  EXPECT_GT(slow.flows[0].late_pkts, 0U);
  EXPECT_LE(slow.flows[0].late_pkts, slow.flows[0].pkts);
  rig.engine().set_slo("f0", 10'000);
  rig.loop(2, 100);
  (void)rig.engine().period(1);
  rig.loop(10, 100);
  const exec::PeriodSnapshot& fast = rig.engine().period(1);
  EXPECT_LE(fast.flows[0].delay_ns, 200U);
  EXPECT_EQ(fast.flows[0].late_pkts, 0U);
}

TEST(EngineControl, ADecisionIsTakenAllOrNone) {
  EngineRig rig(fork());
  EXPECT_THROW(rig.engine().change_buffers({{kA0, 16, exec::kKeepAge, ""}, {kA1, 33, 0, ""}}),
               ConfigError);
  EXPECT_THROW(rig.engine().change_buffers({{kA0, 16, exec::kKeepAge, ""}, {99, 1, 0, ""}}),
               ConfigError);
  EXPECT_THROW(rig.engine().change_buffers({{kA0, 16, exec::kKeepAge, ""}, {kIn, 1, 0, ""}}),
               ConfigError);
  const exec::PeriodSnapshot& none = rig.engine().period(0.95);
  EXPECT_EQ(none.modules[kA0].trigger_pkts, 0U);
  rig.engine().change_buffers({{kA0, 16, 7'000, ""}, {kA1, 32, exec::kStrandingAge, ""}});
  const exec::PeriodSnapshot& both = rig.engine().period(0.95);
  EXPECT_EQ(both.modules[kA0].trigger_pkts, 16U);
  EXPECT_EQ(both.modules[kA0].age_limit_ns, 7'000U);
  EXPECT_EQ(both.modules[kA1].trigger_pkts, 32U);
  EXPECT_EQ(both.modules[kA1].age_limit_ns, rig.engine().graph().spec.engine.stranding_limit_ns);
}

TEST(EngineControl, FlowsGoOnOverAnApplyAndTheModelIsTheNewOne) {
  EngineRig rig(fork());
  rig.loop(5);
  PipelineSpec next = fork();
  next.modules.push_back({"more", "counter", {}});
  next.edges.back() = {"a1", "0", "more"};
  next.edges.push_back({"more", "0", "out"});
  next.flows[1] = {"g", {"in", "s", "a1", "more", "out"}, 0};
  rig.engine().apply(rig.build(next));
  EXPECT_EQ(rig.engine().control_model().modules.size(), 6U);
  (void)rig.engine().period(0.95);
  rig.loop(2);
  EXPECT_EQ(rig.engine().period(0.95).flows[1].pkts, 2U * 16);
  const Snapshot after = rig.balanced();
  EXPECT_EQ(after.flows[0].total.pkts, 7U * 16) << "of the same name";
  EXPECT_EQ(after.flows[1].total.pkts, 2U * 16);
  EXPECT_EQ(after.flows.back().total.pkts, 5U * 16) << "what no flow goes on with is `other`";
}

}  // namespace engine_control_test
}  // namespace batchplane
