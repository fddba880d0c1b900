// SPDX-License-Identifier: BSD-3-Clause
// fragment_test.cc - fragments add up to the original packet; DF packets stay whole.
#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "module_harness.h"
#include "modules/route/route_commands.h"

namespace batchplane {
namespace {

Bytes long_frame(uint32_t len_bytes, uint16_t fragment = 0, uint32_t options_bytes = 0) {
  Bytes frame = make_frame({.len_bytes = len_bytes, .options_bytes = options_bytes});
  for (uint32_t i = 34 + options_bytes; i < len_bytes; ++i)
    frame[i] = static_cast<uint8_t>(i * 7 + (i >> 8));
  net::store16(&frame[20], fragment);
  mend_ipv4_checksum(frame);
  return frame;
}

// Checks each fragment, then reassembles them.
Bytes joined(const std::vector<Bytes>& parts, uint32_t mtu_bytes, uint32_t first_offset = 0) {
  Bytes payload;
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint8_t* ip = &parts[i][14];
    const uint32_t header_bytes = (ip[0] & 15U) * 4;
    const uint32_t total = net::load16(ip + 2);
    EXPECT_EQ(parts[i].size(), 14 + total);
    EXPECT_LE(total, mtu_bytes);
    EXPECT_EQ(net::checksum_finish(net::checksum_add(ip, header_bytes)), 0);
    EXPECT_EQ((net::load16(ip + 6) & 0x1fffU) * 8, first_offset * 8 + payload.size());
    if (i + 1 < parts.size()) {
      EXPECT_NE(net::load16(ip + 6) & 0x2000, 0);
    }
    payload.insert(payload.end(), ip + header_bytes, ip + total);
  }
  return payload;
}

TEST(Fragment, CutsAtAnyMtuAndLosesNothing) {
  for (const int mtu : {68, 100, 576, 1003, 1280, 1499}) {
    ModuleHarness fragment("fragment", {{"mtu_bytes", mtu}});
    for (const uint32_t len : {60U, 82U, 83U, 590U, 591U, 1020U, 1514U}) {
      const Bytes whole = long_frame(len);
      const std::vector<Bytes> parts = fragment.run({whole}).at(0);
      ASSERT_EQ(joined(parts, static_cast<uint32_t>(mtu)), Bytes(whole.begin() + 34, whole.end()));
      ASSERT_EQ(net::load16(&parts.back()[20]) & 0x2000, 0);
      if (len - 14 <= static_cast<uint32_t>(mtu)) {
        EXPECT_EQ(parts, std::vector<Bytes>{whole});
      }
    }
    EXPECT_EQ(fragment.leaked_pkts(), 0U);
  }
}

TEST(Fragment, FragmentsAreCutFurther) {
  ModuleHarness fragment("fragment", {{"mtu_bytes", 576}});
  const Bytes middle = long_frame(1514, 0x2000 | 185);
  const std::vector<Bytes> parts = fragment.run({middle}).at(0);
  EXPECT_EQ(joined(parts, 576, 185), Bytes(middle.begin() + 34, middle.end()));
  EXPECT_NE(net::load16(&parts.back()[20]) & 0x2000, 0);
}

TEST(Fragment, FragmentsHaveThePacketsMarkAndDeparture) {
  ModuleHarness fragment("fragment", {{"mtu_bytes", 576}});
  // Packets that come from the pool again have what others have left in them.
  (void)fragment.run(std::vector<Bytes>(8, long_frame(100)));
  Packet* const pkt = fragment.make_packet(long_frame(1514));
  pkt->set_mark(77);
  pkt->set_departure_ticks(1234);
  const Outcome outcome = fragment.run_packets({pkt});
  ASSERT_EQ(outcome.emitted.size() + outcome.outputs.size(), 3U);
  for (const auto* list : {&outcome.emitted, &outcome.outputs}) {
    for (const Output& output : *list) {
      EXPECT_EQ(output.mark, 77U);
      EXPECT_EQ(output.departure_ticks, 1234U);
    }
  }
}

TEST(Fragment, OptionsAreCopiedAsTheySay) {
  ModuleHarness fragment("fragment", {{"mtu_bytes", 576}});
  Bytes frame = long_frame(1214, 0, 12);
  const Bytes options = {0x94, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0, 0};  // router alert, record route
  std::ranges::copy(options, frame.begin() + 34);
  mend_ipv4_checksum(frame);
  const std::vector<Bytes> parts = fragment.run({frame}).at(0);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0][14], 0x48);
  EXPECT_EQ(parts[1][14], 0x46);
  EXPECT_EQ(Bytes(parts[1].begin() + 34, parts[1].begin() + 38),
            Bytes(options.begin(), options.begin() + 4));
  EXPECT_EQ(joined(parts, 576), Bytes(frame.begin() + 46, frame.end()));
}

TEST(Fragment, LeavesAloneWhatMayNotBeCut) {
  ModuleHarness fragment("fragment", {{"mtu_bytes", 576}});
  const Bytes whole = long_frame(1514, 0x4000);
  EXPECT_EQ(fragment.run({whole}).at(0), std::vector<Bytes>{whole});
  ModuleHarness strict("fragment", {{"mtu_bytes", 576}, {"df", "drop"}});
  EXPECT_EQ(strict.run({whole}).dropped_for("mtu_exceeded"), 1U);
}

TEST(Fragment, TheMtuIsThatOfTheNextHopsInterface) {
  Environment env;
  env.interfaces.push_back({.name = "lan", .index = 0});
  env.interfaces.push_back({.name = "wan", .index = 1, .mtu_bytes = 600});
  const auto table = shared_route_table(env, "main");
  table->build({.max_prefixes = 16, .max_next_hops = 8});
  table->hops().set(0, {.interface = 0});
  table->hops().set(1, {.interface = 1});
  ModuleHarness fragment("fragment", {{"table", "main"}}, 1, &env);
  EXPECT_EQ(fragment.run({long_frame(1514)}).at(0).size(), 1U);
  fragment.meta().next_hop = 1;
  EXPECT_EQ(fragment.run({long_frame(1514)}).at(0).size(), 3U);
  fragment.meta().next_hop = 7;
  EXPECT_EQ(fragment.run({long_frame(1514)}).at(0).size(), 1U);
  EXPECT_THROW(ModuleHarness("fragment", {}), ConfigError);
  EXPECT_THROW(ModuleHarness("fragment", {{"mtu_bytes", 67}}), ConfigError);
}

TEST(Fragment, RunsOutOfRoomWithoutLosingCount) {
  ModuleHarness fragment("fragment", {{"mtu_bytes", 68}});
  const Outcome outcome = fragment.run(std::vector<Bytes>(60, long_frame(1514)));
  EXPECT_EQ(outcome.dropped_for("fragment_no_room") + outcome.outputs.size(), 60U);
  EXPECT_GT(outcome.dropped_for("fragment_no_room"), 0U);
  EXPECT_EQ(outcome.emitted.size() % 30, 0U);
  EXPECT_EQ(fragment.leaked_pkts(), 0U);
}

TEST(Fragment, GarbageIsNeverReadBeyondItsEnd) {
  ModuleHarness fragment("fragment", {{"mtu_bytes", 100}});
  Rng rng(3);
  const Bytes good = long_frame(300, 0, 8);
  EXPECT_EQ(fragment.run({Bytes(33), Bytes{}}).dropped_for("too_short"), 2U);
  for (uint32_t round = 0; round < 3000; ++round) {
    Bytes frame(good.begin(), good.begin() + rng.below(301));
    for (uint32_t k = 0; k < 3 && !frame.empty(); ++k)
      frame[rng.below(std::min<uint32_t>(60, static_cast<uint32_t>(frame.size())))] =
          static_cast<uint8_t>(rng.next());
    fragment.run({frame});
  }
  EXPECT_EQ(fragment.leaked_pkts(), 0U);
}

}  // namespace
}  // namespace batchplane
