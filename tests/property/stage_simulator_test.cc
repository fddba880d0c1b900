// SPDX-License-Identifier: BSD-3-Clause
// stage_simulator_test.cc - a stage of the engine, on a device whose time is a law, and one of the simulator,
// given the same packets and polled at the same times: the same batches, for the same reasons, out as soon.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "core/module/register.h"
#include "offload/stage_test_util.h"
#include "sim/stage_rig.h"

namespace batchplane::offload::stage_test {

const Register<TestIn> kPropertyIn{
    {.kind = "test_in", .state = StateOf::kOneOwner, .help = "test", .feed = Feed::kItself}};
const Register<TestOut> kPropertyOut{{.kind = "test_out",
                                      .state = StateOf::kOneOwner,
                                      .help = "test",
                                      .params = {{.name = "way", .default_value = 0}},
                                      .is_egress = true}};
const Register<TestWork> kPropertyWork{{.kind = "test_work",
                                        .state = StateOf::kOneOwner,
                                        .help = "test",
                                        .drops = {&kSeventh},
                                        .can_offload = true}};

BatchLaw several_at_once(const BatchLaw& line, double part) {
  BatchTable table{.batch_pkts = {1, 300}, .pkt_bytes = {64}};
  for (const uint32_t n : table.batch_pkts) {
    table.alone_ns.push_back(line.line_ns(n, 64));
    table.busy_ns.push_back(part * line.line_ns(n, 64));
  }
  return {.table = std::make_shared<const BatchTable>(std::move(table))};
}

TEST(StageAndSimulator, HandOverTheSameBatchesAtTheSameTimes) {
  Rng rng(21);
  for (uint32_t run = 0; run < 60; ++run) {
    BatchLaw law{.batch_ns = 1.0 * rng.below(30'000), .pkt_ns = 1.0 * rng.below(90)};
    if (run % 2 == 0) law = several_at_once(law, rng.below(100) / 100.0);
    sim::StageSpec spec = sim::stage_on("gpu", law, 1 + rng.below(200));
    spec.depth = 1 + rng.below(4);
    spec.age_limit_ns = rng.below(30'000);
    spec.is_idle_hold = rng.below(2) == 0;
    Rig engine(pipeline({{"on", List{"gpu"}},
                         {"batch_pkts", spec.batch_pkts},
                         {"depth", spec.depth},
                         {"size_pkts", 32'768},
                         {"age_limit_ns", spec.age_limit_ns},
                         {"idle", spec.is_idle_hold ? "hold" : "release"}},
                        {simulated_with(0, law)}),
               0);
    sim::StageRig simulated_stage(spec, {sim::make_device()});
    for (uint32_t step = 0; step < 400; ++step) {
      world.limit_pkts += rng.below(4) == 0 ? rng.below(100) : 0;
      const uint64_t made_before = world.n_made;
      engine.loop(1, 1 + rng.below(3'000));
      simulated_stage.put(static_cast<uint32_t>(world.n_made - made_before), engine.now_ns);
      (void)simulated_stage.poll(engine.now_ns);
      const Value real = engine.stats();
      const Dict shown = simulated_stage.show();
      ASSERT_EQ(real["jobs"], shown.at("jobs")) << "run " << run << ", step " << step;
      ASSERT_EQ(real["pkts"], shown.at("pkts"));
      ASSERT_EQ(real["held_pkts"].as_int(), static_cast<int64_t>(simulated_stage.held_pkts()));
      ASSERT_EQ(real["mean_job_ns"], shown.at("mean_job_ns"));
    }
    EXPECT_GT(world.n_made, 1000U);
    EXPECT_TRUE(world.was_in_order);
  }
}

// Plans for two devices and the worker that change at any time: the same packets are refused, and the same batches go
// to the same places.
TEST(StageAndSimulator, FollowPlansAlike) {
  Rng rng(22);
  for (uint32_t run = 0; run < 40; ++run) {
    const BatchLaw laws[2] = {{.batch_ns = 1.0 * rng.below(9'000), .pkt_ns = 20},
                              {.batch_ns = 1.0 * rng.below(9'000), .pkt_ns = 40}};
    sim::StageSpec spec = sim::stage_on("gpu", laws[0], 1 + rng.below(64));
    spec.places.push_back({"other", laws[1], 0});
    spec.places.push_back({placement::kInline, {}, 0});
    spec.max_batch_pkts = 200;
    spec.depth = 1 + rng.below(4);
    DeviceSpec other = simulated_with(0, laws[1]);
    other.name = "other";
    Rig engine(pipeline({{"on", List{"gpu", "other", "inline"}},
                         {"batch_pkts", spec.batch_pkts},
                         {"max_batch_pkts", spec.max_batch_pkts},
                         {"depth", spec.depth},
                         {"size_pkts", 32'768},
                         {"age_limit_ns", spec.age_limit_ns}},
                        {simulated_with(0, laws[0]), other}),
               0);
    sim::StageRig simulated_stage(spec, {sim::make_device(), sim::make_device(), nullptr});
    uint64_t n_refused = 0;
    for (uint32_t step = 0; step < 400; ++step) {
      if (rng.below(20) == 0) {
        const double share = rng.below(5) / 4.0;
        const double there = rng.below(3) / 2.0;
        Placing placing;
        placing.share = {share, (1 - share) * there, (1 - share) * (1 - there)};
        placing.batch_pkts = {1 + rng.below(250), 1 + rng.below(250), 1 + rng.below(250)};
        placing.refused = rng.below(3) == 0 ? 0.3 : 0;
        placing.age_limit_ns = rng.below(30'000);
        engine.stage().place(placing);
        simulated_stage.stage().place(placing);
      }
      world.limit_pkts += rng.below(4) == 0 ? rng.below(100) : 0;
      const uint64_t made_before = world.n_made;
      engine.loop(1, 1 + rng.below(3'000));
      for (uint64_t i = made_before; i < world.n_made; ++i) {
        const bool is_refused = simulated_stage.stage().refuses(0);
        n_refused += is_refused ? 1 : 0;
        if (!is_refused) simulated_stage.put(1, engine.now_ns);
      }
      (void)simulated_stage.poll(engine.now_ns);
      const Value real = engine.stats();
      const Dict shown = simulated_stage.show();
      ASSERT_EQ(real["jobs"], shown.at("jobs")) << "run " << run << ", step " << step;
      ASSERT_EQ(real["on"], shown.at("on"));
      ASSERT_EQ(engine.stage().counts().refused_pkts, n_refused);
      ASSERT_EQ(engine.stage().held_pkts(), simulated_stage.held_pkts());
      const placement::StageCounts counts = simulated_stage.stage().counts();
      for (uint32_t p = 0; p < 3; ++p) {
        ASSERT_EQ(engine.stage().counts().done[p].pkts, counts.done[p].pkts);
        // How long the worker takes, this machine decides.
        const uint64_t run_ns = engine.stage().counts().done[p].run_ns;
        ASSERT_TRUE(p == 2 || run_ns == counts.done[p].run_ns);
      }
    }
    EXPECT_GT(world.n_made, 1000U);
    EXPECT_TRUE(world.was_in_order || n_refused != 0);
  }
}

}  // namespace batchplane::offload::stage_test
