// SPDX-License-Identifier: BSD-3-Clause
// mirror_test.cc - copies are sampled, cut and counted; originals are always forwarded.
#include <gtest/gtest.h>

#include "engine_rig.h"
#include "module_harness.h"

namespace batchplane {
namespace {

std::vector<Bytes> frames(uint16_t n) {
  std::vector<Bytes> all;
  for (uint16_t i = 0; i < n; ++i) all.push_back(make_frame({.port_src = i}));
  return all;
}

TEST(Mirror, CopiesLeaveByTheSecondGate) {
  ModuleHarness mirror("mirror");
  mirror.meta().vrf = 7;
  mirror.meta().in_interface = 3;
  const std::vector<Bytes> given = frames(40);
  const Outcome outcome = mirror.run(given);
  EXPECT_EQ(outcome.at(0), given);
  EXPECT_EQ(outcome.at(1), given);
  EXPECT_EQ(outcome.emitted[0].meta.vrf, 7);
  EXPECT_EQ(outcome.emitted[0].meta.in_interface, 3);
  EXPECT_EQ(outcome.emitted[0].meta.entry_ns, mirror.ctx().now_ns);
  EXPECT_EQ(mirror.ctx().originated_pkts, 40U);
  EXPECT_EQ(mirror.leaked_pkts(), 0U);
}

TEST(Mirror, CopiesHaveMarkAndDeparture) {
  ModuleHarness mirror("mirror");
  Packet* const pkt = mirror.make_packet(frames(1)[0]);
  pkt->set_mark(9);
  pkt->set_departure_ticks(1234);
  const Outcome outcome = mirror.run_packets({pkt});
  ASSERT_EQ(outcome.emitted.size(), 1U);
  EXPECT_EQ(outcome.emitted[0].mark, 9U);
  EXPECT_EQ(outcome.emitted[0].departure_ticks, 1234U);
}

TEST(Mirror, SamplesAcrossBatchesAndCuts) {
  ModuleHarness mirror("mirror", {{"sample_one_in", 5}, {"snap_bytes", 30}});
  std::vector<Bytes> copies;
  const std::vector<Bytes> given = frames(20);
  for (size_t from = 0, n = 1; from < given.size();
       from += n, n = std::min<size_t>(n + 1, 20 - from)) {
    const Outcome outcome = mirror.run(
        {given.begin() + static_cast<long>(from), given.begin() + static_cast<long>(from + n)});
    EXPECT_EQ(outcome.outputs.size(), n);
    for (const Bytes& copy : outcome.at(1)) copies.push_back(copy);
    if (from + n == given.size()) break;
  }
  ASSERT_EQ(copies.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(copies[i], Bytes(given[5 * i].begin(), given[5 * i].begin() + 30));
  }
}

TEST(Mirror, AnEmptyPoolHarmsNoOriginal) {
  ModuleHarness mirror("mirror");
  std::vector<Packet*> taken(ModuleHarness::kPoolPkts - 10);
  ASSERT_TRUE(mirror.pool().alloc_bulk(taken.data(), static_cast<uint32_t>(taken.size())));
  const std::vector<Bytes> given = frames(8);
  const Outcome outcome = mirror.run(given);
  EXPECT_EQ(outcome.at(0), given);
  EXPECT_EQ(outcome.at(1).size(), 2U);
  EXPECT_EQ(mirror.module().show()["copied_pkts"].as_int(), 2);
  EXPECT_EQ(mirror.module().show()["missed_pkts"].as_int(), 6);
  EXPECT_EQ(mirror.ctx().originated_pkts, 2U);
  PacketPool::free_bulk(taken.data(), static_cast<uint32_t>(taken.size()));
  EXPECT_EQ(mirror.leaked_pkts(), 0U);
}

TEST(Mirror, ALongPacketInItsHeadroomFits) {
  ModuleHarness mirror("mirror");
  Packet* full = mirror.make_packet(Bytes(2048, 7));
  full->push_front(kHeadroomBytes);
  std::memset(full->data(), 9, kHeadroomBytes);
  Packet* empty = mirror.make_packet({});
  const Outcome outcome = mirror.run_packets({full, empty});
  ASSERT_EQ(outcome.at(1).size(), 2U);
  EXPECT_EQ(outcome.at(1), outcome.at(0));
  EXPECT_EQ(outcome.at(1)[0].size(), 2048U + kHeadroomBytes);
}

TEST(Mirror, IsSetLive) {
  ModuleHarness mirror("mirror", {{"sample_one_in", 1'000'000}});
  EXPECT_EQ(mirror.run(frames(3)).at(1).size(), 1U);
  mirror.command("set", Dict{{"sample_one_in", 2}});
  EXPECT_EQ(mirror.run(frames(10)).at(1).size(), 5U);
  mirror.command("set", Dict{{"is_on", false}});
  EXPECT_EQ(mirror.run(frames(10)).at(1).size(), 0U);
  EXPECT_THROW(mirror.command("set", Dict{{"sample_one_in", 0}}), ConfigError);
  EXPECT_THROW(mirror.command("set", Dict{{"gate", 0}}), ConfigError);
  ModuleHarness next("mirror", mirror.module().saved_params());
  next.module().adopt(mirror.module());
  EXPECT_EQ(next.module().show()["copied_pkts"].as_int(), 6);
  EXPECT_EQ(next.module().show()["sample_one_in"].as_int(), 2);
}

// in -> mirror -> {out, copies}, with a buffer on the path of the copies.
PipelineSpec mirrored(uint32_t trigger_pkts) {
  PipelineSpec spec;
  spec.engine.is_idle_hold = true;
  spec.modules = {{"in", "source", {{"limit_pkts", 640}}},
                  {"m", "mirror", {{"sample_one_in", 3}}},
                  {"copies", "counter", {}, trigger_pkts},
                  {"out", "sink", {}}};
  spec.edges = {{"in", "0", "m"}, {"m", "0", "out"}, {"m", "1", "copies"}, {"copies", "0", "out"}};
  return spec;
}

TEST(Mirror, CopiesBalanceAsOriginatedPackets) {
  for (const uint32_t trigger_pkts : {0U, 17U}) {
    EngineRig rig(mirrored(trigger_pkts));
    rig.loop(30);
    const Snapshot snapshot = rig.balanced();
    EXPECT_EQ(snapshot.balance.in_pkts, 640U);
    EXPECT_EQ(snapshot.balance.originated_pkts, 214U);
    EXPECT_EQ(snapshot.balance.sent_pkts + snapshot.balance.held_pkts, 854U);
    EXPECT_EQ(snapshot.balance.dropped_pkts, 0U);
    rig.expect_pool_whole(snapshot);
  }
}

TEST(Mirror, CopiesThatLeadNowhereAreCountedAsDropped) {
  PipelineSpec spec = mirrored(0);
  spec.edges.resize(2);
  spec.modules.erase(spec.modules.begin() + 2);
  EngineRig rig(spec);
  rig.loop(30);
  const Snapshot snapshot = rig.balanced();
  EXPECT_EQ(snapshot.balance.sent_pkts, 640U);
  EXPECT_EQ(snapshot.balance.dropped_pkts, 214U);
  rig.expect_pool_whole(snapshot);
}

}  // namespace
}  // namespace batchplane
