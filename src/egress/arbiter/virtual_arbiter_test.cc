// SPDX-License-Identifier: BSD-3-Clause
// virtual_arbiter_test.cc - rounds that cost time, mailboxes that fill, a bus behind the scheduler.
#include "egress/arbiter/virtual_arbiter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/rng.h"
#include "egress/arbiter/backpressure.h"
#include "egress/arbiter/flat_out.h"

namespace batchplane::egress {
namespace virtual_arbiter_test {

VirtualSpec spec_of(const std::vector<uint32_t>& weights) {
  VirtualSpec spec;
  for (uint32_t f = 0; f < weights.size(); ++f) {
    spec.flows.push_back({.weight = weights[f], .lmax_bytes = 1500});
    spec.client_of_flow.push_back(f);
  }
  return spec;
}

std::vector<Arrival> at_random(uint32_t n_flows, uint32_t n_pkts, uint64_t gap_ns) {
  Rng rng(n_flows);
  std::vector<Arrival> arrivals;
  uint64_t at_ns = 0;
  for (uint32_t k = 0; k < n_pkts; ++k) {
    arrivals.push_back({at_ns += rng.below(static_cast<uint32_t>(2 * gap_ns)), rng.below(n_flows),
                        64 + rng.below(1400)});
  }
  return arrivals;
}

std::vector<uint64_t> sent_by_flow(const VirtualResult& result,
                                   const std::vector<Arrival>& arrivals, size_t n_flows,
                                   uint64_t until_ns = ~0ULL) {
  std::vector<uint64_t> sent(n_flows);
  for (size_t k = 0; k < arrivals.size(); ++k) {
    if (result.fates[k] == Fate::kSent && result.done_ns[k] <= until_ns) ++sent[arrivals[k].flow];
  }
  return sent;
}

// With rounds that cost no time it equals the replay, packet by packet.
TEST(VirtualArbiter, WithoutCostsIsTheReplay) {
  for (const char* discipline : {"fifo", "drr", "wf2q_plus", "qfq", "qfq_plus"}) {
    VirtualSpec spec = spec_of({5, 1, 2, 9});
    spec.discipline = discipline;
    spec.client_of_flow = {0, 0, 0, 0};  // in order of arrival
    spec.mailbox_pkts = 100'000;
    spec.round_ns = spec.mailbox_ns = spec.take_pkt_ns = spec.release_pkt_ns = 0;
    spec.rate_bps = 8'000'000'000;
    const std::vector<Arrival> arrivals = at_random(4, 20'000, 800);
    const VirtualResult result = run_virtual(spec, arrivals);
    const ReplayResult wanted = replay(discipline, spec.flows, arrivals, spec.rate_bps, 0);
    std::vector<std::pair<uint64_t, uint32_t>> ours;
    std::vector<std::pair<uint64_t, uint32_t>> theirs;
    for (size_t k = 0; k < arrivals.size(); ++k) {
      ours.emplace_back(result.release_ns[k], arrivals[k].flow);
    }
    for (const Departure& d : wanted.departures) theirs.emplace_back(d.release_ns, d.flow);
    std::ranges::sort(ours);
    std::ranges::sort(theirs);
    EXPECT_EQ(ours, theirs) << discipline;
  }
}

TEST(VirtualArbiter, ARoundCostsWhatItsLawSays) {
  VirtualSpec spec = spec_of({1, 1, 1});
  spec.round_ns = 120;
  spec.mailbox_ns = 4;
  spec.take_pkt_ns = spec.release_pkt_ns = 17;
  const VirtualResult result = run_virtual(spec, at_random(3, 5'000, 60));
  ASSERT_GT(result.round_pkts.size(), 100U);
  for (size_t r = 0; r < result.round_pkts.size(); ++r) {
    ASSERT_EQ(result.round_took_ns[r], 120 + 3 * 4 + 17 * uint64_t{result.round_pkts[r]});
  }
}

TEST(VirtualArbiter, KeepsOrderAndLosesNothingUnseen) {
  VirtualSpec spec = spec_of({3, 1, 1, 1});
  spec.client_of_flow = {0, 1, 1, 0};
  spec.mailbox_pkts = 64;
  spec.rate_bps = 8'000'000'000;
  for (FlowParams& flow : spec.flows) flow.limit_pkts = 50;
  const std::vector<Arrival> arrivals = at_random(4, 20'000, 300);
  for (const bool is_immediate : {false, true}) {
    spec.is_immediate = is_immediate;
    const VirtualResult result = run_virtual(spec, arrivals);
    std::map<Fate, uint64_t> fates;
    std::map<uint32_t, uint64_t> last_ns;
    for (size_t k = 0; k < arrivals.size(); ++k) {
      ++fates[result.fates[k]];
      if (result.fates[k] != Fate::kSent) continue;
      ASSERT_GT(result.release_ns[k], arrivals[k].at_ns);
      ASSERT_GT(result.release_ns[k], last_ns[arrivals[k].flow]);
      last_ns[arrivals[k].flow] = result.release_ns[k];
    }
    EXPECT_GT(fates[Fate::kRefused], 0U) << is_immediate;
    EXPECT_EQ(fates[Fate::kBusFull], 0U);
  }
}

TEST(VirtualArbiter, AFullMailboxDropsWhatComes) {
  VirtualSpec spec = spec_of({1, 1});
  spec.mailbox_pkts = 10;
  std::vector<Arrival> arrivals(100, Arrival{.at_ns = 50, .flow = 0, .len_bytes = 64});
  arrivals.push_back({.at_ns = 50, .flow = 1, .len_bytes = 64});
  const VirtualResult result = run_virtual(spec, arrivals);
  EXPECT_EQ(sent_by_flow(result, arrivals, 2), (std::vector<uint64_t>{10, 1}));
}

TEST(VirtualArbiter, AReadLimitMakesRoundsRarer) {
  VirtualSpec spec = spec_of({1});
  const std::vector<Arrival> arrivals = at_random(1, 5'000, 200);
  const size_t often = run_virtual(spec, arrivals).round_pkts.size();
  spec.read_interval_ns = 10'000;
  const VirtualResult rarely = run_virtual(spec, arrivals);
  EXPECT_LT(10 * rarely.round_pkts.size(), often);
  EXPECT_EQ(sent_by_flow(rarely, arrivals, 1).front(), 5'000U);
}

// All clients flat out: 8 packets arrive in the time in which the stages behind carry one.
std::vector<Arrival> flood(uint32_t n_pkts) {
  std::vector<Arrival> arrivals;
  for (uint32_t k = 0; k < n_pkts; ++k) arrivals.push_back({25ULL * (k / 3), k % 3, 64});
  return arrivals;
}

VirtualSpec eight_to_one(uint64_t pkt_ns) {
  VirtualSpec spec = spec_of({8, 1, 1});
  for (FlowParams& flow : spec.flows) flow.limit_pkts = 100;
  spec.take_pkt_ns = spec.release_pkt_ns = pkt_ns;
  return spec;
}

TEST(VirtualArbiter, ABusServesItsRingsInTurnWhateverTheWeights) {
  VirtualSpec spec = eight_to_one(1);
  spec.bus_pkt_ns = 100;
  spec.bus_queues = 3;
  spec.bus_ring_pkts = 32;
  const std::vector<Arrival> arrivals = flood(60'000);
  const std::vector<uint64_t> alike =
      sent_by_flow(run_virtual(spec, arrivals), arrivals, 3, 400'000);
  EXPECT_NEAR(static_cast<double>(alike[0]), static_cast<double>(alike[1]), 2);
  EXPECT_NEAR(static_cast<double>(alike[2]), static_cast<double>(alike[1]), 2);
  // A link a little slower than the bus: 64 bytes in 105 ns.
  spec.rate_bps = 4'876'190'476;
  const std::vector<uint64_t> by_weight =
      sent_by_flow(run_virtual(spec, arrivals), arrivals, 3, 400'000);
  EXPECT_NEAR(static_cast<double>(by_weight[0]), 8 * static_cast<double>(by_weight[1]), 40);
}

TEST(VirtualArbiter, UnderOneLockNoBacklogFormsAndWeightsHaveNoEffect) {
  VirtualSpec spec = eight_to_one(30);
  const std::vector<Arrival> arrivals = flood(300'000);
  const auto share = [&](bool is_immediate) {
    spec.is_immediate = is_immediate;
    const std::vector<uint64_t> sent =
        sent_by_flow(run_virtual(spec, arrivals), arrivals, 3, 2'400'000);
    return static_cast<double>(sent[0]) / static_cast<double>(sent[1]);
  };
  EXPECT_NEAR(share(true), 1, 0.1);
  EXPECT_NEAR(share(false), 8, 0.2);
}

// Four times the arbiter's capacity: without backpressure it spends nearly all its time on packets
// that it refuses.
TEST(VirtualArbiter, BackpressureKeepsAFloodFromTakingItsTime) {
  VirtualSpec spec = eight_to_one(30);
  const std::vector<Arrival> arrivals = flood(300'000);
  const auto sent = [&](bool has_backpressure) {
    spec.has_backpressure = has_backpressure;
    uint64_t all = 0;
    for (const uint64_t pkts : sent_by_flow(run_virtual(spec, arrivals), arrivals, 3, 2'400'000)) {
      all += pkts;
    }
    return all;
  };
  EXPECT_GT(sent(true), 2'400'000 / 60 * 7 / 10);
  EXPECT_LT(sent(false), sent(true) / 2);
}

TEST(Backpressure, TellsRoomOfAFewFlowsInARound) {
  Backpressure pressure(10);
  for (uint32_t f = 0; f < 10; ++f) pressure.note_refused(f, 100);
  const auto n_full = [&] {
    uint32_t n = 0;
    for (uint32_t f = 0; f < 10; ++f) n += pressure.is_full(f) ? 1 : 0;
    return n;
  };
  for (uint32_t round = 0; round < 5; ++round) {
    EXPECT_EQ(n_full(), 10 - 2 * round);
    pressure.begin_round();
    for (uint32_t f = 0; f < 10; ++f) {
      pressure.note_left(f, 76);  // one short of a quarter of 100
      pressure.note_left(f, 75);
    }
  }
  EXPECT_EQ(n_full(), 0U);
  // A queue of a few packets is full until one has left.
  pressure.note_refused(3, 2);
  pressure.begin_round();
  pressure.note_left(3, 1);
  EXPECT_FALSE(pressure.is_full(3));
}

TEST(Backpressure, KeepsNoFlowOutThatHasNothingToRelease) {
  Backpressure pressure(4);
  // Other flows hold all the room.
  pressure.note_refused(0, 0);
  EXPECT_FALSE(pressure.is_full(0));
  // The last packet leaves in a round in which all the room was assigned to others.
  for (const uint32_t f : {1U, 2U, 3U}) pressure.note_refused(f, 200);
  pressure.begin_round();
  for (const uint32_t f : {1U, 2U}) pressure.note_left(f, 100);
  pressure.note_left(3, 1);
  EXPECT_TRUE(pressure.is_full(3));
  pressure.note_left(3, 0);
  EXPECT_FALSE(pressure.is_full(3));
}

TEST(VirtualArbiter, SaysWhatIsWrong) {
  const std::vector<Arrival> one{{0, 0, 64}};
  VirtualSpec spec = spec_of({1});
  EXPECT_THROW(run_virtual(spec, {{5, 0, 64}, {4, 0, 64}}), ConfigError);
  EXPECT_THROW(run_virtual(spec, {{5, 1, 64}}), ConfigError);
  spec.discipline = "none";
  EXPECT_THROW(run_virtual(spec, one), ConfigError);
  spec = spec_of({0});
  EXPECT_THROW(run_virtual(spec, one), ConfigError);
}

// Real threads: run_flat_out itself checks that nothing is lost.
TEST(FlatOut, EveryWayDeliversWhatWasSent) {
  using Way = FlatOutSpec::Way;
  for (const Way way : {Way::kArbiter, Way::kLock, Way::kAlone}) {
    for (const uint32_t at_once : {1U, 32U}) {
      const FlatOutResult result = run_flat_out({.way = way,
                                                 .clients = 2,
                                                 .at_once = at_once,
                                                 .dispatchers = way == Way::kArbiter ? 2U : 0U,
                                                 .copies = true,
                                                 .run_ns = 2'000'000});
      EXPECT_GT(result.took_ns, 0U);
    }
  }
  EXPECT_THROW(run_flat_out({.clients = 0}), ConfigError);
  EXPECT_THROW(run_flat_out({.discipline = "none"}), ConfigError);
}

}  // namespace virtual_arbiter_test
}  // namespace batchplane::egress
