// SPDX-License-Identifier: BSD-3-Clause
// shared_limit_test.cc - which queue loses a packet when all queues together are full: the longest,
// or nearly the longest.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "base/rng.h"
#include "egress/discipline/disciplines.h"
#include "egress/tree/calendar.h"
#include "egress/tree/tree.h"

namespace batchplane::egress {
namespace shared_limit_test {

constexpr uint32_t kFlows = 40;
constexpr uint32_t kRoom = 256;
constexpr uint64_t kStepNs = 10'000;

template <class D>
struct Flat : D {
  explicit Flat(uint32_t room, uint32_t flows = kFlows) : D(Capacity{flows, room}) {
    for (uint32_t f = 0; f < flows; ++f) {
      this->configure(f, {.weight = 1 + f % 3, .lmax_bytes = 1500, .pace_bps = 20'000'000});
    }
  }
};
// Ten subscribers with four classes each, some with ceilings.
template <LeafQueue kQueue>
struct OfTree : Tree {
  static constexpr uint32_t kClasses = 4;
  explicit OfTree(uint32_t room, uint32_t flows = kFlows)
      : Tree({.leaves = flows,
              .inner_nodes = 1 + flows / kClasses,
              .shaped_leaves = flows,
              .pkts = room,
              // With a target of an hour, packets are lost only to make room.
              .connections = room,
              .codel = {.target_ns = 3'600'000'000'000}}) {
    for (uint32_t s = 0; s < flows / kClasses; ++s) {
      add(root() + 1 + s, root(), {.ceil_bps = s % 2 == 0 ? 40'000'000U : 0U});
    }
    for (uint32_t f = 0; f < flows; ++f) {
      add(f, root() + 1 + f / kClasses, {.weight = 1 + f % 3, .queue = kQueue});
    }
  }
};

template <class D>
class SharedLimit : public testing::Test {};
using All = testing::Types<Flat<Prio>, Flat<Drr>, Flat<Wf2qPlus>, Flat<Qfq>, Flat<QfqPlus>,
                           Flat<Calendar>, OfTree<LeafQueue::kFifo>, OfTree<LeafQueue::kFqCodel>,
                           OfTree<LeafQueue::kCodel>>;
TYPED_TEST_SUITE(SharedLimit, All);

// Connections have turns by the packets they hold.
template <class D>
class SharedLimitOfFifos : public testing::Test {};
using Fifos = testing::Types<Flat<Prio>, Flat<Drr>, Flat<Wf2qPlus>, Flat<Qfq>, Flat<QfqPlus>,
                             Flat<Calendar>, OfTree<LeafQueue::kFifo>>;
TYPED_TEST_SUITE(SharedLimitOfFifos, Fifos);

template <class D>
constexpr bool kHasConnections =
    std::is_same_v<D, OfTree<LeafQueue::kFqCodel>> || std::is_same_v<D, OfTree<LeafQueue::kCodel>>;

// Events in order: a packet arrived, or one was asked for. `handle` 0: there was none.
struct Event {
  bool is_in = false;
  uint64_t at_ns = 0;
  Descriptor pkt;
};

// Flows that flood and flows that do not, next to a hand-kept queue of each.
template <class D>
struct Play {
  D order{kRoom};
  std::map<uint32_t, std::deque<uint64_t>> queues;
  std::vector<Event> events;
  std::set<uint64_t> pushed_out;
  Rng rng;
  uint64_t now_ns = 0;
  uint64_t next_handle = 1;
  uint32_t total = 0;
  uint32_t n_shorter = 0;  // losses of queues below three quarters of the longest

  explicit Play(uint64_t seed) : rng(seed) {}

  uint32_t longest_pkts() {
    uint32_t most = 0;
    for (const auto& [flow, queue] : queues) most = std::max<uint32_t>(most, queue.size());
    return most;
  }
  void erase(const Descriptor& pkt) {
    std::deque<uint64_t>& queue = queues[pkt.flow];
    const auto at = std::ranges::find(queue, pkt.handle());
    ASSERT_NE(at, queue.end());
    queue.erase(at);
    --total;
  }
  void note_pushed_out(uint32_t newcomer) {
    const Descriptor& gone = order.pushed_out();
    const std::deque<uint64_t>& queue = queues[gone.flow];
    ASSERT_EQ(total, kRoom);
    ASSERT_GT(queue.size(), queues[newcomer].size() + 1);
    ASSERT_TRUE(kHasConnections<D> || gone.handle() == queue.at(1));
    n_shorter += 4 * queue.size() < 3 * longest_pkts() ? 1 : 0;
    pushed_out.insert(gone.handle());
    erase(gone);
  }
  void put(uint32_t flow) {
    const uint32_t len = 64 + rng.below(1400);
    const uint32_t word = kHasConnections<D> ? flow_word(flow, rng.below(5), false) : flow;
    const Descriptor pkt = Descriptor::of(next_handle++, len, word, now_ns);
    const Enqueued done = order.enqueue(pkt);
    if (done == Enqueued::kFull) {
      ASSERT_EQ(total, kRoom);
      n_shorter += 4 * (queues[flow].size() + 1) < 3 * longest_pkts() ? 1 : 0;
      return;
    }
    if (done == Enqueued::kPushedOut) note_pushed_out(flow);
    ASSERT_TRUE(is_in(done));
    queues[flow].push_back(pkt.handle());
    ++total;
    events.push_back({true, now_ns, pkt});
    if constexpr (requires { order.shed(); }) {
      for (uint32_t i = 0; i < order.shed().n; ++i) {
        pushed_out.insert(order.shed().all[i].handle());
        erase(order.shed().all[i]);
      }
      order.shed().n = 0;
    }
  }
  void take() {
    now_ns += kStepNs;
    if constexpr (TimedOrder<D>) order.advance(now_ns);
    Event event{false, now_ns, {}};
    if (order.dequeue(event.pkt)) erase(event.pkt);
    events.push_back(event);
  }
  void step() {
    const uint32_t kind = rng.below(10);
    if (kind < 5) {
      put(rng.below(4));
    } else if (kind < 7) {
      put(rng.below(kFlows));
    } else {
      take();
    }
    ASSERT_EQ(order.backlog_pkts(), total);
    const uint32_t flow = rng.below(kFlows);
    ASSERT_EQ(order.backlog_pkts(flow), queues[flow].size());
  }
};

// Every packet is accounted for. Packets are lost only from a queue longer than the newcomer's and,
// with rare exceptions, at least three quarters as long as the longest, however room, rates and
// turns change.
TYPED_TEST(SharedLimit, TakesFromALongQueueAndCountsEveryPacket) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Play<TypeParam> play(seed);
    for (uint32_t k = 0; k < 20'000; ++k) {
      play.step();
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << k;
    }
    EXPECT_GT(play.pushed_out.size(), 500U);
    EXPECT_LT(play.n_shorter, play.pushed_out.size() / 100) << seed;
  }
}

// The packets that stayed leave in the order and at the times as if the lost ones had never
// arrived.
TYPED_TEST(SharedLimitOfFifos, LeavesTheOrderOfTheOthersAsItWas) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Play<TypeParam> play(seed);
    for (uint32_t k = 0; k < 20'000 && !testing::Test::HasFatalFailure(); ++k) play.step();
    TypeParam others(1 << 16);
    for (const Event& event : play.events) {
      if constexpr (TimedOrder<TypeParam>) others.advance(event.at_ns);
      if (event.is_in) {
        if (play.pushed_out.count(event.pkt.handle()) != 0) continue;
        ASSERT_EQ(others.enqueue(event.pkt), Enqueued::kYes);
        continue;
      }
      Descriptor pkt;
      others.dequeue(pkt);
      ASSERT_EQ(pkt.handle(), event.pkt.handle()) << "seed " << seed;
    }
  }
}

TYPED_TEST(SharedLimit, AFlowWithinItsShareLosesNothingWhileOthersFlood) {
  constexpr uint32_t kLight = 11;  // the flow with the highest weight
  TypeParam order(kRoom);
  uint64_t handle = 0;
  uint64_t now_ns = 0;
  uint32_t n_full = 0;
  uint32_t n_left = 0;
  for (uint32_t k = 0; k < 10'000; ++k) {
    for (uint32_t f = 0; f + 1 < kLight; ++f) {
      const Enqueued done = order.enqueue(Descriptor::of(++handle, 500, f, now_ns));
      ASSERT_FALSE(done == Enqueued::kPushedOut && order.pushed_out().flow == kLight);
      n_full += done == Enqueued::kYes ? 0 : 1;
    }
    if (k % 100 == 0) {
      const Enqueued done = order.enqueue(Descriptor::of(++handle, 500, kLight, now_ns));
      ASSERT_TRUE(is_in(done)) << k;
      ASSERT_FALSE(done == Enqueued::kPushedOut && order.pushed_out().flow == kLight);
    }
    if constexpr (requires { order.shed(); }) order.shed().n = 0;
    now_ns += kStepNs;
    if constexpr (TimedOrder<TypeParam>) order.advance(now_ns);
    Descriptor pkt;
    if (order.dequeue(pkt)) n_left += pkt.flow == kLight ? 1 : 0;
  }
  EXPECT_GT(n_full, 1000U);
  EXPECT_GT(n_left, 90U);
}

// The only long queue, to which no packet comes any more, is found among very many queues of one
// packet after one look at each.
TYPED_TEST(SharedLimit, MeetsEveryLongQueueSoon) {
  constexpr uint32_t kMany = 2000;
  constexpr uint32_t kLong = kMany - 1;
  constexpr uint32_t kPkts = 5;
  constexpr uint32_t kNew = 100;
  TypeParam order(kMany - 1 - kNew + kPkts, kMany);
  uint64_t handle = 0;
  const auto put = [&](uint32_t f) { return order.enqueue(Descriptor::of(++handle, 500, f, 0)); };
  for (uint32_t k = 0; k < kPkts; ++k) put(kLong);
  for (uint32_t f = kNew; f < kLong; ++f) ASSERT_EQ(put(f), Enqueued::kYes);
  uint32_t n_calls = 0;
  for (uint32_t f = 0; f < kPkts - 1; ++f) {
    Enqueued done = Enqueued::kFull;
    for (; done == Enqueued::kFull; ++n_calls) {
      ASSERT_LT(n_calls, kMany / LongQueue::kLooks);
      done = put(f);
    }
    ASSERT_EQ(done, Enqueued::kPushedOut);
    EXPECT_EQ(order.pushed_out().flow, kLong);
  }
  // No queue has two packets any more.
  EXPECT_EQ(order.backlog_pkts(kLong), 1U);
  for (uint32_t k = 0; k < kMany; ++k) ASSERT_EQ(put(kNew - 1), Enqueued::kFull);
}

// The longest flow is removed, changed and added again while all room is taken.
TYPED_TEST(SharedLimit, ForgetsTheLongestWhenItGoes) {
  TypeParam order(kRoom);
  uint64_t handle = 0;
  uint32_t n_given = 0;
  for (uint32_t round = 0; round < 10; ++round) {
    while (order.backlog_pkts() < kRoom) order.enqueue(Descriptor::of(++handle, 500, 3, 0));
    ASSERT_EQ(order.enqueue(Descriptor::of(++handle, 500, 4, 0)), Enqueued::kPushedOut);
    ASSERT_EQ(order.pushed_out().flow, 3U);
    const uint32_t backlog = order.backlog_pkts(3);
    n_given = 0;
    order.remove(3, [&](const Descriptor&) { ++n_given; });
    ASSERT_EQ(n_given, backlog);
    while (order.backlog_pkts() < kRoom) order.enqueue(Descriptor::of(++handle, 500, 5, 0));
    ASSERT_EQ(order.enqueue(Descriptor::of(++handle, 500, 6, 0)), Enqueued::kPushedOut);
    ASSERT_EQ(order.pushed_out().flow, 5U);
    order.remove(5, [](const Descriptor&) {});
    if constexpr (requires { order.configure(3, FlowParams{}); }) {
      for (const uint32_t f : {3U, 5U}) order.configure(f, {});
    } else {
      for (const uint32_t f : {3U, 5U}) order.add(f, order.root() + 1, {});
    }
  }
}

// If one leaf holds all the room, its longest connection loses a packet, not the arriving one. If a
// packet of another leaf arrives, the longest connection of the longest leaf loses one.
TEST(SharedLimitOfATree, PushesOutOfTheLongestConnection) {
  OfTree<LeafQueue::kFqCodel> tree(64);
  uint64_t handle = 0;
  const auto put = [&](uint32_t leaf, uint32_t connection) {
    ++handle;
    return tree.enqueue(Descriptor::of(handle, 500, flow_word(leaf, connection, false), 0));
  };
  while (tree.backlog_pkts() < 64) put(1, 9);
  EXPECT_EQ(put(1, 3), Enqueued::kYes);
  const uint64_t call = handle;
  EXPECT_EQ(tree.shed().n, 32U);
  tree.shed().n = 0;
  while (tree.backlog_pkts() < 64) put(1, 9);
  for (uint32_t k = 0; k < 50; ++k) {
    ASSERT_EQ(put(2 + k % 30, 0), Enqueued::kPushedOut) << k;
    ASSERT_NE(tree.pushed_out().handle(), call);
  }
  EXPECT_EQ(tree.backlog_pkts(1), 14U);
}

}  // namespace shared_limit_test
}  // namespace batchplane::egress
