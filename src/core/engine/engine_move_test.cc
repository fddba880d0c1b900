// SPDX-License-Identifier: BSD-3-Clause
// engine_move_test.cc - parts of a graph that change workers under load: every packet once, in the order
// of its flow, counted everywhere.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "core/module/kind.h"
#include "core/module/register.h"
#include "engine_rig.h"
#include "spec/doors.h"
#include "spec/parts.h"

namespace batchplane {
namespace engine_move_test {

constexpr uint32_t kFlows = 6;

// A packet's flow and its number within that.
struct Mark {
  uint64_t flow;
  uint64_t number;
};
Mark& mark_of(Packet& pkt) { return *reinterpret_cast<Mark*>(pkt.data()); }

class NumberedInput final : public Module {
 public:
  explicit NumberedInput(const Args& /*args*/) {}
  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    const auto n = static_cast<uint32_t>(rng_.next() % (max + 1));
    if (n == 0 || !ctx.pool->alloc_bulk(pkts, n)) return 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t flow = rng_.next() % kFlows;
      pkts[i]->reset(64);
      pkts[i]->meta() = PacketMeta{.entry_ns = ctx.now_ns, .path_state = 0xbad};
      mark_of(*pkts[i]) = {flow, next_[flow]++};
    }
    return n;
  }

 private:
  uint64_t next_[kFlows] = {};
  Rng rng_{7};
};
const Register<NumberedInput> kNumberedInput{
    {.kind = "numbered_input", .state = StateOf::kNone, .help = "Test."}};

class ByFlow final : public Module {
 public:
  explicit ByFlow(const Args& /*args*/) {}
  void classify(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      ctx.gates[i] = static_cast<uint16_t>(mark_of(*batch.pkts[i]).flow);
    }
  }
};
const Register<ByFlow> kByFlow{{.kind = "by_flow", .state = StateOf::kNone, .help = "Test."}};

// Keeps what it has seen to itself: state of one owner that has to come along.
class InOrder final : public Module {
 public:
  explicit InOrder(const Args& /*args*/) {}
  void consume(Context& ctx, Batch& batch) noexcept {
    for (Packet* pkt : batch) {
      const Mark& mark = mark_of(*pkt);
      wrong_pkts_ += mark.number == next_[mark.flow] ? 0 : 1;
      next_[mark.flow] = mark.number + 1;
    }
    ctx.free(batch.pkts, batch.size_pkts);
  }
  [[nodiscard]] uint64_t wrong_pkts() const { return wrong_pkts_; }
  [[nodiscard]] uint64_t pkts_of(uint32_t flow) const { return next_[flow]; }

 private:
  uint64_t next_[kFlows] = {};
  uint64_t wrong_pkts_ = 0;
};
const Register<InOrder> kInOrder{
    {.kind = "in_order", .state = StateOf::kOneOwner, .help = "Test.", .is_egress = true}};

// in -> fork -> a0..a5 -> b0..b5. Flows 0, 2, 4 merge and end in one sink; 1 and 3 come through one queue
// and are told apart behind it; 5 ends by itself.
PipelineSpec branches() {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}, {"w2", -1}};
  spec.modules = {{"in", "numbered_input", {}},
                  {"fork", "by_flow", {}},
                  {"m", "merge", {}},
                  {"out", "in_order", {}},
                  {"q", "queue", {{"size_pkts", 128}, {"backpressure", true}}, 0, 0, "w2"},
                  {"c", "by_flow", {}},
                  {"out1", "in_order", {}},
                  {"out3", "in_order", {}},
                  {"out5", "in_order", {}}};
  spec.edges = {{"in", "0", "fork"}, {"m", "0", "out"},  {"q", "0", "c"},
                {"c", "1", "out1"},  {"c", "3", "out3"}, {"b5", "0", "out5"}};
  for (uint32_t f = 0; f < kFlows; ++f) {
    const std::string n = std::to_string(f);
    const std::string a = "a" + n;
    const std::string b = "b" + n;
    spec.modules.push_back({a, "counter", {}, f % 2 == 0 ? 8U : 0U});
    spec.modules.push_back({b, "counter", {}, f == 3 ? 5U : 0U});
    spec.edges.push_back({"fork", n, a});
    spec.edges.push_back({a, "0", b});
    const bool is_queued = f == 1 || f == 3;
    if (f % 2 == 0) spec.edges.push_back({b, "0", "m"});
    if (is_queued) spec.edges.push_back({b, "0", "q"});
    const std::string end = f % 2 == 0 ? "out" : "out" + n;
    spec.flows.push_back({"f" + n, {"in", "fork", a, b, end}, 1'000'000});
  }
  return spec;
}

PipelineSpec laid_out(PipelineSpec spec) {
  add_parts(spec, module_kind_facts());
  add_doors(spec, module_kind_facts());
  return spec;
}

const InOrder& sink(EngineRig& rig, const std::string& name) {
  return static_cast<const InOrder&>(*rig.engine().graph().at(name).module);
}

void expect_in_order(EngineRig& rig) {
  for (const char* name : {"out", "out1", "out3", "out5"}) {
    EXPECT_EQ(sink(rig, name).wrong_pkts(), 0U) << name;
  }
}

// Which module dropped, and why.
std::string drops_of(const Snapshot& now) {
  std::string told;
  for (const ModuleSnapshot& module : now.modules) {
    for (size_t r = 0; r < module.drops.size(); ++r) {
      if (module.drops[r] != 0) told += module.name + " " + drop_reasons()[r].name + " ";
    }
  }
  for (size_t r = 0; r < now.other_drops.size(); ++r) {
    if (now.other_drops[r] != 0) told += std::string("(gone) ") + drop_reasons()[r].name + " ";
  }
  return told;
}

uint64_t delivered(EngineRig& rig) {
  uint64_t pkts = 0;
  for (const char* name : {"out", "out1", "out3", "out5"}) {
    for (uint32_t f = 0; f < kFlows; ++f) pkts += sink(rig, name).pkts_of(f);
  }
  return pkts;
}

std::string worker_of(EngineRig& rig, const std::string& module) {
  const Instance& instance = rig.engine().graph().at(module);
  return rig.engine().graph().tasks[instance.task]->worker;
}

PartMove random_move(Rng& rng) {
  static const std::vector<std::string> parts{"a0",  "a1",   "a2", "a3", "a4", "a5",
                                              "b0",  "b1",   "b2", "b3", "b5", "m",
                                              "out", "fork", "in", "q",  "c",  "out1"};
  return {parts[rng.next() % parts.size()], "w" + std::to_string(rng.next() % 3)};
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

// All interleavings of loops and moves, at random; nothing runs at the same time.
TEST(Move, LosesDoublesAndReordersNothing) {
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

// What buffers hold was polled while there was room, and comes whenever they let go.
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

// fork -> a0 on w1 -> m on w0 again, with rings of one batch: each is held back by the other's ring, but what
// comes back leads to no ring.
TEST(Move, TasksThatHandToAndFroDoNotWaitForEachOther) {
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

// A worker without tasks sleeps; whoever wants something of it wakes it, and nobody waits for it to pass.
TEST(Move, WakesAWorkerThatHasNothingToDo) {
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

// An apply takes parts back as a move does.
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

// Workers that have nothing to do with a move do not stand still for it.
TEST(Move, LeavesOtherWorkersAlone) {
  EngineRig rig(laid_out(branches()), 16384);
  rig.engine().start();
  const Engine::Moved moved = rig.engine().move({{"a5", "w1"}});
  EXPECT_EQ(moved.involved, (std::vector<std::string>{"w0", "w1"}));
  rig.engine().stop(true);
  rig.balanced();
  expect_in_order(rig);
}

TEST(Move, HoldsWhileWorkersRun) {
  constexpr uint32_t kMoves = 60;
  EngineRig rig(laid_out(branches()), 65536);
  Rng rng(5);
  rig.engine().start();
  for (uint32_t i = 0; i < kMoves; ++i) {
    (void)rig.engine().move({random_move(rng)});
    const Snapshot now = rig.balanced();
    ASSERT_EQ(now.balance.dropped_pkts, 0U) << "after move " << i << ": " << drops_of(now);
  }
  rig.engine().stop(true);
  const Snapshot end = rig.balanced();
  EXPECT_EQ(end.balance.held_pkts, 0U);
  EXPECT_EQ(delivered(rig), end.balance.in_pkts);
  expect_in_order(rig);
  rig.expect_pool_whole(end);
}

}  // namespace engine_move_test
}  // namespace batchplane
