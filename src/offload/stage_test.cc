// SPDX-License-Identifier: BSD-3-Clause
// stage_test.cc - stages in a whole engine: what they hold and send, order, faults, edits, apply, stop.
#include "offload/stage.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/rng.h"
#include "core/module/register.h"
#include "offload/stage_test_util.h"
#include "spec/doors.h"

namespace batchplane::offload {
namespace stage_test {

const Register<TestIn> kIn{
    {.kind = "test_in", .state = StateOf::kOneOwner, .help = "test", .feed = Feed::kItself}};
const Register<TestOut> kOut{{.kind = "test_out",
                              .state = StateOf::kOneOwner,
                              .help = "test",
                              .params = {{.name = "way", .default_value = 0}},
                              .is_egress = true}};
const Register<TestWork> kWork{{.kind = "test_work",
                                .state = StateOf::kOneOwner,
                                .help = "test",
                                .drops = {&kSeventh},
                                .can_offload = true}};

TEST(Stage, SendsABatchWhenItIsFull) {
  Rig rig(
      pipeline({{"on", kGpu}, {"batch_pkts", 100}, {"idle", "hold"}}, {simulated(0, 5'000, 10)}),
      100);
  rig.loop(12);  // 32 packets every other loop; the next task polls in between
  EXPECT_EQ(rig.jobs("full"), 1);
  EXPECT_EQ(world.n_worked, 0U);  // 5 us and 100 times 10 ns after it was sent
  rig.loop(80);
  EXPECT_TRUE(world.out[0].empty() || world.n_worked == 100U);
  rig.loop(40);
  rig.expect_all();
}

TEST(Stage, GivesPacketsOutNoEarlierThanTheLawSays) {
  Rig rig(pipeline({{"on", kGpu}, {"batch_pkts", 64}, {"idle", "hold"}}, {simulated(0, 7'000, 0)}),
          64);
  rig.loop(1'000, 10);
  rig.expect_all();
  const Snapshot snapshot = rig.engine->snapshot(true);
  for (const FlowSnapshot& flow : snapshot.flows) {
    if (flow.total.pkts == 0) continue;
    EXPECT_GE(flow.total.delay_max_ns, 7'000U);
    EXPECT_LE(flow.total.delay_max_ns, 7'200U);
  }
}

TEST(Stage, SendsWhatIsOldAndNothingSooner) {
  Rig rig(pipeline({{"on", kGpu}, {"batch_pkts", 1000}, {"age_limit_ns", 20'000}, {"idle", "hold"}},
                   {simulated(0, 0, 0)}),
          40);
  rig.loop(199, 100);
  EXPECT_EQ(world.n_worked, 0U);
  EXPECT_EQ(rig.engine->snapshot(true).balance.held_pkts, 40U);
  rig.loop(10, 100);
  EXPECT_EQ(rig.jobs("age"), 1);
  rig.expect_all();
}

TEST(Stage, WaitsForNothingWhenThereIsNothingToWaitFor) {
  Rig rig(pipeline({{"on", kGpu}, {"batch_pkts", 1000}, {"age_limit_ns", 1'000'000}},
                   {simulated(0, 1'000, 0)}),
          0);
  for (uint32_t i = 1; i <= 5; ++i) {
    world.limit_pkts = 32 * i;
    rig.loop(20, 100);
    EXPECT_EQ(rig.jobs("idle"), i);
  }
  world.limit_pkts = 192;
  rig.loop(5, 100);
  world.limit_pkts = 256;  // while a batch is in flight the next one grows
  rig.loop(4, 100);
  EXPECT_EQ(rig.jobs("idle"), 6);
  rig.loop(50, 100);
  EXPECT_EQ(rig.jobs("idle"), 7);
  rig.expect_all();
}

TEST(Stage, DoesTheSameWithoutADevice) {
  Rig rig(pipeline({{"on", List{"inline"}}, {"batch_pkts", 700}}, {}), 5'000);
  rig.loop(1'000);
  EXPECT_EQ(rig.stats()["inline_pkts"].as_int(), 5'000);
  rig.expect_all();
}

TEST(Stage, NeverHasMoreUnderWayThanItsDepth) {
  Rig rig(pipeline({{"on", kGpu}, {"batch_pkts", 32}, {"depth", 2}, {"size_pkts", 64}},
                   {simulated(0, 1e9, 0)}),
          1'000);
  rig.loop(200);
  EXPECT_EQ(rig.jobs("full"), 2);
  // Two batches in flight, one that waits, and a full queue; the rest is dropped and counted.
  EXPECT_EQ(rig.engine->snapshot(true).balance.held_pkts, 3U * 32 + 64);
  rig.expect_balance();
}

TEST(Stage, StopsWithBatchesUnderWayAndLosesNone) {
  for (const uint32_t threads : {0U, 1U}) {
    Rig rig(pipeline({{"on", kGpu}, {"batch_pkts", 96}, {"idle", "hold"}},
                     {simulated(threads, 1e8, 0)}),
            1'000);
    rig.loop(20);
    rig.engine->stop(true);
    EXPECT_GT(world.n_made, 300U);
    rig.expect_all();
    EXPECT_EQ(rig.engine->snapshot(true).balance.held_pkts, 0U);
  }
}

TEST(Stage, TakesBackWhatADeviceNeverBegan) {
  Rig rig(
      pipeline({{"on", kGpu}, {"batch_pkts", 32}}, {simulated(0, 100, 0, {{"lose_one_in", 1}})}),
      64);
  rig.loop(4, 100);
  EXPECT_EQ(world.n_worked, 0U);
  rig.loop(60, 100'000);
  EXPECT_GE(rig.stats()["taken_back_jobs"].as_int(), 1);
  rig.expect_all();
}

TEST(Stage, GoesOnInlineWhileItsDeviceIsAway) {
  Rig rig(pipeline({{"on", kGpu}, {"batch_pkts", 32}},
                   {simulated(0, 100, 0, {{"fail_after_jobs", 3}, {"back_after_ns", 50'000}})}),
          6'400);
  rig.loop(1'000);
  rig.expect_all();
  const int64_t inline_pkts = rig.stats()["inline_pkts"].as_int();
  EXPECT_GT(inline_pkts, 0);
  EXPECT_LT(inline_pkts, 6'400);
}

TEST(Stage, ChangesItsDeviceWhilePacketsAreUnderWay) {
  Rig rig(
      pipeline({{"on", List{"gpu", "inline", "cpu"}}, {"batch_pkts", 48}, {"backpressure", true}},
               {simulated(1, 3'000, 10), cores(2)}),
      60'000, false);
  const char* const names[] = {"gpu", "inline", "cpu"};
  for (uint32_t i = 0; world.n_made < world.limit_pkts; ++i) {
    rig.stage().command("device", Dict{{"on", names[i % 3]}, {"batch_pkts", 1 + i % 48}});
    rig.loop(1 + i % 5);
  }
  rig.engine->stop(true);
  rig.expect_all();
}

TEST(Stage, AnApplyGoesOnWithPacketsAndState) {
  const auto spec = [](uint32_t batch_pkts) {
    return pipeline(
        {{"on", List{"gpu", "cpu"}}, {"batch_pkts", batch_pkts}, {"backpressure", true}},
        {simulated(1, 20'000, 10), cores(1)});
  };
  Rig rig(spec(64), 60'000, false);
  for (uint32_t i = 0; world.n_made < world.limit_pkts; ++i) {
    rig.loop(20);
    rig.apply(spec(1 + i * 37 % 300));
  }
  rig.engine->stop(true);
  rig.expect_all();
}

TEST(Stage, AnApplyTakesADeviceAway) {
  Rig rig(pipeline({{"on", kGpu}, {"batch_pkts", 32}}, {simulated(1, 1e8, 0)}), 500, false);
  rig.loop(20);
  rig.apply(pipeline({{"on", List{"inline"}}, {"batch_pkts", 32}}, {}));
  rig.loop(200);
  rig.engine->stop(true);
  rig.expect_all();
}

TEST(Stage, AnApplyThatRemovesItCountsWhatItHeld) {
  Rig rig(pipeline({{"on", kGpu}, {"batch_pkts", 32}}, {simulated(0, 1e9, 0)}), 320);
  rig.loop(30);
  PipelineSpec without = written({}, {});
  without.modules[1].device = Value();
  rig.apply(without);
  rig.expect_balance();
  EXPECT_GT(rig.engine->snapshot(true).balance.dropped_pkts, 0U);
}

// Packets of the fault tests: 40,000, or BATCHPLANE_SOAK_PKTS.
uint64_t soak_pkts() {
  const char* const given = std::getenv("BATCHPLANE_SOAK_PKTS");
  return given == nullptr ? 40'000 : std::strtoull(given, nullptr, 10);
}

// Whatever goes wrong with the device, each packet leaves once, in order, with the right bytes.
TEST(Stage, RandomFaultsLoseNothing) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Dict faults{{"lose_one_in", 50},
                      {"late_one_in", 30},
                      {"fail_after_jobs", 40},
                      {"back_after_ns", 2000},
                      {"seed", seed}};
    Rig rig(pipeline({{"on", List{"gpu", "inline", "cpu"}},
                      {"batch_pkts", 64},
                      {"depth", 8},
                      {"backpressure", true}},
                     {simulated(static_cast<uint32_t>(seed % 3), 2'000, 5, faults), cores(1)}),
            soak_pkts());
    Rng rng(seed);
    const char* const names[] = {"gpu", "gpu", "gpu", "inline", "cpu"};
    while (world.n_made < world.limit_pkts) {
      world.burst_pkts = 1 + static_cast<uint32_t>(rng.below(32));
      if (rng.below(20) == 0) {
        rig.stage().command("device", Dict{{"on", names[rng.below(5)]}});
      }
      rig.loop(1, rng.below(100) == 0 ? 7'000'000 : 500);
    }
    rig.loop(20, 10'000'000);
    rig.engine->stop(true);
    rig.expect_all();
  }
}

// Each worker puts packets into its own ring; the first one takes them out of both.
TEST(Stage, TakesPacketsFromSeveralWorkers) {
  PipelineSpec spec = written({{"on", kGpu}, {"batch_pkts", 50}}, {simulated(0, 1'000, 1)});
  spec.workers = {{"w0"}, {"w1"}};
  spec.modules.push_back({"in1", "test_in", {}});
  spec.modules.back().worker = "w1";
  spec.modules[1].worker = "w0";
  spec.edges.push_back({"in1", "0", "work"});
  spec.flows.clear();
  spec = staged(spec);
  add_doors(spec, module_kind_facts());
  Rig rig(spec, 4'000);
  rig.engine->workers()[1]->use_virtual_clock(&rig.now_ns);
  for (uint32_t i = 0; i < 400; ++i) {
    rig.loop(1, 500);
    rig.engine->workers()[1]->loop_once();
  }
  rig.loop(200, 1'000);
  rig.expect_balance();
  EXPECT_EQ(world.n_worked, 4'000U);
  EXPECT_EQ(world.out[0].size() + world.out[1].size(), 4'000U - 572);  // every seventh is dropped
}

TEST(Stage, DealsPacketsOutByShares) {
  Rig rig(pipeline({{"on", List{"gpu", "inline"}}, {"batch_pkts", 32}, {"max_batch_pkts", 64}},
                   {simulated(0, 100, 0)}),
          64'000);
  Placing placing;
  placing.share = {0.75, 0.25};
  placing.batch_pkts = {64, 32};
  placing.age_limit_ns = 1'000'000;
  rig.stage().place(placing);
  rig.loop(9'000);
  rig.expect_all();
  EXPECT_NEAR(rig.stats()["inline_pkts"].as_int(), 16'000, 200);
  EXPECT_EQ(rig.stats()["devices"].as_list()[0]["batch_pkts"].as_int(), 64);
}

// A single packet is sent at once; packets that arrive together share a batch.
TEST(Stage, SmallBatchesDoNotHoldUpALoop) {
  Rig rig(pipeline({{"on", List{"inline"}}, {"batch_pkts", 1}, {"max_batch_pkts", 64}}, {}), 3'200);
  rig.loop(202);
  rig.expect_all();
  Rig narrow(pipeline({{"on", List{"inline"}}, {"batch_pkts", 1}}, {}), 3'200);
  narrow.loop(202);  // each by itself and at once
  narrow.expect_all();
  EXPECT_EQ(narrow.jobs("full"), 3'200);
}

// A place that had no packets for long is owed nothing.
TEST(Stage, BeginsANewShareWhereTheOthersAre) {
  Rig rig(pipeline({{"on", List{"inline", "gpu"}}, {"batch_pkts", 32}}, {simulated(0, 100, 0)}),
          32'000);
  rig.loop(4'000);
  Placing placing;
  placing.share = {0.5, 0.5};
  placing.batch_pkts = {32, 32};
  placing.age_limit_ns = 1'000'000;
  rig.stage().place(placing);
  world.limit_pkts = 38'400;
  rig.loop(1'000);
  rig.expect_all();
  EXPECT_NEAR(rig.stats()["inline_pkts"].as_int(), 32'000 + 3'200, 64);
}

TEST(Stage, RefusesAShareOfWhatComes) {
  Rig rig(pipeline({{"on", List{"inline"}}, {"batch_pkts", 32}}, {}), 10'000);
  Placing placing;
  placing.share = {1};
  placing.batch_pkts = {32};
  placing.refused = 0.25;
  rig.stage().place(placing);
  rig.loop(3'000);
  rig.expect_balance();
  EXPECT_EQ(world.n_worked, 7'500U);
}

TEST(Stage, ItsModuleTakesCommandsAndShowsItself) {
  Rig rig(pipeline({{"on", kGpu}}, {simulated(0, 1, 1)}), 10);
  EXPECT_EQ(rig.stage().command("ping", Dict{}).as_string(), "pong");
  rig.loop(50);
  EXPECT_EQ(rig.stage().show()["next"].as_int(), 10);
  const Value saved = rig.stage().saved_params().at("device");
  EXPECT_EQ(saved["on"].as_list().size(), 2U);
}

TEST(Stage, SavesWhatItRunsOnFirst) {
  Rig rig(pipeline({{"on", kGpu}}, {simulated(0, 1, 1)}), 10);
  rig.stage().command("device", Dict{{"on", "inline"}, {"batch_pkts", 7}});
  const Value saved = rig.stage().saved_params().at("device");
  EXPECT_EQ(saved["on"].as_list().front().as_string(), "inline");
  EXPECT_EQ(saved["batch_pkts"].as_int(), 7);
  EXPECT_THROW(rig.stage().command("device", Dict{{"batch_pkts", 100'000}, {"on", "gpu"}}),
               ConfigError);
  EXPECT_EQ(rig.stats()["on"].as_string(), "inline");  // all or nothing
}

TEST(Stage, RefusesWhatCannotBe) {
  const auto has = [](const std::string& lines, const std::string& part) {
    EXPECT_NE(lines.find(part), std::string::npos) << lines;
  };
  has(refusal(written({{"on", List{"gppu"}}}, {simulated(0, 1, 1)})), "did you mean 'gpu'?");
  has(refusal(written({{"on", List{}}}, {})), "on");
  has(refusal(written({{"on", kGpu}, {"batch_pkts", 20'000}}, {simulated(0, 1, 1)})), "16384");
  has(refusal(written({{"on", kGpu}, {"batches", 2}}, {simulated(0, 1, 1)})), "batches");
  has(refusal(written({{"on", kGpu}}, {{"gpu", "tpu", {}}})), "cores, simulated, opencl or cuda");
  DeviceSpec lawless = simulated(0, 1, 1);
  lawless.params["laws"] = Dict{{"dpi", Dict{{"batch_ns", 1}}}};
  has(refusal(written({{"on", kGpu}}, {lawless})), "has no law for a test_work");
  lawless.params["laws"] = Dict{{"test_work", Dict{{"packet_ns", 1}}}};
  has(refusal(written({{"on", kGpu}}, {lawless})), "packet_ns");
  has(refusal(written({{"on", List{"cpu"}}}, {cores(0)})), "a thread at least");
  DeviceSpec far = cores(1);
  far.params["cores"] = List{1000};
  has(refusal(written({{"on", List{"cpu"}}}, {far})), "core 1000 cannot be had");
  PipelineSpec sink = written({{"on", kGpu}}, {simulated(0, 1, 1)});
  sink.modules[2].device = Dict{{"on", kGpu}};
  has(refusal(sink), "a test_out runs on no device");
}

}  // namespace stage_test
}  // namespace batchplane::offload
