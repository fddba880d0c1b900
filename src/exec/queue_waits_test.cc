// SPDX-License-Identifier: BSD-3-Clause
// queue_waits_test.cc - the waiting time at the head, against a queue with a time stamp per packet.
#include "exec/queue_waits.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/rng.h"

namespace batchplane::exec {
namespace {

TEST(QueueWaits, NotesNothingWithoutMemory) {
  QueueWaits waits;
  waits.note_size(10, 5);
  waits.leave(3);
  EXPECT_EQ(waits.head_wait_ns(100), 0U);
}

TEST(QueueWaits, AreThoseOfTheHead) {
  Rng rng(3);
  QueueWaits waits;
  waits.reserve(64);
  std::deque<uint64_t> since_ns;
  uint64_t now_ns = 0;
  for (int step = 0; step < 20'000; ++step) {
    now_ns += rng.below(3) * 10;
    const auto size = static_cast<uint32_t>(since_ns.size());
    const uint32_t kind = rng.below(3);
    if (kind == 0) {
      const uint32_t gone = rng.below(size + 1);
      waits.leave(gone);
      since_ns.erase(since_ns.begin(), since_ns.begin() + gone);
    } else {
      // Never more than there are groups.
      const uint32_t wanted = kind == 1 ? rng.below(size + 1) : size + rng.below(65 - size);
      waits.note_size(wanted, now_ns);
      since_ns.resize(wanted, now_ns);
    }
    ASSERT_EQ(waits.head_wait_ns(now_ns), since_ns.empty() ? 0 : now_ns - since_ns.front());
  }
}

TEST(QueueWaits, WithoutRoomPacketsCountAsOlder) {
  QueueWaits waits;
  waits.reserve(2);
  waits.note_size(1, 10);
  waits.note_size(2, 20);
  waits.note_size(3, 30);
  waits.leave(2);
  EXPECT_EQ(waits.head_wait_ns(100), 80U);
  waits.note_size(0, 100);
  EXPECT_EQ(waits.head_wait_ns(100), 0U);
}

}  // namespace
}  // namespace batchplane::exec
