// SPDX-License-Identifier: BSD-3-Clause
// arbiter_test.cc - link, mailboxes, client list and arbiter, between threads too.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "egress/arbiter/arbiter.h"
#include "egress/arbiter/batch_mailbox.h"
#include "egress/arbiter/client_list.h"
#include "egress/arbiter/replay.h"
#include "egress/arbiter/slot_mailbox.h"
#include "egress/discipline/disciplines.h"

namespace batchplane::egress {
namespace arbiter_test {

TEST(Link, KeepsItsRateOverEightDecades) {
  Rng rng(1);
  for (const uint64_t rate_bps : {8'000ULL, 64'000ULL, 1'000'000ULL, 68'000'000'000ULL,
                                  69'000'000'000ULL, 400'000'000'000ULL}) {
    Link link(rate_bps);
    long double bytes = 0;
    for (uint32_t k = 0; k < 100'000; ++k) {
      const uint32_t len = 64 + rng.below(9000);
      link.carry(len);
      bytes += len;
    }
    const long double wanted_ns = bytes * 8e9L / static_cast<long double>(rate_bps);
    EXPECT_NEAR(static_cast<double>(link.free_at_ns() / wanted_ns), 1, 1e-6) << rate_bps;
  }
}

TEST(Link, SavesUpNothingWhileIdle) {
  Link link(8'000'000'000, {.overhead_bytes = 24});  // a byte per nanosecond
  link.carry(76);
  EXPECT_FALSE(link.is_free(99));
  EXPECT_TRUE(link.is_free(100));
  link.idle_until(5'000);
  link.carry(76);
  EXPECT_FALSE(link.is_free(5'099));
  EXPECT_TRUE(link.is_free(5'100));
}

template <class Mailbox>
class EveryMailbox : public testing::Test {};
using Mailboxes = testing::Types<SlotMailbox, BatchMailbox>;
TYPED_TEST_SUITE(EveryMailbox, Mailboxes);

Descriptor numbered(uint64_t k) {
  return Descriptor::of(k + 1, 64, static_cast<uint32_t>(k), k << 4);
}

TYPED_TEST(EveryMailbox, IsFullOnlyAtItsCapacityAndFreeOnceCleared) {
  TypeParam mailbox(64);
  uint64_t put = 0;
  while (mailbox.put(numbered(put))) ++put;
  EXPECT_EQ(put, mailbox.capacity_pkts());
  EXPECT_FALSE(mailbox.put(numbered(put)));
  Descriptor pkts[64];
  ASSERT_EQ(mailbox.take(pkts, 64), put);
  EXPECT_TRUE(mailbox.is_empty());
  mailbox.clear();
  EXPECT_TRUE(mailbox.put(numbered(put)));
  EXPECT_FALSE(mailbox.is_empty());
}

TYPED_TEST(EveryMailbox, KeepsOrderOverManyLaps) {
  TypeParam mailbox(64);
  Rng rng(7);
  uint64_t put = 0;
  uint64_t taken = 0;
  while (taken < 100'000) {
    for (uint32_t k = rng.below(40); k-- > 0 && mailbox.put(numbered(put));) ++put;
    Descriptor pkts[40];
    const uint32_t n = mailbox.take(pkts, rng.below(40) + 1);
    for (uint32_t k = 0; k < n; ++k) {
      ASSERT_EQ(pkts[k].handle(), taken + k + 1);
      ASSERT_EQ(pkts[k].flow, taken + k);
      ASSERT_EQ(pkts[k].entry_ticks, taken + k);
    }
    taken += n;
    if (rng.below(3) == 0) mailbox.clear();
    ASSERT_EQ(mailbox.is_empty(), put == taken);
  }
}

TYPED_TEST(EveryMailbox, HandsOverBetweenTwoThreads) {
  TypeParam mailbox(128);
  constexpr uint64_t kMany = 200'000;
  std::thread client([&] {
    uint64_t put = 0;
    Descriptor pkts[32];
    while (put < kMany) {
      const auto n = static_cast<uint32_t>(std::min<uint64_t>(32, kMany - put));
      for (uint32_t k = 0; k < n; ++k) pkts[k] = numbered(put + k);
      const uint32_t done = mailbox.put(pkts, n);
      put += done;
      if (done == 0) std::this_thread::yield();
    }
  });
  uint64_t taken = 0;
  while (taken < kMany) {
    Descriptor pkts[32];
    const uint32_t n = mailbox.take(pkts, 32);
    for (uint32_t k = 0; k < n; ++k) {
      EXPECT_EQ(pkts[k].handle(), taken + k + 1);
      EXPECT_EQ(pkts[k].flow, taken + k);
    }
    taken += n;
    mailbox.clear();
    if (n == 0) std::this_thread::yield();
  }
  client.join();
  EXPECT_TRUE(mailbox.is_empty());
}

// The interleaving that would strand a packet without the last look.
TEST(ClientList, FindsWhatWasPutWhileItLetGo) {
  ClientList list(2, 1);
  std::vector<std::unique_ptr<SlotMailbox>> mailboxes;
  for (int k = 0; k < 2; ++k) mailboxes.push_back(std::make_unique<SlotMailbox>(64));
  uint32_t visits = 0;
  const auto visit = [&](uint32_t client) {
    Descriptor pkts[8];
    const uint32_t n = mailboxes[client]->take(pkts, 8);
    visits += n;
    // The client puts a packet between the arbiter's look and its release of the client, whose
    // announcement still stands.
    if (client == 0 && n == 0 && visits == 1) {
      mailboxes[0]->put(numbered(1));
      list.announce(0, 0);
    }
    return n;
  };
  const auto is_empty = [&](uint32_t client) { return mailboxes[client]->is_empty(); };
  mailboxes[0]->put(numbered(0));
  list.announce(0, 0);
  for (int round = 0; round < 4; ++round) {
    list.collect();
    list.for_each_active(visit, is_empty);
  }
  EXPECT_EQ(visits, 2U);
  EXPECT_EQ(list.n_active(), 0U);
  // A packet put after that: the client announces itself again.
  mailboxes[0]->put(numbered(2));
  list.announce(0, 0);
  list.collect();
  list.for_each_active(visit, is_empty);
  EXPECT_EQ(visits, 3U);
}

TEST(ClientList, LosesNothingBetweenThreads) {
  constexpr uint32_t kClients = 50;
  constexpr uint32_t kEach = 2'000;
  ClientList list(kClients, 2);
  std::vector<std::unique_ptr<BatchMailbox>> mailboxes;
  for (uint32_t k = 0; k < kClients; ++k) mailboxes.push_back(std::make_unique<BatchMailbox>(16));
  const auto send = [&](uint32_t core) {
    for (uint32_t k = 0; k < kEach; ++k) {
      for (uint32_t client = core; client < kClients; client += 2) {
        while (!mailboxes[client]->put(numbered(k))) std::this_thread::yield();
        list.announce(client, core);
      }
    }
  };
  std::thread first(send, 0);
  std::thread second(send, 1);
  std::vector<uint64_t> next(kClients, 0);
  uint64_t taken = 0;
  while (taken < uint64_t{kClients} * kEach) {
    list.collect();
    list.for_each_active(
        [&](uint32_t client) {
          Descriptor pkts[16];
          const uint32_t n = mailboxes[client]->take(pkts, 16);
          for (uint32_t k = 0; k < n; ++k) EXPECT_EQ(pkts[k].handle(), ++next[client]);
          taken += n;
          return n;
        },
        [&](uint32_t client) { return mailboxes[client]->is_empty(); });
    if (list.n_active() == 0) std::this_thread::yield();
  }
  first.join();
  second.join();
}

// Weights hold although the arbiter releases less than clients bring, and the link is no limit.
TEST(Arbiter, SharesByWeightWhenItIsTheBottleneck) {
  Arbiter<Drr> arbiter(Drr({3, 3000}), Link{});
  for (const uint32_t flow : {0U, 1U, 2U}) {
    ASSERT_EQ(
        arbiter.discipline().configure(flow, {.weight = flow == 0 ? 8U : 1U, .limit_pkts = 500}),
        Configured::kYes);
  }
  BatchMailbox mailbox(1024);
  uint64_t released[3] = {};
  uint64_t refused = 0;
  uint64_t put = 0;
  for (uint64_t round = 0; round < 10'000; ++round) {
    for (uint32_t k = 0; k < 90; ++k) {
      put += mailbox.put(Descriptor::of(1, 1000, k % 3, 0)) ? 1 : 0;
    }
    arbiter.take_from(mailbox, 1024, [&](const Descriptor&, Enqueued why) {
      EXPECT_EQ(why, Enqueued::kFull);
      ++refused;
    });
    arbiter.release(round, 30, [&](const Descriptor& pkt) { ++released[pkt.flow]; });
  }
  EXPECT_NEAR(static_cast<double>(released[0]) / 300'000, 0.8, 0.01);
  EXPECT_NEAR(static_cast<double>(released[1]) / 300'000, 0.1, 0.01);
  EXPECT_EQ(
      put, released[0] + released[1] + released[2] + refused + arbiter.discipline().backlog_pkts());
}

TEST(Arbiter, SendsNoBurstAfterItWasHeldUp) {
  Arbiter<Drr> arbiter(Drr({1, 100'000}), Link(8'000'000'000));  // a byte per nanosecond
  arbiter.discipline().configure(0, {.lmax_bytes = 1000});
  for (uint64_t k = 0; k < 100'000; ++k) {
    const Descriptor pkt = Descriptor::of(k + 1, 1000, 0, 0);
    arbiter.put_in(&pkt, 1, [](const Descriptor&, Enqueued) {});
  }
  const auto released_at = [&](uint64_t now_ns) {
    return arbiter.release(now_ns, 100'000, [](const Descriptor&) {});
  };
  uint64_t now_ns = 1'000'000;
  EXPECT_EQ(released_at(now_ns), 1U);
  // Late rounds lose no throughput.
  for (uint32_t round = 0; round < 100; ++round) EXPECT_EQ(released_at(now_ns += 150'000), 150U);
  // 10 ms without a round are not made up for.
  EXPECT_LE(released_at(now_ns += 10'000'000), Link::kMaxLagNs / 1000 + 1);
  EXPECT_EQ(released_at(now_ns += 100'000), 100U);
}

TEST(Replay, ReleasesAtLinkRate) {
  const ReplayResult result =
      replay("fifo", {{}, {}}, {{0, 0, 1000}, {0, 1, 500}, {10'000, 0, 1000}, {10'000, 1, 64}},
             8'000'000'000, 0);
  ASSERT_EQ(result.departures.size(), 4U);
  EXPECT_EQ(result.departures[0].release_ns, 0U);
  EXPECT_EQ(result.departures[1].release_ns, 1000U);
  EXPECT_EQ(result.departures[2].release_ns, 10'000U);
  EXPECT_EQ(result.departures[3].release_ns, 11'000U);  // no credit for the time without packets
}

TEST(Replay, SaysWhatIsWrong) {
  EXPECT_THROW(replay("sfq", {{}}, {}, 0, 0), ConfigError);
  EXPECT_THROW(replay("qfq", {{.weight = 0}}, {}, 0, 0), ConfigError);
  EXPECT_THROW(replay("qfq", {{}}, {{5, 0, 64}, {4, 0, 64}}, 0, 0), ConfigError);
  const ReplayResult result = replay("qfq", {{.lmax_bytes = 100}}, {{0, 0, 101}, {0, 3, 64}}, 0, 0);
  EXPECT_EQ(result.refused, (std::vector<uint32_t>{0, 1}));
}

}  // namespace arbiter_test
}  // namespace batchplane::egress
