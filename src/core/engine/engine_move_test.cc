// SPDX-License-Identifier: BSD-3-Clause
// engine_move_test.cc - moves of graph parts between workers, between two loops: every packet arrives once,
// in the order of its flow, and is counted everywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/rng.h"
#include "moving_branches.h"

namespace batchplane {
namespace engine_move_test {

using namespace moving_branches;  // NOLINT(google-build-using-namespace)

std::string worker_of(EngineRig& rig, const std::string& module) {
  const Instance& instance = rig.engine().graph().at(module);
  return rig.engine().graph().tasks[instance.task]->worker;
}

TEST(Move, TakesAModuleAndWhatOnlyItFeedsToAnotherWorker) {
  EngineRig rig(laid_out(branches()), 16384);
  rig.loop(200);
  const Engine::Moved moved = rig.engine().move({{"a5", "w1"}});
  EXPECT_EQ(moved.modules.size(), 3U);  // a5, b5, out5
  EXPECT_EQ(worker_of(rig, "b5"), "w1");
  EXPECT_EQ(worker_of(rig, "a0"), "w0");
  EXPECT_EQ(rig.engine().graph().at("a5/in").info->kind, "queue");
  rig.loop(200);
  EXPECT_EQ(rig.balanced().balance.dropped_pkts, 0U);
  const uint64_t before = sink(rig, "out5").pkts_of(5);
  rig.loop(200);
  EXPECT_GT(sink(rig, "out5").pkts_of(5), before);
  const Engine::Moved back = rig.engine().move({{"a5", "w0"}});
  EXPECT_EQ(back.modules.size(), 3U);
  EXPECT_FALSE(rig.engine().graph().index.contains("a5/in"));
  EXPECT_EQ(rig.engine().current_spec().modules.size(), branches().modules.size());
  for (const ModuleSpec& module : rig.engine().current_spec().modules) {
    EXPECT_EQ(module.worker, module.name == "q" ? "w2" : "") << module.name;
  }
  rig.loop(200);
  EXPECT_EQ(rig.balanced().balance.dropped_pkts, 0U);
  expect_in_order(rig);
}

TEST(Move, RefusesWhatCannotBe) {
  EngineRig rig(laid_out(branches()), 16384);
  const auto refused = [&](const std::string& part, const std::string& worker) -> std::string {
    try {
      rig.engine().move({{part, worker}});
    } catch (const ConfigErrors& errors) {
      return errors.errors.front().line();
    } catch (const ConfigError& error) {
      return error.line();
    }
    return "";
  };
  EXPECT_EQ(refused("a9", "w1"), "part: there is no module 'a9' (did you mean 'a0'?)");
  EXPECT_EQ(refused("a1", "w9"), "worker: there is no worker 'w9' (did you mean 'w0'?)");
  EngineRig small(laid_out(branches()), 0);
  try {
    small.engine().move({{"a1", "w1"}});
    ADD_FAILURE() << "there is no room in the pool";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.line().find("is too small: this pipeline can hold"), std::string::npos);
  }
  small.loop(100);
  small.balanced();
}

// Random interleavings of loops and moves, in a single thread.
TEST(Move, NoPacketIsLostDuplicatedOrReordered) {
  constexpr uint32_t kMoves = 3000;
  EngineRig rig(laid_out(branches()), 65536);
  Rng rng(11);
  uint32_t done = 0;
  while (done < kMoves) {
    rig.now_ns += 100;
    rig.worker(rng.next() % 3).loop_once();
    if (rng.next() % 50 == 0) {
      const std::string module =
          (rng.next() % 2 == 0 ? "a" : "b") + std::to_string(rng.next() % kFlows);
      rig.engine().set_buffers({{module, static_cast<uint32_t>(rng.next() % 33)}}, {});
    }
    if (rng.next() % 10 != 0) continue;
    (void)rig.engine().move({random_move(rng)});
    ++done;
    const Snapshot now = rig.balanced();
    ASSERT_EQ(now.balance.dropped_pkts, 0U) << "after move " << done << ": " << drops_of(now);
    expect_in_order(rig);
    if (testing::Test::HasFailure()) FAIL() << "after move " << done;
  }
  rig.engine().stop(true);
  const Snapshot end = rig.balanced();
  EXPECT_EQ(end.balance.held_pkts, 0U);
  EXPECT_EQ(delivered(rig), end.balance.in_pkts);
  for (uint32_t f = 0; f < kFlows; ++f) {
    const std::string name = f % 2 == 0 ? "out" : "out" + std::to_string(f);
    EXPECT_EQ(end.flows[f].total.pkts, sink(rig, name).pkts_of(f)) << "flow " << f;
  }
  EXPECT_EQ(end.flows[kFlows].total.pkts, 0U) << "none counts as other";
  rig.expect_pool_whole(end);
}

// Packets in buffers were polled while there was room, and may be released at any time: by expired ages, by
// triggers that change right after a move, while workers stand still for long, or during two moves at once.
TEST(Move, KeepsOrderWhateverBuffersReleaseMeanwhile) {
  const uint32_t last_seed = std::getenv("BATCHPLANE_LONG") != nullptr ? 1500 : 95;
  constexpr uint32_t kMoves = 60;
  for (uint32_t seed = 90; seed <= last_seed && !testing::Test::HasFailure(); ++seed) {
    EngineRig rig(laid_out(branches()), 65536);
    Rng rng(seed);
    for (uint32_t done = 0; done < kMoves;) {
      rig.now_ns += rng.next() % 4 == 0 ? 200'000 : 100;
      const uint64_t loops = rng.next() % 4 == 0 ? 1 + rng.next() % 60 : 1;
      Worker& worker = rig.worker(rng.next() % 3);
      for (uint64_t i = 0; i < loops; ++i) worker.loop_once();
      if (rng.next() % 20 == 0) {
        const std::string module =
            (rng.next() % 2 == 0 ? "a" : "b") + std::to_string(rng.next() % kFlows);
        const uint64_t age_limit_ns = 1 + rng.next() % 400'000;
        const auto trigger_pkts = static_cast<uint32_t>(rng.next() % 2 == 0 ? 0 : rng.next() % 33);
        rig.engine().set_buffers({{module, trigger_pkts}}, {{module, age_limit_ns}});
      }
      if (rng.next() % 10 != 0) continue;
      std::vector<PartMove> parts{random_move(rng)};
      if (rng.next() % 4 == 0) parts.push_back(random_move(rng));
      (void)rig.engine().move(parts);
      ++done;
    }
    const testing::ScopedTrace of(__FILE__, __LINE__, "seed " + std::to_string(seed));
    EXPECT_EQ(rig.balanced().balance.dropped_pkts, 0U);
    expect_in_order(rig);
  }
}

// Leftovers of a move at b3 that wait for room in q, or have not run yet. Packets that a3 held upstream are
// released meanwhile, by age or by a change, and must not overtake them.
TEST(Move, HeldPacketsDoNotOvertakeLeftovers) {
  for (const bool waits_for_room : {false, true}) {
    PipelineSpec spec = branches();
    std::ranges::find(spec.modules, "b3", &ModuleSpec::name)->in_queue =
        Dict{{"size_pkts", 1024}, {"credit_pkts", 1024}};
    EngineRig rig(laid_out(spec), 65536);
    (void)rig.engine().move({{"b3", "w1"}});
    rig.engine().set_buffers({{"a3", 30}}, {});
    const auto held_at_a3 = [&] {
      const Snapshot now = rig.balanced();
      return std::ranges::find(now.modules, "a3", &ModuleSnapshot::name)->held_pkts;
    };
    for (uint32_t i = 0; i < 200 || held_at_a3() < 10; ++i) {
      rig.now_ns += 100;
      rig.worker(0).loop_once();
      rig.worker(2).loop_once();
    }
    (void)rig.engine().move({{"b3", "w0"}});
    for (uint32_t i = 0; waits_for_room && i < 20; ++i) rig.worker(0).loop_once();
    rig.engine().set_buffers({{"a3", 0}}, {});
    rig.loop(200);
    EXPECT_EQ(rig.balanced().balance.dropped_pkts, 0U);
    EXPECT_GT(sink(rig, "out3").pkts_of(3), 300U);
    expect_in_order(rig);
  }
}

TEST(Move, QueuesBehindBuffersLoseNothing) {
  PipelineSpec spec = branches();
  std::ranges::find(spec.modules, "m", &ModuleSpec::name)->in_queue =
      Dict{{"size_pkts", 100}, {"credit_pkts", 64}};
  EngineRig rig(laid_out(spec), 65536);
  (void)rig.engine().move({{"m", "w1"}});
  std::vector<Engine::TriggerEdit> triggers;
  for (const char* name : {"a0", "a2", "a4", "b0", "b2", "b4"}) triggers.push_back({name, 32});
  Rng rng(3);
  for (uint32_t i = 0; i < 2000; ++i) {
    rig.now_ns += 100;
    if (i % 40 == 0) rig.engine().set_buffers(triggers, {});
    if (i % 40 == 20) rig.engine().set_buffers({{"a0", 0}, {"b2", 0}, {"a4", 0}}, {});
    rig.worker(0).loop_once();
    if (rng.next() % 8 == 0) rig.worker(1).loop_once();
    rig.worker(2).loop_once();
  }
  const Snapshot now = rig.balanced();
  EXPECT_EQ(now.balance.dropped_pkts, 0U) << drops_of(now);
  EXPECT_GT(delivered(rig), 1000U);
}

// With explicit scheduling, units hold more than a buffer does, and what a long ring had is more than a unit
// takes at once.
TEST(Move, UnitsLoseNothingAndAreNotOverfilled) {
  for (const exec::Backpressure how : {exec::Backpressure::kOff, exec::Backpressure::kOn}) {
    PipelineSpec spec = branches();
    std::ranges::find(spec.modules, "q", &ModuleSpec::name)->params["size_pkts"] = 2048;
    spec.engine.execution.mode = exec::Execution::kWeightedFair;
    spec.engine.execution.backpressure = how;
    EngineRig rig(laid_out(spec), 65536);
    Rng rng(11);
    for (uint32_t i = 0; i < 40'000; ++i) {
      rig.now_ns += 100;
      rig.worker(rng.next() % (rng.next() % 30 == 0 ? 3 : 2)).loop_once();  // q fills
      for (const auto& task : rig.engine().graph().tasks) {
        if (task == nullptr) continue;
        for (const ExecNode& node : task->nodes) {
          ASSERT_LE(node.queue->size_pkts, node.queue->capacity_pkts) << "loop " << i;
        }
      }
      if (i % 300 == 0) (void)rig.engine().move({random_move(rng)});
    }
    const std::string drops = drops_of(rig.balanced());
    EXPECT_EQ(drops.find("removed_by_apply"), std::string::npos) << drops;
    for (const char* name : {"out", "out1", "out3", "out5"}) {
      EXPECT_EQ(sink(rig, name).overtaken_pkts(), 0U) << name;
    }
  }
}

// fork -> a0 on w1 -> m on w0 again, with rings of one batch: each worker is held back by the other's ring,
// but packets that come back do not lead to a ring.
TEST(Move, TasksThatHandPacketsBackAndForthDoNotWaitForEachOther) {
  PipelineSpec spec = branches();
  for (ModuleSpec& module : spec.modules) {
    if (module.name != "q") module.in_queue = Dict{{"size_pkts", 32}, {"credit_pkts", 32}};
  }
  EngineRig rig(laid_out(spec), 65536);
  (void)rig.engine().move({{"a0", "w1"}, {"a2", "w1"}, {"a4", "w1"}, {"out", "w2"}});
  uint64_t before = 0;
  for (uint32_t i = 0; i < 50; ++i) {
    // w0 fills whatever it may, then w1 does.
    for (uint32_t k = 0; k < 20; ++k) rig.worker(0).loop_once();
    for (uint32_t k = 0; k < 20; ++k) rig.worker(1).loop_once();
    rig.worker(2).loop_once();
    rig.now_ns += 1000;
    const uint64_t now = delivered(rig);
    ASSERT_GT(now, before) << "round " << i;
    before = now;
  }
  EXPECT_EQ(rig.balanced().balance.dropped_pkts, 0U);
  expect_in_order(rig);
}

// A worker without tasks sleeps; commands wake it, and quiescent points do not wait for it.
TEST(Move, WakesAnIdleWorker) {
  PipelineSpec spec = branches();
  std::erase_if(spec.modules, [](const ModuleSpec& m) { return m.name == "q"; });
  std::erase_if(spec.edges, [](const EdgeSpec& e) { return e.from == "q" || e.to == "q"; });
  spec.edges.push_back({"b1", "0", "c"});
  spec.edges.push_back({"b3", "0", "c"});
  EngineRig rig(laid_out(spec), 65536);
  rig.engine().start();
  rig.engine().quiescence()->wait();
  for (int i = 0; i < 20; ++i) {
    rig.balanced();
    (void)rig.engine().move({{"a0", i % 2 == 0 ? "w2" : "w0"}, {"c", i % 4 == 0 ? "w1" : "w0"}});
    rig.engine().quiescence()->wait();
  }
  rig.engine().stop(true);
  const Snapshot end = rig.balanced();
  EXPECT_EQ(delivered(rig), end.balance.in_pkts);
  expect_in_order(rig);
}

TEST(Move, PollLimitsStayWithWhatIsPolled) {
  EngineRig rig(laid_out(branches()), 65536);
  const auto poll_pkts = [&](const std::string& module) {
    const Snapshot now = rig.balanced();
    return std::ranges::find(now.inputs, module, &exec::InputSnapshot::module)->poll_pkts;
  };
  rig.engine().change_polls(rig.engine().poll_changes({{"in", 7}, {"q", 3}}));
  (void)rig.engine().move({{"a0", "w1"}});
  EXPECT_EQ(poll_pkts("in"), 7U);
  EXPECT_EQ(poll_pkts("q"), 3U);
  EXPECT_EQ(poll_pkts("a0/in"), 32U) << "a new queue's task has no limit yet";
  rig.engine().change_polls(rig.engine().poll_changes({{"a0/in", 2}}));
  rig.loop(50);
  (void)rig.engine().move({{"b3", "w1"}, {"in", "w2"}});
  EXPECT_EQ(poll_pkts("in"), 7U);
  EXPECT_EQ(poll_pkts("a0/in"), 2U);
  rig.loop(200);
  EXPECT_EQ(rig.balanced().balance.dropped_pkts, 0U);
  expect_in_order(rig);
}

// An apply moves parts back like a move.
TEST(Move, IsUndoneByAnApplyWithoutLoss) {
  EngineRig rig(laid_out(branches()), 65536);
  (void)rig.engine().move({{"a0", "w1"}, {"b3", "w0"}, {"m", "w2"}});
  for (uint32_t i = 0; i < 200; ++i) rig.worker(i % 2).loop_once();
  EXPECT_GT(rig.engine().graph().at("m/in").module->held_pkts(), 0U);
  rig.engine().apply(rig.build(laid_out(branches())));
  rig.loop(100);
  const Snapshot now = rig.balanced();
  EXPECT_EQ(now.balance.dropped_pkts, 0U) << drops_of(now);
}

TEST(Move, ToWhereItRunsAlreadyChangesNothing) {
  EngineRig rig(laid_out(branches()), 65536);
  const Graph* const before = &rig.engine().graph();
  EXPECT_TRUE(rig.engine().move({{"a0", "w0"}, {"q", "w2"}}).modules.empty());
  EXPECT_EQ(&rig.engine().graph(), before);
}

}  // namespace engine_move_test
}  // namespace batchplane
