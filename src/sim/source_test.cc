// SPDX-License-Identifier: BSD-3-Clause
// source_test.cc - generator and ring: schedules, waiting packets, refused packets, traces, edits.
#include "sim/source.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace batchplane::sim {
namespace source_test {

struct Rig {
  explicit Rig(SourceSpec spec) : source(std::move(spec), 0, pool, recorder) {}

  // Schedules start when the ring is first looked at.
  void start() { (void)poll(0, 0); }
  // Entry times of the packets that a poll at now_ns returns.
  std::vector<uint64_t> poll(uint64_t now_ns, uint32_t most = 256) {
    Packet* pkts[256];
    const uint32_t n = source.poll(pkts, most, now_ns);
    if (n != 0) source.note_room(now_ns + poll_ns);
    std::vector<uint64_t> entries;
    for (uint32_t i = 0; i < n; ++i) {
      entries.push_back(pkts[i]->entry_ns);
      flows.push_back(pkts[i]->flow);
      pool.put(pkts[i]);
    }
    return entries;
  }
  uint64_t refused(uint32_t flow = 0) { return source.counts()[flow].refused_pkts; }
  uint64_t sent(uint32_t flow = 0) { return source.counts()[flow].sent_pkts; }

  PacketPool pool;
  Recorder recorder;
  Source source;
  std::vector<uint32_t> flows;
  uint64_t poll_ns = 0;  // duration of a poll
};

SourceSpec every_microsecond() {
  SourceSpec spec;
  spec.name = "load";
  spec.flows = {{"a", 1, 0, 64}};
  spec.rate_pps = 1e6;
  spec.ring_pkts = 4;
  return spec;
}

using Times = std::vector<uint64_t>;

TEST(Source, PacketsAreThereWhenTheyAreDue) {
  Rig rig(every_microsecond());
  EXPECT_EQ(rig.poll(0), Times({0}));
  EXPECT_EQ(rig.poll(999), Times());
  EXPECT_EQ(rig.source.next_ns(), 1000U);
  EXPECT_EQ(rig.poll(2500), Times({1000, 2000}));
}

// A gap in the generator's time: packets due within it come at its end, all of them and with their
// own times.
TEST(Source, AGapDelaysPacketsDueWithinIt) {
  SourceSpec spec = every_microsecond();
  spec.ring_pkts = 64;
  spec.stalls = {2000, {20'500}};
  Stalls holes(spec.stalls, spec.seed * 41);
  Rig rig(spec);
  rig.start();
  uint64_t t = 0;
  for (int i = 0; i < 3; ++i) {
    const uint64_t begin_ns = holes.next_ns();
    const uint64_t end_ns = begin_ns + holes.take();
    if (holes.next_ns() < end_ns + 2000) break;  // another gap within it would lengthen it
    for (; t < begin_ns; t += 1000) (void)rig.poll(t);
    (void)rig.poll(begin_ns);
    EXPECT_EQ(rig.poll(end_ns - 1), Times()) << "hole " << i;
    const Times late = rig.poll(end_ns);
    EXPECT_GE(late.size(), 20U);
    EXPECT_EQ(late.front(), begin_ns / 1000 * 1000 + 1000);
    EXPECT_EQ(late.back(), end_ns / 1000 * 1000);
  }
  EXPECT_EQ(rig.refused(), 0U);
}

TEST(Source, AGapKeepsASaturatingGeneratorFromRefillingTheRing) {
  SourceSpec spec = every_microsecond();
  spec.is_saturating = true;
  spec.stalls = {2000, {20'500}};
  Stalls holes(spec.stalls, spec.seed * 41);
  Rig rig(spec);
  rig.start();
  const uint64_t begin_ns = holes.next_ns();
  const uint64_t end_ns = begin_ns + holes.take();
  ASSERT_GT(holes.next_ns(), end_ns);
  EXPECT_EQ(rig.poll(begin_ns - 1).size(), 4U);
  EXPECT_EQ(rig.poll(begin_ns + 1).size(), 4U) << "the ring was full when the hole began";
  EXPECT_EQ(rig.poll(end_ns - 1).size(), 0U);
  EXPECT_EQ(rig.poll(end_ns + 1).size(), 4U);
}

// Delay counts from a packet's due time: waiting for room hides nothing.
TEST(Source, WhatWaitsForRoomKeepsItsDueTime) {
  Rig rig(every_microsecond());
  rig.start();
  EXPECT_EQ(rig.poll(7'500), Times({0, 1000, 2000, 3000}));
  EXPECT_EQ(rig.source.held_pkts(), 4U);  // four more packets used the room
  EXPECT_EQ(rig.poll(7'600), Times({4000, 5000, 6000, 7000}));
  EXPECT_EQ(rig.refused(), 0U);
}

TEST(Source, WhatFindsNoRoomIsRefusedWhenSaidSo) {
  SourceSpec spec = every_microsecond();
  spec.drops_when_full = true;
  Rig rig(spec);
  rig.start();
  EXPECT_EQ(rig.poll(7'500), Times({0, 1000, 2000, 3000}));
  EXPECT_EQ(rig.refused(), 4U);
  EXPECT_EQ(rig.poll(8'000), Times({8000}));
  EXPECT_EQ(rig.sent(), 5U);
}

TEST(Source, WhatIsTooLateIsRefused) {
  SourceSpec spec = every_microsecond();
  spec.max_late_ns = 3'000;
  Rig rig(spec);
  rig.start();
  (void)rig.poll(9'500);  // room only now: 4000, 5000, 6000 are too late, 7000 .. 9000 go in
  EXPECT_EQ(rig.refused(), 3U);
  EXPECT_EQ(rig.poll(9'600), Times({7000, 8000, 9000}));
}

TEST(Source, BurstsAreOfOneFlowAndOneTime) {
  SourceSpec spec = every_microsecond();
  spec.flows = {{"a", 1, 0, 64}, {"b", 1, 0, 64}};
  spec.burst_pkts = 3;
  spec.ring_pkts = 64;
  Rig rig(spec);
  rig.start();
  EXPECT_EQ(rig.poll(6'500), Times({0, 0, 0, 3000, 3000, 3000, 6000, 6000, 6000}));
  EXPECT_EQ(rig.flows, std::vector<uint32_t>({0, 0, 0, 1, 1, 1, 0, 0, 0}));
}

TEST(Source, ASaturatingOneFillsTheRingAsRoomComes) {
  SourceSpec spec = every_microsecond();
  spec.is_saturating = true;
  spec.costs.per_pkt_ns = 10;
  Rig rig(spec);
  EXPECT_EQ(rig.poll(1'000), Times({0, 10, 20, 30}));
  // The generator saw the room at 1000 and takes 10 ns per packet.
  EXPECT_EQ(rig.poll(1'015), Times({1000, 1010}));
}

SourceSpec looks_every_300_ns() {
  SourceSpec spec = every_microsecond();
  spec.rate_pps = 1e7;
  spec.ring_pkts = 64;
  spec.costs.per_pkt_ns = 10;
  spec.costs.per_burst_ns = 100;
  spec.costs.look_ns = 300;
  return spec;
}

// Packets due at a look arrive together, when the last one is made.
TEST(Source, AGeneratorThatLooksNowAndThenPutsBurstsIntoTheRing) {
  Rig rig(looks_every_300_ns());
  EXPECT_EQ(rig.poll(0), Times());
  EXPECT_EQ(rig.source.next_ns(), 110U);
  EXPECT_EQ(rig.poll(109), Times());
  EXPECT_EQ(rig.poll(110), Times({0}));
  // It looks again at once, finds 100, and delivers it at 220; then 200, ...
  EXPECT_EQ(rig.poll(219), Times());
  EXPECT_EQ(rig.poll(220), Times({100}));
  EXPECT_EQ(rig.poll(330), Times({200}));
}

TEST(Source, BetweenLooksNothingComes) {
  SourceSpec spec = looks_every_300_ns();
  spec.rate_pps = 1e6;
  Rig rig(spec);
  EXPECT_EQ(rig.poll(0), Times());
  EXPECT_EQ(rig.poll(200), Times({0}));
  EXPECT_EQ(rig.source.next_ns(), 110U + 3 * 300);  // the first look after 1000
  EXPECT_EQ(rig.poll(1'119), Times());
  EXPECT_EQ(rig.poll(1'120), Times({1'000}));
}

TEST(Source, WhenTheRingIsFullItLooksForRoomNowAndThen) {
  SourceSpec spec = looks_every_300_ns();
  spec.is_saturating = true;
  spec.ring_pkts = 8;
  Rig rig(spec);
  EXPECT_EQ(rig.poll(0), Times());
  EXPECT_EQ(rig.poll(180), Times(8, 0));  // 100 + 8 * 10
  // It sees the room of 180 at once, and that of 1000 at the next look after 360.
  EXPECT_EQ(rig.poll(360), Times(8, 180));
  EXPECT_EQ(rig.poll(1'000), Times(8, 360));
  EXPECT_EQ(rig.poll(1'139), Times());
  EXPECT_EQ(rig.poll(1'140 + 180), Times(8, 1'140));
}

TEST(Source, RoomComesWithTheEndOfThePoll) {
  SourceSpec spec = looks_every_300_ns();
  spec.is_saturating = true;
  spec.ring_pkts = 8;
  Rig rig(spec);
  rig.poll_ns = 500;
  EXPECT_EQ(rig.poll(0), Times());
  EXPECT_EQ(rig.poll(180), Times(8, 0));
  // The looks of 180 and 480 find no room yet, the look of 780 does.
  EXPECT_EQ(rig.poll(959), Times());
  EXPECT_EQ(rig.poll(960), Times(8, 780));
}

TEST(Source, NoMoreThanABurstAtALook) {
  SourceSpec spec = looks_every_300_ns();
  spec.is_saturating = true;
  Rig rig(spec);
  (void)rig.poll(0);
  EXPECT_EQ(rig.poll(100 + 32 * 10).size(), exec::kGeneratorBurstPkts);
}

TEST(Source, FlowsWithARateOfTheirOwnKeepIt) {
  SourceSpec spec = every_microsecond();
  spec.ring_pkts = 1 << 14;
  spec.flows = {{"a", 1, 0, 64}, {"b", 1, 250'000, 64}, {"c", 3, 0, 64}, {"d", 1, 500'000, 64}};
  Rig rig(spec);
  for (uint64_t t = 0; t < 4'000'000; t += 100'000) (void)rig.poll(t), (void)rig.poll(t);
  while (!rig.poll(3'999'999).empty()) {
  }
  EXPECT_EQ(rig.sent(0), 1000U);  // a and c share 1 Mpps, one to three
  EXPECT_EQ(rig.sent(1), 1000U);
  EXPECT_EQ(rig.sent(2), 3000U);
  EXPECT_EQ(rig.sent(3), 2000U);
  rig.source.set_flow_rate("b", 1'000'000, 4'000'000);
  for (uint64_t t = 4'000'000; t < 5'000'000; t += 50'000) (void)rig.poll(t);
  while (!rig.poll(4'999'999).empty()) {
  }
  EXPECT_NEAR(static_cast<double>(rig.sent(1)), 2000, 4);
  try {
    rig.source.set_flow_rate("a", 1, 0);
    FAIL() << "a has no rate of its own";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.where(), "generators.load");
    EXPECT_NE(error.fix(), "");
  }
}

TEST(Source, ATraceIsPlayedAsItIs) {
  SourceSpec spec = every_microsecond();
  spec.flows = {{"a", 1, 0, 64}, {"b", 1, 0, 64}};
  spec.trace = {{5, 5, 1'700}, {1, 0, 1}, {100, 200, 300}};
  Rig rig(spec);
  rig.start();
  EXPECT_EQ(rig.poll(10), Times({5, 5}));
  EXPECT_EQ(rig.source.next_ns(), 1'700U);
  EXPECT_EQ(rig.poll(2'000), Times({1'700}));
  EXPECT_EQ(rig.flows, std::vector<uint32_t>({1, 0, 1}));
  EXPECT_EQ(rig.source.counts()[1].sent_bytes, 400U);
  EXPECT_EQ(rig.source.next_ns(), exec::kNeverNs);
}

TEST(Source, ASaturatingTraceKeepsItsOrderAndBeginsAnew) {
  SourceSpec spec = every_microsecond();
  spec.flows = {{"a", 1, 0, 64}, {"b", 1, 0, 64}};
  spec.trace = {{5, 5, 1'700}, {1, 0, 1}, {100, 200, 300}};
  spec.is_saturating = true;
  Rig rig(spec);
  // As many as the ring has room for, whatever the trace says.
  EXPECT_EQ(rig.poll(3), Times({0, 0, 0, 0}));
  EXPECT_EQ(rig.poll(9), Times({3, 3, 3, 3}));  // put in when the poll made room
  EXPECT_EQ(rig.flows, std::vector<uint32_t>({1, 0, 1, 1, 0, 1, 1, 0}));
  EXPECT_EQ(rig.sent(0), 4U);
  EXPECT_EQ(rig.source.counts()[1].sent_bytes % 100, 0U);
  EXPECT_LT(rig.source.next_ns(), exec::kNeverNs);
}

TEST(Source, SwitchedOffNothingComesAndOnItBeginsAnew) {
  Rig rig(every_microsecond());
  rig.start();
  EXPECT_EQ(rig.poll(1'500).size(), 2U);
  rig.source.set_on(false, 2'500);
  EXPECT_EQ(rig.poll(50'000), Times({2000}));  // due before the edit
  EXPECT_EQ(rig.source.next_ns(), exec::kNeverNs);
  rig.source.set_on(true, 60'000);
  EXPECT_EQ(rig.poll(60'000), Times({60'000}));
  EXPECT_EQ(rig.poll(61'000), Times({61'000}));
}

TEST(Source, AHigherRateTakesEffectAtOnce) {
  SourceSpec spec = every_microsecond();
  spec.rate_pps = 10;
  Rig rig(spec);
  EXPECT_EQ(rig.poll(0).size(), 1U);
  rig.source.set_rate(1e6, 5'000);
  EXPECT_EQ(rig.poll(7'000), Times({5'000, 6'000, 7'000}));
  rig.source.set_rate(0, 7'000);
  EXPECT_EQ(rig.poll(1'000'000), Times());
}

TEST(Source, AsManyAsItIsLimitedTo) {
  SourceSpec spec = every_microsecond();
  spec.limit_pkts = 3;
  Rig rig(spec);
  rig.start();
  EXPECT_EQ(rig.poll(100'000), Times({0, 1000, 2000}));
  EXPECT_EQ(rig.poll(200'000), Times());
  EXPECT_EQ(rig.source.next_ns(), exec::kNeverNs);
}

TEST(Source, WeightsThatMakeNoSenseAreRefused) {
  Rig rig(every_microsecond());
  EXPECT_THROW(rig.source.set_weights({1, 2}), ConfigError);
  EXPECT_THROW(rig.source.set_weights({0}), ConfigError);
  EXPECT_THROW(rig.source.set_weights({-1}), ConfigError);
  EXPECT_NO_THROW(rig.source.set_weights({2}));
}

}  // namespace source_test
}  // namespace batchplane::sim
