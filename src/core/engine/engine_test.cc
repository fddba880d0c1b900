// SPDX-License-Identifier: BSD-3-Clause
// engine_test.cc - a whole engine on virtual time: balance, buffers, live edits, apply, stop,
// trace.
#include "core/engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "base/rng.h"

namespace batchplane {
namespace engine_test {

// in -> s -> a0..a3 -> m -> out; a0 to a3 buffered. `limit` packets, in bursts of 32.
PipelineSpec fan(uint32_t trigger_pkts, uint64_t limit_pkts) {
  PipelineSpec spec;
  spec.modules = {{"in", "source", {{"limit_pkts", limit_pkts}}},
                  {"s", "split", {{"gates", 4}, {"mode", "random"}}},
                  {"m", "merge", {}},
                  {"out", "sink", {}}};
  spec.edges = {{"in", "0", "s"}, {"m", "0", "out"}};
  for (uint32_t i = 0; i < 4; ++i) {
    const std::string name = "a" + std::to_string(i);
    spec.modules.push_back({name, "counter", {}, trigger_pkts});
    spec.edges.push_back({"s", std::to_string(i), name});
    spec.edges.push_back({name, "0", "m"});
    spec.flows.push_back({"f" + std::to_string(i), {"in", "s", name, "m", "out"}, 1000});
  }
  return spec;
}

std::unique_ptr<Graph> build(const PipelineSpec& spec,
                             const std::shared_ptr<Quiescence>& quiescence) {
  auto env = std::make_unique<Environment>();
  env->quiescence = quiescence.get();
  return build_graph(spec, std::move(env));
}

struct Rig {
  explicit Rig(const PipelineSpec& spec) {
    static std::atomic<uint32_t> next{0};
    auto graph = build(spec, quiescence);
    const auto n_pkts = static_cast<uint32_t>(Engine::min_pool_pkts(*graph)) + 4096;
    auto pool = std::make_unique<PacketPool>("engine_test" + std::to_string(next++), n_pkts);
    engine = std::make_unique<Engine>(std::move(graph), std::move(pool), quiescence);
    engine->workers()[0]->use_virtual_clock(&now_ns);
  }
  Worker& worker() { return *engine->workers()[0]; }
  void loop(uint32_t n, uint64_t step_ns = 100) {
    for (uint32_t i = 0; i < n; ++i) {
      now_ns += step_ns;
      worker().loop_once();
    }
  }
  Snapshot balanced() {
    Snapshot snapshot = engine->snapshot(true);
    const Balance& b = snapshot.balance;
    EXPECT_TRUE(b.is_exact()) << b.in_pkts << " + " << b.originated_pkts << " in, " << b.sent_pkts
                              << " sent, " << b.dropped_pkts << " dropped, " << b.held_pkts
                              << " held";
    uint64_t by_reason =
        std::accumulate(snapshot.other_drops.begin(), snapshot.other_drops.end(), uint64_t{0});
    for (const ModuleSnapshot& module : snapshot.modules) {
      by_reason = std::accumulate(module.drops.begin(), module.drops.end(), by_reason);
    }
    EXPECT_EQ(by_reason, b.dropped_pkts);
    uint64_t metered = 0;
    for (const FlowSnapshot& flow : snapshot.flows) metered += flow.total.pkts;
    EXPECT_EQ(metered, b.sent_pkts);
    return snapshot;
  }
  uint64_t held(const std::string& name) { return engine->graph().at(name).node->queue->size_pkts; }

  uint64_t now_ns = 1'000'000;
  std::shared_ptr<Quiescence> quiescence = std::make_shared<Quiescence>();
  std::unique_ptr<Engine> engine;
};

TEST(Engine, BalanceHoldsAfterEveryLoopAndAfterStop) {
  PipelineSpec spec = fan(20, 3200);
  spec.edges.erase(spec.edges.begin() + 2);  // s:0 leads nowhere
  spec.modules.erase(spec.modules.begin() + 4);
  spec.edges.erase(spec.edges.begin() + 2);
  spec.flows.erase(spec.flows.begin());
  Rig rig(spec);
  for (uint32_t i = 0; i < 100; ++i) {
    rig.loop(1);
    rig.balanced();
  }
  rig.engine->stop(true);
  const Snapshot end = rig.balanced();
  EXPECT_EQ(end.balance.in_pkts, 3200U);
  EXPECT_EQ(end.balance.held_pkts, 0U);
  EXPECT_GT(end.balance.dropped_pkts, 600U);
}

TEST(Engine, FlowsAreMeteredApartWithTheirLatePackets) {
  Rig rig(fan(32, 6400));
  rig.worker().set_idle_hold(true);
  rig.loop(200, 400);
  rig.engine->stop(true);
  const Snapshot end = rig.balanced();
  for (uint32_t f = 0; f < 4; ++f) {
    const FlowSnapshot& flow = end.flows[f];
    EXPECT_NEAR(static_cast<double>(flow.total.pkts), 1600, 200);
    EXPECT_GT(flow.total.late_pkts, 0U);  // 32 packets at 8 a loop take three to four loops
    EXPECT_LT(flow.total.late_pkts, flow.total.pkts);
    EXPECT_EQ(std::accumulate(flow.fine_buckets.begin(), flow.fine_buckets.end(), uint64_t{0}),
              flow.total.pkts);
  }
  EXPECT_EQ(end.flows[4].name, "other");
  EXPECT_EQ(end.flows[4].total.pkts, 0U);
}

TEST(Engine, AgeLimitReleasesWithoutInput) {
  PipelineSpec spec = fan(32, 32);
  for (ModuleSpec& module : spec.modules) module.age_limit_ns = module.kind == "counter" ? 5000 : 0;
  spec.engine.is_idle_hold = true;
  Rig rig(spec);
  rig.loop(1);
  EXPECT_GT(rig.engine->snapshot(false).balance.held_pkts, 0U);
  rig.loop(49);
  EXPECT_GT(rig.engine->snapshot(false).balance.held_pkts, 0U) << "4900 ns is not too old";
  rig.loop(1);
  const Snapshot snapshot = rig.balanced();
  EXPECT_EQ(snapshot.balance.held_pkts, 0U);
  EXPECT_EQ(snapshot.balance.sent_pkts, 32U);
}

TEST(Engine, SetBuffersChangesAllOrNothing) {
  Rig rig(fan(0, 0));
  EXPECT_THROW(rig.engine->set_buffers({{"a0", 8}, {"a1", 33}}, {}), ConfigError);
  EXPECT_THROW(rig.engine->set_buffers({{"a0", 8}}, {{"in", 5}}), ConfigError);
  EXPECT_THROW(rig.engine->set_buffers({{"a0", 8}, {"nobody", 8}}, {}), ConfigError);
  EXPECT_EQ(rig.engine->current_spec().modules[4].trigger_pkts, 0U);
  rig.engine->set_buffers({{"a0", 8}, {"a1", 8}}, {{"a0", 7000}});
  const PipelineSpec now = rig.engine->current_spec();
  EXPECT_EQ(now.modules[4].trigger_pkts, 8U);
  EXPECT_EQ(now.modules[4].age_limit_ns, 7000U);
  EXPECT_EQ(now.modules[5].age_limit_ns, 0U) << "the stranding limit is no limit of its own";
}

TEST(Engine, BuffersSetOneByOneAreStaggeredToo) {
  Rig rig(fan(0, 0));
  for (const char* name : {"a0", "a1"}) rig.engine->set_buffers({{name, 32}}, {});
  EXPECT_NE(rig.engine->graph().at("a0").node->queue->release_at_pkts,
            rig.engine->graph().at("a1").node->queue->release_at_pkts);
}

TEST(Engine, ApplyKeepsHeldPacketsCountsAndFlows) {
  Rig rig(fan(32, 64));
  rig.worker().set_idle_hold(true);
  rig.loop(2);
  const Snapshot before = rig.balanced();
  ASSERT_GT(before.balance.held_pkts, 0U);
  PipelineSpec next = fan(32, 64);
  next.flows = {{"g", {"in", "s", "a2", "m", "tail", "out"}, 0},
                {"f0", {"in", "s", "a0", "m", "tail", "out"}, 0}};  // another automaton
  next.modules.push_back({"tail", "null", {}});
  next.edges[1] = {"m", "0", "tail"};
  next.edges.push_back({"tail", "0", "out"});
  next.engine.is_idle_hold = true;
  rig.engine->apply(build(next, rig.quiescence));
  const Snapshot after = rig.balanced();
  EXPECT_EQ(after.balance.held_pkts, before.balance.held_pkts);
  EXPECT_EQ(after.balance.in_pkts, 64U);
  rig.engine->stop(true);
  const Snapshot end = rig.balanced();
  EXPECT_EQ(end.balance.sent_pkts, 64U);
  EXPECT_EQ(end.balance.dropped_pkts, 0U);
}

TEST(Engine, ApplyDropsWithAReasonWhatARemovedModuleHeld) {
  Rig rig(fan(32, 32));
  rig.worker().set_idle_hold(true);
  rig.loop(1);
  const uint64_t held = rig.held("a3");
  ASSERT_GT(held, 0U);
  PipelineSpec next = fan(32, 32);
  next.modules.pop_back();
  next.edges.resize(next.edges.size() - 2);
  next.flows.pop_back();
  rig.engine->apply(build(next, rig.quiescence));
  EXPECT_EQ(rig.balanced().balance.dropped_pkts, held);
  PipelineSpec larger = fan(8, 0);
  larger.engine.batch_pkts = 64;
  EXPECT_THROW(rig.engine->apply(build(larger, rig.quiescence)), ConfigError);
  rig.balanced();
}

TEST(Engine, EverythingCanBeEditedWhilePacketsFlow) {
  PipelineSpec spec = fan(8, 0);
  spec.engine.sample_one_run_in = 16;
  Rig rig(spec);
  rig.worker().use_virtual_clock(nullptr);
  rig.engine->start();
  Rng rng(4);
  for (uint32_t round = 0; round < 300; ++round) {
    const std::string name = "a" + std::to_string(rng.below(4));
    rig.engine->set_buffers({{name, rng.below(33)}}, {{name, 1 + rng.below(100'000)}});
    if (round % 7 == 0) rig.engine->set_idle_hold(rng.below(2) == 0);
    if (round % 11 == 0) rig.engine->set_slo("f1", 1 + rng.below(100'000));
    if (round % 50 == 0) rig.engine->apply(build(fan(rng.below(33), 0), rig.quiescence));
    if (round % 60 == 0) {
      EXPECT_LE(rig.engine->trace(5, {}, 20'000'000).packets.size(), 5U);
    }
    rig.balanced();
  }
  rig.engine->stop(false);
  rig.balanced();
  rig.engine->graph().at("in").module->command("off", Dict{});
  rig.engine->stop(true);
  EXPECT_EQ(rig.balanced().balance.held_pkts, 0U);
}

TEST(Engine, TraceTellsThePathTheWaitAndTheEnd) {
  PipelineSpec spec = fan(4, 0);
  spec.modules[3] = {"out", "drop", {}};
  spec.flows.clear();
  Rig rig(spec);
  rig.worker().use_virtual_clock(nullptr);
  rig.engine->start();
  const TraceResult result = rig.engine->trace(8, {}, 5'000'000'000);
  rig.engine->stop(false);
  ASSERT_EQ(result.packets.size(), 8U);
  for (const TraceResult::Traced& traced : result.packets) {
    std::string path;
    for (const auto& [module, event] : traced.events) {
      path += module.substr(0, 1) + ":" + kTraceEventNames[static_cast<int>(event.kind)] + " ";
    }
    EXPECT_EQ(path, "s:run s:gate a:hold a:run m:run o:run o:drop ");
  }
}

TEST(Quiescence, ReadersNeverSeeAHalfMadeTable) {
  struct Pair {
    uint64_t a = 0;
    uint64_t b = 0;
  };
  Quiescence quiescence;
  LiveTable<Pair> table(std::make_unique<Pair>(), std::make_unique<Pair>(), &quiescence);
  std::atomic<bool> must_stop{false};
  std::atomic<uint64_t> torn{0};
  std::atomic<uint32_t> n_ready{0};
  std::vector<std::thread> readers;
  for (uint32_t r = 0; r < 2; ++r) {
    readers.emplace_back([&, r] {
      quiescence.set_online(r, true);
      ++n_ready;
      while (!must_stop.load(std::memory_order_relaxed)) {
        const Pair& pair = table.read();
        if (pair.a != pair.b) torn.fetch_add(1);
        quiescence.pass(r);
        std::this_thread::yield();  // there may be fewer cores than threads
      }
      quiescence.set_online(r, false);
    });
  }
  while (n_ready.load() != 2) std::this_thread::yield();
  for (uint64_t i = 1; i <= 200; ++i) {
    table.edit([i](Pair& pair) {
      pair.a = i;
      pair.b = i;
    });
    EXPECT_EQ(table.current().a, i);
  }
  must_stop.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0U);
}

}  // namespace engine_test
}  // namespace batchplane
