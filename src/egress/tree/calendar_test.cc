// SPDX-License-Identifier: BSD-3-Clause
// calendar_test.cc - departures against a sorted list, and order within flows.
#include "egress/tree/calendar.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

namespace batchplane::egress {
namespace calendar_test {

struct Sent {
  uint64_t handle;
  uint64_t at_ns;
};

TEST(Calendar, ClocksMayBeAhead) {
  Calendar calendar({1, 10});
  calendar.configure(0, {.delay_us = 50});
  calendar.advance(5'000'000'000);
  calendar.enqueue(Descriptor::of(1, 60, 0, 5'000'008'000));
  EXPECT_NEAR(static_cast<double>(calendar.next_ready_ns()), 5'000'058'000, 16);
}

// Advances the calendar whenever it says that something may be due.
std::vector<Sent> run_until(Calendar& calendar, uint64_t until_ns) {
  std::vector<Sent> sent;
  Descriptor pkt;
  for (uint64_t now_ns = 0; now_ns < until_ns;) {
    now_ns = std::min(calendar.next_ready_ns(), until_ns);
    calendar.advance(now_ns);
    while (calendar.dequeue(pkt)) sent.push_back({pkt.handle(), now_ns});
  }
  return sent;
}

TEST(Calendar, PacketsLeaveAfterTheirDelay) {
  Calendar calendar({3, 1000});
  const uint32_t delays_us[] = {20'000, 100, 7};
  for (uint32_t f = 0; f < 3; ++f) calendar.configure(f, {.delay_us = delays_us[f]});
  Rng rng(3);
  std::map<uint64_t, uint64_t> due_ns;  // by handle
  uint64_t now_ns = 1'000'000;
  for (uint64_t handle = 1; handle <= 600; ++handle) {
    now_ns += rng.below(20) * 16;
    calendar.advance(now_ns);
    const uint32_t flow = rng.below(3);
    // No packet is taken out meanwhile, so later packets of a flow wait in line.
    ASSERT_EQ(calendar.enqueue(Descriptor::of(handle, 100, flow, now_ns)), Enqueued::kYes);
    due_ns[handle] = now_ns + uint64_t{delays_us[flow]} * 1000;
  }
  const std::vector<Sent> sent = run_until(calendar, 100'000'000);
  ASSERT_EQ(sent.size(), 600U);
  for (const Sent& each : sent) {
    // Entry times are kept in steps of 16 ns.
    EXPECT_GE(each.at_ns + 16, std::max(due_ns[each.handle], now_ns));
    EXPECT_LE(each.at_ns, std::max(due_ns[each.handle], now_ns) + 16);
  }
}

TEST(Calendar, JitterKeepsOrderAndBounds) {
  Calendar calendar({1, 1000});
  calendar.configure(0, {.delay_us = 1000, .jitter_us = 500});
  for (uint64_t k = 0; k < 500; ++k) {
    calendar.advance(1'000'000 + k * 1600);
    calendar.enqueue(Descriptor::of(k + 1, 100, 0, 1'000'000 + k * 1600));
  }
  const std::vector<Sent> sent = run_until(calendar, 50'000'000);
  ASSERT_EQ(sent.size(), 500U);
  bool is_spread = false;
  for (uint64_t k = 0; k < 500; ++k) {
    ASSERT_EQ(sent[k].handle, k + 1);
    const uint64_t waited_ns = sent[k].at_ns - (1'000'000 + k * 1600);
    ASSERT_GE(waited_ns, 1'000'000U - 16);
    ASSERT_LE(waited_ns, 1'500'000U + 16);
    is_spread |= waited_ns > 1'100'000;
  }
  EXPECT_TRUE(is_spread);
}

// Packets of a burst leave one by one at the flow's rate, as do packets that arrive faster; no
// other flow waits.
TEST(Calendar, SpacesAFlowByItsRate) {
  for (const uint64_t rate_bps : {64'000UL, 7'000'000UL, 400'000'000'000UL}) {
    Calendar calendar({2, 3000});
    calendar.configure(0, {.delay_us = 30, .pace_bps = rate_bps});
    calendar.configure(1, {});
    calendar.advance(1'000'000);
    Rng rng(5);
    uint64_t sum_bytes = 0;
    std::vector<uint64_t> before_bytes;  // by handle
    for (uint64_t k = 0; k < 1000; ++k) {
      const uint32_t len = 60 + rng.below(1400);
      calendar.enqueue(Descriptor::of(k, len, 0, 1'000'000));
      before_bytes.push_back(sum_bytes);
      sum_bytes += len;
    }
    calendar.enqueue(Descriptor::of(1000, 60, 1, 1'000'000));
    const std::vector<Sent> sent = run_until(calendar, 1'000'000'000'000);
    ASSERT_EQ(sent.size(), 1001U);
    EXPECT_EQ(sent[0].handle, 1000U);
    for (size_t i = 1; i < sent.size(); ++i) {
      ASSERT_EQ(sent[i].handle, i - 1);
      const double at_ns = 1'030'000 + static_cast<double>(before_bytes[i - 1]) * 8e9 /
                                           static_cast<double>(rate_bps);
      // Steps of the entry time, the wheel's nanosecond, and rounding of the rate.
      EXPECT_NEAR(static_cast<double>(sent[i].at_ns), at_ns, 20 + at_ns * 1e-7) << rate_bps;
    }
  }
}

// A worker that looks late sends no less in the long run.
TEST(Calendar, KeepsTheRateOfALateWorker) {
  Calendar calendar({1, 3000});
  calendar.configure(0, {.pace_bps = 800'000'000});  // 1,000 bytes in 10 us
  for (uint64_t k = 0; k < 2000; ++k) calendar.enqueue(Descriptor::of(k, 1000, 0, 0));
  uint64_t n = 0;
  Descriptor pkt;
  for (uint64_t now_ns = 0; now_ns < 10'000'000; now_ns += 37'000) {
    calendar.advance(now_ns);
    while (calendar.dequeue(pkt)) {
      ++n;
      calendar.advance(now_ns);
    }
  }
  EXPECT_NEAR(static_cast<double>(n), 1000, 4);
}

// Against a list of each flow's packets, over several wraps of the times: what leaves is due, and
// nothing that is due stays.
TEST(Calendar, KeepsPacketsUntilTheirDeparture) {
  constexpr uint32_t kFlows = 6;
  struct Held {
    uint64_t handle;
    uint64_t from_ns;
  };
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    Calendar calendar({kFlows, 4000});
    std::vector<uint64_t> delays_ns;
    for (uint32_t f = 0; f < kFlows; ++f) {
      const uint32_t delay_us = f % 3 * rng.below(400'000);
      calendar.configure(f, {.delay_us = delay_us});
      delays_ns.push_back(uint64_t{delay_us} * 1000);
    }
    std::vector<std::deque<Held>> held(kFlows);
    std::vector<uint64_t> last_ns(kFlows);  // of a flow: when its last packet was due
    const auto due_ns = [&](uint32_t f) {
      return std::max(last_ns[f], held[f].front().from_ns + delays_ns[f]);
    };
    uint64_t now_ns = (1ULL << (32 + kTickShift)) - 1'000'000'000;
    for (uint64_t handle = 1; handle <= 3000; ++handle) {
      now_ns += rng.below(4) == 0 ? rng.below(300'000'000) : rng.below(2000) * 16;
      now_ns &= ~15ULL;
      calendar.advance(now_ns);
      Descriptor pkt;
      while (calendar.dequeue(pkt)) {
        const uint32_t f = pkt.flow;
        ASSERT_FALSE(held[f].empty());
        ASSERT_EQ(held[f].front().handle, pkt.handle());
        ASSERT_LE(due_ns(f), now_ns) << "seed " << seed;
        last_ns[f] = due_ns(f);
        held[f].pop_front();
      }
      for (uint32_t f = 0; f < kFlows; ++f) {
        if (!held[f].empty()) {
          ASSERT_GT(due_ns(f), now_ns) << "seed " << seed;
        }
      }
      const uint32_t flow = rng.below(kFlows);
      if (rng.below(3) == 0) {
        ASSERT_EQ(calendar.enqueue(Descriptor::of(handle, 100, flow, now_ns)), Enqueued::kYes);
        held[flow].push_back({handle, now_ns});
        continue;
      }
      const uint64_t ahead_ns = rng.below(10) == 0 ? kMaxDepartureAheadNs : rng.below(900'000'000);
      const uint64_t at_ns = (now_ns - 100'000'000 + ahead_ns) & ~15ULL;
      const auto ticks = static_cast<uint32_t>(at_ns >> kTickShift);
      ASSERT_EQ(calendar.enqueue(Descriptor::departing(handle, 100, flow, ticks)), Enqueued::kYes);
      held[flow].push_back({handle, at_ns});
    }
    EXPECT_GT(now_ns, 2ULL << (32 + kTickShift));
  }
}

// Nothing is taken for so long that the times of the packets behind seem to lie ahead again.
TEST(Calendar, ADepartureLongPastIsPast) {
  for (const uint64_t later_ns : {1'000'000'000ULL, 20'000'000'000ULL, 40'000'000'000ULL}) {
    Calendar calendar({1, 10});
    calendar.configure(0, {});
    const uint64_t now_ns = 100'000'000'000;
    calendar.advance(now_ns);
    const uint64_t at_ns = now_ns + kMaxDepartureAheadNs;
    const auto ticks = static_cast<uint32_t>(at_ns >> kTickShift);
    for (uint64_t k = 0; k < 2; ++k) calendar.enqueue(Descriptor::departing(k, 100, 0, ticks));
    Descriptor pkt;
    calendar.advance(at_ns - 1);
    EXPECT_FALSE(calendar.dequeue(pkt));
    calendar.advance(at_ns + later_ns);
    EXPECT_TRUE(calendar.dequeue(pkt)) << later_ns;
    EXPECT_TRUE(calendar.dequeue(pkt)) << later_ns;
  }
}

TEST(Calendar, LosesNothingWhileFlowsChange) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    Calendar calendar({8, 200});
    std::map<uint32_t, std::deque<uint64_t>> queues;
    uint64_t handle = 0;
    uint64_t now_ns = 0;
    const auto expect = [&](const Descriptor& pkt) {
      ASSERT_FALSE(queues[pkt.flow].empty());
      ASSERT_EQ(queues[pkt.flow].front(), pkt.handle());
      queues[pkt.flow].pop_front();
    };
    for (int k = 0; k < 5000; ++k) {
      now_ns += rng.below(100'000);
      calendar.advance(now_ns);
      const uint32_t flow = rng.below(8);
      Descriptor pkt;
      switch (rng.below(6)) {
        case 0:
          calendar.configure(flow, {.weight = 1 + rng.below(3),
                                    .delay_us = rng.below(3) * rng.below(9000),
                                    .jitter_us = rng.below(2) * 300,
                                    .pace_bps = rng.below(2) * 10'000'000ULL});
          break;
        case 1:
          if (rng.below(8) == 0) calendar.remove(flow, expect);
          break;
        case 2:
          if (rng.below(8) == 0 && calendar.drain(pkt)) expect(pkt);
          break;
        case 3:
          if (calendar.dequeue(pkt)) expect(pkt);
          break;
        default:
          if (calendar.enqueue(Descriptor::of(++handle, 60, flow, now_ns)) == Enqueued::kYes) {
            queues[flow].push_back(handle);
          }
      }
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
    }
    now_ns += 100'000'000;
    calendar.advance(now_ns);
    Descriptor pkt;
    while (calendar.dequeue(pkt)) {
      expect(pkt);
      now_ns += 100'000'000;
      calendar.advance(now_ns);
    }
    ASSERT_EQ(calendar.backlog_pkts(), 0U);
    for (const auto& [flow, queue] : queues) ASSERT_TRUE(queue.empty());
  }
}

}  // namespace calendar_test
}  // namespace batchplane::egress
