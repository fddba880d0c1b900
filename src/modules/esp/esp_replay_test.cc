// SPDX-License-Identifier: BSD-3-Clause
// esp_replay_test.cc - compares the window with a set of all numbers accepted.
#include "modules/esp/esp_replay.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"

namespace batchplane::esp {
namespace {

// RFC 4303 without a bitmap.
class SlowWindow {
 public:
  explicit SlowWindow(uint64_t window) : window_(window) {}
  [[nodiscard]] bool is_fresh(uint64_t sequence) const {
    if (sequence == 0 || taken_.contains(sequence)) return false;
    return taken_.empty() || sequence + window_ > *taken_.rbegin();
  }
  void mark(uint64_t sequence) { taken_.insert(sequence); }

 private:
  uint64_t window_;
  std::set<uint64_t> taken_;
};

TEST(EspReplay, AgreesWithASetOfAllNumbers) {
  for (const uint32_t window_pkts : {64U, 128U, 192U, 1024U}) {
    for (const uint64_t begin : {0ULL, 0xffffff00ULL, 5ULL << 40}) {
      Rng rng(window_pkts + begin);
      ReplayWindow window(window_pkts);
      SlowWindow slow(window_pkts);
      uint64_t at = begin + 1;
      for (uint32_t i = 0; i < 20'000; ++i) {
        const bool is_jump = rng.below(500) == 0;
        at += is_jump ? rng.below(4 * window_pkts) : rng.below(3);
        const uint64_t back = rng.below(window_pkts + window_pkts / 4);
        const uint64_t sequence = at - std::min(back, at);
        const bool is_fresh = slow.is_fresh(sequence);
        ASSERT_EQ(window.is_fresh(sequence), is_fresh) << window_pkts << ' ' << sequence;
        if (!is_fresh || rng.below(8) == 0) continue;  // some packets fail authentication
        window.mark(sequence);
        slow.mark(sequence);
      }
    }
  }
}

// The full number is recovered from its low half if it is in the window or less than 2^31 ahead.
TEST(EspReplay, FindsTheHighHalf) {
  Rng rng(7);
  for (uint32_t i = 0; i < 100'000; ++i) {
    ReplayWindow window(1024);
    const uint64_t highest = 1024 + (rng.next() >> (rng.below(40) + 1));
    window.mark(highest);
    const uint64_t sent = highest - 1023 + (rng.next() & 0x7fffffff);
    ASSERT_EQ(window.sequence_of(static_cast<uint32_t>(sent)), sent);
  }
  ReplayWindow fresh(64);
  EXPECT_EQ(fresh.sequence_of(1), 1U);
  EXPECT_EQ(fresh.sequence_of(0xffffffff), 0xffffffffU);
}

TEST(EspReplay, WithoutAWindowTakesAnyNumberAgain) {
  ReplayWindow window(0);
  window.mark(9);
  EXPECT_TRUE(window.is_fresh(9));
  EXPECT_TRUE(window.is_fresh(1));
  EXPECT_FALSE(window.is_fresh(0));
  window.mark(3);
  EXPECT_EQ(window.highest(), 9U);
}

}  // namespace
}  // namespace batchplane::esp
