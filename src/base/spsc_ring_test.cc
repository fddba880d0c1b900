// SPDX-License-Identifier: BSD-3-Clause
// spsc_ring_test.cc - capacity, order and wrap-around of the ring, in one thread and between two.
#include "base/spsc_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

#include "base/burst_ring.h"
#include "base/rng.h"

namespace batchplane {
namespace {

TEST(SpscRing, HoldsExactlyItsCapacity) {
  for (const uint32_t capacity : {1U, 3U, 64U, 100U}) {
    SpscRing<uint32_t> ring(capacity);
    std::vector<uint32_t> numbers(200);
    EXPECT_EQ(ring.free_slots(), capacity);
    EXPECT_EQ(ring.enqueue(numbers.data(), 200), capacity);
    EXPECT_EQ(ring.enqueue(numbers.data(), 1), 0U);
    EXPECT_EQ(ring.size(), capacity);
    uint32_t out = 0;
    EXPECT_EQ(ring.dequeue(&out, 1), 1U);
    EXPECT_EQ(ring.enqueue(numbers.data(), 200), 1U);
  }
}

TEST(SpscRing, BehavesAsAQueueUnderRandomBursts) {
  Rng rng(7);
  SpscRing<uint32_t> ring(37);
  std::deque<uint32_t> model;
  uint32_t next = 0;
  for (int step = 0; step < 20000; ++step) {
    uint32_t burst[64];
    const uint32_t n = rng.below(50);
    if (rng.below(2) == 0) {
      for (uint32_t i = 0; i < n; ++i) burst[i] = next + i;
      const uint32_t taken = ring.enqueue(burst, n);
      ASSERT_EQ(taken, std::min<size_t>(n, 37 - model.size()));
      for (uint32_t i = 0; i < taken; ++i) model.push_back(next++);
    } else {
      const uint32_t got = ring.dequeue(burst, n);
      ASSERT_EQ(got, std::min<size_t>(n, model.size()));
      for (uint32_t i = 0; i < got; ++i) {
        ASSERT_EQ(burst[i], model.front());
        model.pop_front();
      }
    }
    ASSERT_EQ(ring.size(), model.size());
  }
}

TEST(SpscRing, PeekShowsWhatComesNextAndTakesNothing) {
  SpscRing<uint32_t> ring(8);
  const uint32_t numbers[4] = {5, 6, 7, 8};
  ring.enqueue(numbers, 4);
  uint32_t first = 0;
  ASSERT_EQ(ring.dequeue(&first, 1), 1U);
  std::vector<uint32_t> seen;
  ring.peek(2, [&](uint32_t x) { seen.push_back(x); });
  EXPECT_EQ(seen, (std::vector<uint32_t>{6, 7}));
  EXPECT_EQ(ring.size(), 3U);
  // Packets enqueued since the last dequeue count too, also past the wrap.
  ring.enqueue(numbers, 4);
  seen.clear();
  ring.peek(20, [&](uint32_t x) { seen.push_back(x); });
  EXPECT_EQ(seen, (std::vector<uint32_t>{6, 7, 8, 5, 6, 7, 8}));
  EXPECT_EQ(ring.size(), 7U);
}

TEST(SpscRing, TwoThreadsKeepOrderAndLoseNothing) {
  // On a single core each full or empty ring costs a context switch, which is slow on a busy machine: smaller
  // rings get fewer items.
  for (const uint32_t capacity : {1U, 64U, 1000U}) {
    const uint64_t total = std::min<uint64_t>(200'000, 1000ULL * capacity);
    SpscRing<uint64_t> ring(capacity);
    std::thread producer([&] {
      Rng rng(1);
      uint64_t next = 0;
      while (next < total) {
        const auto n = static_cast<uint32_t>(std::min<uint64_t>(1 + rng.below(64), total - next));
        const uint32_t k = ring.produce(n, [&](uint32_t i, uint64_t& slot) { slot = next + i; });
        next += k;
        if (k == 0) std::this_thread::yield();
      }
    });
    Rng rng(2);
    uint64_t expected = 0;
    bool is_in_order = true;
    while (expected < total) {
      const uint32_t k = ring.consume(1 + rng.below(64), [&](uint32_t i, uint64_t slot) {
        is_in_order &= slot == expected + i;
      });
      expected += k;
      if (k == 0) std::this_thread::yield();
    }
    producer.join();
    EXPECT_TRUE(is_in_order) << capacity;
    EXPECT_EQ(ring.size(), 0U);
  }
}

TEST(SpscRing, TellsHowFullItWasFound) {
  SpscRing<uint64_t> ring(64);
  uint64_t slots[64] = {};
  EXPECT_EQ(ring.dequeue(slots, 8), 0U);
  EXPECT_EQ(ring.fill().looks, 0U) << "an empty ring is no look";
  ring.enqueue(slots, 40);
  EXPECT_EQ(ring.dequeue(slots, 8), 8U);
  EXPECT_EQ(ring.dequeue(slots, 8), 8U);  // knows of 32, but is the first such poll: 32
  EXPECT_EQ(ring.dequeue(slots, 8), 8U);  // knows of 24
  EXPECT_EQ(ring.fill().looks, 2U);
  EXPECT_EQ(ring.fill().mean_pkts(), 36.0);
  ring.enqueue(slots, 18);
  EXPECT_EQ(ring.dequeue(slots, 32), 32U);  // knows of 16, reads the tail again, and sees 34
  EXPECT_EQ(ring.fill().looks, 3U);
  EXPECT_EQ(ring.fill().mean_pkts(), (40 + 32 + 34) / 3.0);
  ring.begin_fill_period();
  EXPECT_EQ(ring.dequeue(slots, 32), 2U);
  EXPECT_EQ(ring.fill().period_max_pkts, 2U);
  EXPECT_EQ(ring.fill().max_pkts(), 40U);
}

// A full ring that is full again at each poll: the taker looks ahead after each of them, when there is room.
TEST(SpscRing, TellsThatItIsFullWhoeverLooksAhead) {
  SpscRing<uint64_t> ring(64);
  uint64_t slots[64] = {};
  for (int i = 0; i < 80; ++i) {
    ring.enqueue(slots, 64);
    EXPECT_EQ(ring.dequeue(slots, 32), 32U);
    ring.peek(32, [](uint64_t) {});
  }
  EXPECT_EQ(ring.fill().mean_pkts(), 64.0);
  EXPECT_GE(ring.fill().looks, 70U);
}

TEST(BurstSlot, KeepsPointerLengthAndTime) {
  int target = 0;
  const BurstSlot slot = BurstSlot::make(&target, 9728, 123456789012345ULL);
  EXPECT_EQ(slot.packet<int>(), &target);
  EXPECT_EQ(slot.len_bytes(), 9728U);
  EXPECT_EQ(slot.entry_ns, 123456789012345ULL);
}

}  // namespace
}  // namespace batchplane
