// SPDX-License-Identifier: BSD-3-Clause
// engine_move_load_test.cc - moves of graph parts between running workers: every packet arrives once and in
// the order of its flow, and workers that are not involved keep running.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "core/module/register.h"
#include "moving_branches.h"

namespace batchplane::engine_move_load_test {
namespace {

using namespace moving_branches;  // NOLINT(google-build-using-namespace)

std::atomic<bool> must_hold{false};
std::atomic<bool> is_held{false};

// Blocks while told to: its worker is then in the middle of a run.
class HeldUp final : public Module {
 public:
  explicit HeldUp(const Args& /*args*/) {}
  void process(Context& /*ctx*/, Batch& /*batch*/) noexcept {
    if (!must_hold.load()) return;
    is_held.store(true);
    is_held.notify_one();
    must_hold.wait(true);
    is_held.store(false);
  }
};
const Register<HeldUp> kHeldUp{{.kind = "held_up", .state = StateOf::kNone, .help = "Test."}};

void begin_hold() {
  must_hold.store(true);
  is_held.wait(false);
}
void end_hold() {
  must_hold.store(false);
  must_hold.notify_one();
}

// A fourth worker with packets of its own and none of the parts.
PipelineSpec with_bystander() {
  PipelineSpec spec = branches();
  spec.workers.push_back({"w3", -1});
  spec.modules.push_back({"alone", "numbered_input", {}, 0, 0, "w3"});
  spec.modules.push_back({"held", "held_up", {}});
  spec.modules.push_back({"out_alone", "in_order", {}});
  spec.edges.push_back({"alone", "0", "held"});
  spec.edges.push_back({"held", "0", "out_alone"});
  return laid_out(spec);
}

// Real threads and real time, so that age limits expire.
class LoadedRig : public EngineRig {
 public:
  LoadedRig() : EngineRig(with_bystander(), 65536) {
    for (const auto& worker : engine().workers()) worker->use_virtual_clock(nullptr);
    engine().start();
  }
  void expect_all_arrived() {
    engine().stop(true);
    const Snapshot end = balanced();
    EXPECT_EQ(end.balance.held_pkts, 0U);
    EXPECT_EQ(end.balance.dropped_pkts, 0U) << drops_of(end);
    const InOrder& alone = sink(*this, "out_alone");
    uint64_t arrived = delivered(*this);
    for (uint32_t f = 0; f < kFlows; ++f) arrived += alone.pkts_of(f);
    EXPECT_EQ(arrived, end.balance.in_pkts);
    EXPECT_EQ(alone.wrong_pkts(), 0U);
    expect_in_order(*this);
    expect_pool_whole(end);
  }
};

bool involves(const Engine::Moved& moved, const std::string& worker) {
  return std::ranges::find(moved.involved, worker) != moved.involved.end();
}
bool has_bystander(const Engine::Moved& moved) { return involves(moved, "w3"); }

// BATCHPLANE_LONG=1: ten thousand.
TEST(MoveUnderLoad, NoPacketIsLostDuplicatedOrReordered) {
  const uint32_t n_moves = std::getenv("BATCHPLANE_LONG") != nullptr ? 10'000 : 100;
  LoadedRig rig;
  Rng rng(5);
  uint32_t changed = 0;
  for (uint32_t i = 0; i < n_moves; ++i) {
    std::vector<PartMove> parts{random_move(rng)};
    if (rng.next() % 4 == 0) parts.push_back(random_move(rng));
    const Engine::Moved moved = rig.engine().move(parts);
    changed += moved.is_changed ? 1 : 0;
    ASSERT_FALSE(has_bystander(moved)) << "move " << i;
    if (i % 8 == 0) {
      const std::string module = "a" + std::to_string(rng.next() % kFlows);
      const auto trigger_pkts = static_cast<uint32_t>(rng.next() % 2 == 0 ? 0 : rng.next() % 33);
      rig.engine().set_buffers({{module, trigger_pkts}}, {});
    }
    if (i % 16 != 0) continue;
    const Snapshot now = rig.balanced();
    ASSERT_EQ(now.balance.dropped_pkts, 0U) << "after move " << i << ": " << drops_of(now);
  }
  EXPECT_GT(changed, n_moves / 4);
  rig.expect_all_arrived();
  EXPECT_GT(delivered(rig), 10 * n_moves);
}

// Blocks the bystander from before a move until `is_enough` holds; false if it does not within a minute.
template <class Enough>
bool moves_while_held(LoadedRig& rig, const PartMove& move, Engine::Moved& moved,
                      Enough is_enough) {
  begin_hold();
  bool was_enough = false;
  std::thread watcher([&] {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!was_enough && std::chrono::steady_clock::now() < until) {
      was_enough = is_enough();
      std::this_thread::yield();
    }
    end_hold();
  });
  moved = rig.engine().move({move});
  watcher.join();
  return was_enough;
}

// The involved workers change over and packets arrive on the other worker, although a third worker is stuck
// in the middle of a run.
TEST(MoveUnderLoad, DoesNotWaitForUninvolvedWorkers) {
  LoadedRig rig;
  const InOrder& out = sink(rig, "out5");
  for (uint32_t i = 1; i <= 12; ++i) {
    const uint32_t target = i % 3;
    Engine::Moved moved;
    ASSERT_TRUE(moves_while_held(rig, {"a5", "w" + std::to_string(target)}, moved,
                                 [&] { return out.last_worker() == target; }))
        << "move " << i;
    EXPECT_GE(moved.involved.size(), 2U);
    EXPECT_FALSE(has_bystander(moved));
  }
  rig.expect_all_arrived();
}

// c runs where it did, but its queue is polled by another worker from now on. For a moment both would take
// packets out of one ring.
TEST(MoveUnderLoad, StopsTheWorkersThatPollAQueueBeforeAndAfter) {
  LoadedRig rig;
  (void)rig.engine().move({{"c", "w1"}});
  (void)rig.engine().move({{"q", "w1"}});
  const Engine::Moved moved = rig.engine().move({{"q", "w2"}});
  EXPECT_TRUE(involves(moved, "w1"));
  EXPECT_TRUE(involves(moved, "w2"));
  rig.expect_all_arrived();
}

}  // namespace
}  // namespace batchplane::engine_move_load_test
