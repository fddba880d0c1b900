// SPDX-License-Identifier: BSD-3-Clause
// engine_balance_test.cc - packets balance in every snapshot of running workers that hand packets to each
// other.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/engine/capture_order.h"
#include "core/module/register.h"
#include "engine_rig.h"
#include "spec/doors.h"

namespace batchplane {
namespace engine_balance_test {

// in -> q0 -> q1 -> .. -> out: the input on the first worker, and queue i polled by the worker given in
// `pollers`.
PipelineSpec row(const std::vector<std::string>& pollers, const std::string& first = "w0") {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}, {"w2", -1}};
  spec.modules = {{"in", "source", {}, 0, 0, first}, {"out", "sink", {}}};
  std::string before = "in";
  for (size_t i = 0; i < pollers.size(); ++i) {
    const std::string name = "q" + std::to_string(i);
    spec.modules.push_back({name, "queue", {{"size_pkts", 256}}, 0, 0, pollers[i]});
    spec.edges.push_back({before, "0", name});
    before = name;
  }
  spec.edges.push_back({before, "0", "out"});
  return spec;
}

// Takes snapshots while workers run, until enough of them saw packets move.
uint64_t watch(EngineRig& rig) {
  constexpr int kSnapshots = 30;
  uint64_t max_ahead_pkts = 0;
  uint64_t sent_pkts = 0;
  rig.engine().start();
  for (int moved = 0; moved < kSnapshots;) {
    const Snapshot now = rig.balanced();
    max_ahead_pkts = std::max(max_ahead_pkts, now.balance.ahead_pkts);
    moved += now.balance.sent_pkts > sent_pkts ? 1 : 0;
    sent_pkts = now.balance.sent_pkts;
    if (testing::Test::HasFailure()) break;
  }
  rig.engine().stop(true);
  const Snapshot end = rig.balanced();
  EXPECT_EQ(end.balance.ahead_pkts, 0U);
  return max_ahead_pkts;
}

TEST(Balance, HoldsWhileWorkersHandOn) {
  EngineRig rig(row({"w1", "w2"}));
  EXPECT_EQ(watch(rig), 0U) << "takers are read first: nothing is seen ahead of its giver";
}

TEST(Balance, HoldsWhereTheFirstWorkerIsTheLastToBeNamed) {
  EngineRig rig(row({"w1", "w0"}, "w2"));
  EXPECT_EQ(watch(rig), 0U);
}

TEST(Balance, HoldsWhereWorkersHandToEachOtherInACircle) {
  EngineRig rig(row({"w1", "w0", "w2", "w1"}));
  watch(rig);
}

// Inputs on w0 and w1 into one queue that w2 polls.
PipelineSpec joined(bool is_shared) {
  PipelineSpec spec = row({"w2"});
  spec.workers[2].is_shared = is_shared;
  spec.modules.push_back({"in1", "source", {}, 0, 0, "w1"});
  spec.edges.push_back({"in1", "0", "q0"});
  add_doors(spec, module_kind_facts());
  return spec;
}

TEST(Balance, HoldsWhereSeveralWorkersFillOneQueue) {
  EngineRig rig(joined(false));
  EXPECT_EQ(watch(rig), 0U);
}

TEST(Balance, HoldsWhereAWorkerIsRunByTheOthers) {
  EngineRig rig(joined(true));
  EXPECT_EQ(watch(rig), 0U);
}

TEST(Balance, HoldsOverAppliesThatShutAndOpenDoors) {
  EngineRig rig(joined(true));
  PipelineSpec shut = without_doors(joined(true));
  shut.modules.back().worker = "w0";
  rig.engine().start();
  for (int i = 0; i < 6; ++i) {
    rig.engine().apply(rig.build(i % 2 == 0 ? shut : joined(true)));
    for (int k = 0; k < 4; ++k) EXPECT_EQ(rig.balanced().balance.ahead_pkts, 0U);
  }
  rig.engine().stop(true);
  rig.balanced();
}

TEST(Balance, HoldsOverAnApplyThatSwapsTheWorkers) {
  EngineRig rig(row({"w1", "w2"}));
  rig.engine().start();
  for (int i = 0; i < 6; ++i) {
    rig.engine().apply(rig.build(row(
        i % 2 == 0 ? std::vector<std::string>{"w0", "w2"} : std::vector<std::string>{"w1", "w2"},
        i % 2 == 0 ? "w1" : "w0")));
    for (int k = 0; k < 4; ++k) EXPECT_EQ(rig.balanced().balance.ahead_pkts, 0U);
  }
  rig.engine().stop(true);
  rig.balanced();
}

const DropReason kEverySecond{"every_second", "a test", "none"};

// Drops every second packet that it polls.
class PickyInput final : public Module {
 public:
  explicit PickyInput(const Args& /*args*/) {}
  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    uint32_t n = 0;
    for (uint32_t i = 0; i < std::min(max, 7U); ++i) {
      Packet* pkt = nullptr;
      if (!ctx.pool->alloc_bulk(&pkt, 1)) break;
      pkt->reset(60);
      pkt->meta() = PacketMeta{.entry_ns = ctx.now_ns};
      if (++polled_pkts_ % 2 == 0) {
        ctx.drop_owned(pkt, kEverySecond);
      } else {
        pkts[n++] = pkt;
      }
    }
    return n;
  }

 private:
  uint64_t polled_pkts_ = 0;
};
const Register<PickyInput> kPickyInput{
    {.kind = "picky_input", .state = StateOf::kNone, .help = "Test.", .drops = {&kEverySecond}}};

TEST(Balance, CountsWhatAnInputDrops) {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}};
  spec.modules = {{"in", "picky_input", {}}, {"out", "sink", {}}};
  spec.edges = {{"in", "0", "out"}};
  EngineRig rig(spec);
  const auto dropped = [](const Snapshot& now) {
    return now.modules[0].drops[kEverySecond.index()];
  };
  rig.loop(100);
  const Snapshot before = rig.balanced();
  EXPECT_EQ(before.balance.in_pkts, 700U);
  EXPECT_EQ(before.balance.dropped_pkts, 350U);
  EXPECT_EQ(before.modules[0].pkts, 700U);
  EXPECT_EQ(dropped(before), 350U);
  rig.expect_pool_whole(before);
  rig.engine().apply(rig.build(spec));
  rig.loop(100);
  const Snapshot after = rig.balanced();
  EXPECT_EQ(after.balance.dropped_pkts, 700U);
  EXPECT_EQ(dropped(after), 700U);
  rig.expect_pool_whole(after);
}

TEST(CaptureOrder, TakersComeBeforeThoseThatHandToThem) {
  const auto order_of = [](const PipelineSpec& spec) {
    EngineRig rig(spec);
    return capture_order(rig.engine().graph(), rig.engine().workers());
  };
  using Order = std::vector<uint32_t>;
  EXPECT_EQ(order_of(row({"w1", "w2"})), (Order{2, 1, 0}));
  EXPECT_EQ(order_of(row({"w1", "w0"}, "w2")), (Order{0, 1, 2}));
  EXPECT_EQ(order_of(row({})), (Order{0, 1, 2}));
  Order circle = order_of(row({"w1", "w0", "w2", "w1"}));
  std::ranges::sort(circle);
  EXPECT_EQ(circle, (Order{0, 1, 2}));
}

}  // namespace engine_balance_test
}  // namespace batchplane
