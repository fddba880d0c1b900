// SPDX-License-Identifier: BSD-3-Clause
// worker_test.cc - accounting of a worker's time: busy, idle, commands, and unexplained gaps.
#include "core/engine/worker.h"

#include <gtest/gtest.h>

#include "core/module/register.h"
#include "engine_rig.h"

namespace batchplane {
namespace worker_test {

PipelineSpec line(uint64_t limit_pkts) {
  PipelineSpec spec;
  spec.modules = {{"in", "source", {{"limit_pkts", limit_pkts}}}, {"out", "sink", {}}};
  spec.edges = {{"in", "0", "out"}};
  return spec;
}

TEST(Worker, BooksLoopsByWhetherTheyFoundInput) {
  EngineRig rig(line(96));  // three batches, then nothing
  rig.loop(10, 1000);
  const WorkerStats& stats = rig.worker().stats();
  EXPECT_EQ(stats.loops, 10U);
  EXPECT_EQ(stats.busy_ns, 3000U);
  EXPECT_EQ(stats.idle_ns, 6000U);
  EXPECT_EQ(stats.control_ns, 0U);
  EXPECT_EQ(stats.gaps, 0U);
}

TEST(Worker, ALoopThatReleasesWhatIsHeldIsBusyThoughItFoundNoInput) {
  PipelineSpec spec = line(20);
  spec.modules.insert(spec.modules.begin() + 1, {"work", "null", {}});
  spec.modules[1].trigger_pkts = 32;
  spec.edges = {{"in", "0", "work"}, {"work", "0", "out"}};
  EngineRig rig(spec);
  rig.loop(10, 1000);
  const WorkerStats& stats = rig.worker().stats();
  EXPECT_EQ(stats.busy_ns, 2000U) << "one loop took packets, the next one released them";
  EXPECT_EQ(stats.idle_ns, 7000U);
}

TEST(Worker, AGapBeginsAbove20MicrosecondsOfIdleTime) {
  EngineRig rig(line(32));
  rig.loop(3);
  rig.loop(1, 20'000);
  EXPECT_EQ(rig.worker().stats().gaps, 0U);
  rig.loop(1, 20'001);
  rig.loop(1, 70'000);
  rig.loop(1, 30'000);
  const WorkerStats& stats = rig.worker().stats();
  EXPECT_EQ(stats.gaps, 3U);
  EXPECT_EQ(stats.gap_ns, 120'001U);
  EXPECT_EQ(stats.busy_gap_ns, 0U);
  EXPECT_EQ(stats.gap_max_ns, 70'000U);
  EXPECT_EQ(stats.recent_gaps[0].length_ns, 20'001U);
  EXPECT_EQ(stats.recent_gaps[1].length_ns, 70'000U);
  EXPECT_EQ(stats.recent_gaps[1].at_ns, rig.now_ns - 30'000) << "its end";
}

uint64_t* slow_clock_ns = nullptr;

// Takes 90 us per poll, and finds nothing.
class SlowInput final : public Module {
 public:
  explicit SlowInput(const Args& /*args*/) {}
  uint32_t poll(Context& /*ctx*/, Packet** /*pkts*/, uint32_t /*max*/) noexcept {
    *slow_clock_ns += 90'000;
    return 0;
  }
};
const Register<SlowInput> kSlowInput{
    {.kind = "slow_input", .state = StateOf::kOneOwner, .help = "For tests."}};

TEST(Worker, ALoopOfASharedWorkerIsNoGapInItsHostsTime) {
  PipelineSpec spec = line(0);
  spec.workers = {{"w0", -1}, {"w1", -1, std::nullopt, true}};
  spec.modules.push_back({"slow", "slow_input", {}, 0, 0, "w1"});
  spec.modules.push_back({"end", "sink", {}});
  spec.edges.push_back({"slow", "0", "end"});
  EngineRig rig(spec);
  slow_clock_ns = &rig.now_ns;
  Worker& shared = rig.worker(1);
  shared.start();  // has no thread
  for (int i = 0; i < 10; ++i) {
    rig.worker(0).loop_once();
    rig.worker(0).run_hosted();
  }
  EXPECT_EQ(shared.stats().loops, 10U);
  EXPECT_EQ(rig.worker(0).stats().gaps, 0U);
  {
    const Worker::Hold held(shared);
    rig.worker(0).run_hosted();
  }
  EXPECT_EQ(shared.stats().loops, 10U) << "nobody runs what is held";
  shared.stop();
  rig.worker(0).run_hosted();
  EXPECT_EQ(shared.stats().loops, 10U);
}

TEST(Worker, WorkThatTheCostLawKnowsExplainsItsTimeTwiceOver) {
  EngineRig rig(line(0));
  rig.loop(1);
  const uint64_t before_ns = rig.worker().tasks()[0]->executor->stats().work_ns;
  rig.loop(1);
  const uint64_t work_ns = rig.worker().tasks()[0]->executor->stats().work_ns - before_ns;
  ASSERT_GT(work_ns, 0U);
  rig.loop(1, 20'000 + 2 * work_ns);
  EXPECT_EQ(rig.worker().stats().gaps, 0U);
  rig.loop(1, 20'001 + 2 * work_ns);
  ASSERT_EQ(rig.worker().stats().gaps, 1U);
  EXPECT_EQ(rig.worker().stats().gap_ns, 20'001U);
}

// A buffer fires in every second loop: the long loop is the one that did the work, not the short one after
// it.
TEST(Worker, ALoopIsExplainedByItsOwnWork) {
  PipelineSpec spec = line(0);
  spec.modules.insert(spec.modules.begin() + 1, {"held", "null", {}});
  spec.modules[1].trigger_pkts = 32;
  spec.edges = {{"in", "0", "held"}, {"held", "0", "out"}};
  spec.modules[0].params["burst_pkts"] = 16;
  EngineRig rig(spec);
  rig.loop(4);
  const auto work_ns = [&] { return rig.worker().tasks()[0]->executor->work_so_far_ns(); };
  const uint64_t before_ns = work_ns();
  rig.loop(1);
  const uint64_t of_one_ns = work_ns() - before_ns;
  rig.loop(1);
  const uint64_t of_other_ns = work_ns() - before_ns - of_one_ns;
  const uint64_t of_firing_ns = std::max(of_one_ns, of_other_ns);
  ASSERT_GT(of_firing_ns, std::min(of_one_ns, of_other_ns));
  if (of_other_ns != of_firing_ns) rig.loop(1);
  rig.loop(1, 20'000 + 2 * of_firing_ns);
  EXPECT_EQ(rig.worker().stats().gaps, 0U) << "that was the loop that fired";
  rig.loop(1, 20'000 + 2 * of_firing_ns);
  EXPECT_EQ(rig.worker().stats().gaps, 1U) << "and that was not";
}

TEST(Worker, RemembersTheLast64Gaps) {
  EngineRig rig(line(1));
  rig.loop(2);
  for (uint64_t i = 1; i <= 70; ++i) rig.loop(1, 100'000 + i);
  const WorkerStats& stats = rig.worker().stats();
  EXPECT_EQ(stats.gaps, 70U);
  EXPECT_EQ(stats.recent_gaps[(70 - 1) % 64].length_ns, 100'070U);
  EXPECT_EQ(stats.recent_gaps[6].length_ns, 100'007U) << "the oldest that is left";
}

TEST(Worker, ACommandIsItsOwnTimeAndNoGap) {
  EngineRig rig(line(1));
  rig.engine().start();
  rig.worker().execute([&] { rig.now_ns += 1'000'000; });
  // Two more commands: each ends a whole loop after the first.
  for (int i = 0; i < 2; ++i) rig.worker().execute([] {});
  rig.engine().stop(false);
  const WorkerStats& stats = rig.worker().stats();
  EXPECT_EQ(stats.control_ns, 1'000'000U);
  EXPECT_EQ(stats.busy_ns + stats.idle_ns, 0U) << "time stood still otherwise";
  EXPECT_EQ(stats.gaps, 0U);
}

TEST(Worker, ExecutesHereAndNowWhenItDoesNotRun) {
  EngineRig rig(line(1));
  bool is_done = false;
  rig.worker().execute([&] { is_done = true; });
  EXPECT_TRUE(is_done);
  EXPECT_EQ(rig.worker().stats().loops, 0U);
}

TEST(Worker, SaysWhichCoreCannotBeHad) {
  Worker::Options options;
  options.core = 1000;
  Worker worker(options, nullptr, nullptr);
  try {
    worker.start();
    FAIL() << "there is no such core";
  } catch (const ConfigError& mistake) {
    EXPECT_EQ(mistake.line(),
              "workers.w0: core 1000 cannot be had (choose one that `taskset -p $$` lists)");
  }
  EXPECT_FALSE(worker.is_running());
}

}  // namespace worker_test
}  // namespace batchplane
