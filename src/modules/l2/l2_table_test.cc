// SPDX-License-Identifier: BSD-3-Clause
// l2_table_test.cc - frames by destination MAC, live entries, short frames.
#include <gtest/gtest.h>

#include "module_harness.h"

namespace batchplane {
namespace {

Dict entry(const std::string& mac, int gate) { return Dict{{"mac", mac}, {"gate", gate}}; }

Bytes frame_to(uint8_t last) {
  FrameSpec spec;
  spec.dst = {2, 0, 0, 0, 0, last};
  return make_frame(spec);
}

Dict two_entries() {
  return {{"entries", List{entry("02:00:00:00:00:01", 1), entry("02:00:00:00:00:02", 0)}}};
}

TEST(L2Table, SendsByDestination) {
  ModuleHarness harness("l2_table", two_entries());
  const Outcome outcome = harness.run({frame_to(1), frame_to(2), frame_to(3), frame_to(1)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 0, 1}));
  EXPECT_EQ(outcome.dropped_for("unknown_mac"), 1U);
}

TEST(L2Table, ShortFramesNeverReachAGate) {
  Dict params = two_entries();
  params["default_gate"] = 1;
  ModuleHarness harness("l2_table", params);
  std::vector<Bytes> frames;
  for (uint32_t len = 0; len <= 20; ++len) {
    Bytes frame = frame_to(1);
    frame.resize(len);
    frames.push_back(frame);
  }
  const Outcome outcome = harness.run(frames);
  EXPECT_EQ(outcome.dropped_for("too_short"), 14U);
  EXPECT_EQ(outcome.at(1).size(), 7U);
}

TEST(L2Table, TheZeroAddressIsAnAddress) {
  ModuleHarness harness("l2_table", {{"entries", List{entry("00:00:00:00:00:00", 2)}}});
  FrameSpec zero;
  zero.dst = {};
  EXPECT_EQ(harness.run({make_frame(zero)}).gates(), (std::vector<uint32_t>{2}));
  ModuleHarness without("l2_table", two_entries());
  EXPECT_EQ(without.run({make_frame(zero)}).dropped_for("unknown_mac"), 1U);
}

TEST(L2Table, LiveEdits) {
  ModuleHarness harness("l2_table", two_entries(), 3);
  harness.command(
      "add", Dict{{"items", List{entry("02:00:00:00:00:03", 2), entry("02:00:00:00:00:01", 2)}}});
  EXPECT_EQ(harness.run({frame_to(3), frame_to(1)}).gates(), (std::vector<uint32_t>{2, 2}));
  harness.command("delete", Dict{{"mac", "02:00:00:00:00:03"}});
  EXPECT_EQ(harness.run({frame_to(3)}).dropped_for("unknown_mac"), 1U);
  EXPECT_EQ(harness.module().show()["entries"].as_int(), 2);
  harness.command("replace", Dict{{"entries", List{}}});
  EXPECT_EQ(harness.run({frame_to(1)}).dropped_for("unknown_mac"), 1U);
  EXPECT_TRUE(harness.command("list")["entries"].as_list().empty());
}

TEST(L2Table, RefusesBadEntries) {
  EXPECT_THROW(ModuleHarness("l2_table", {{"entries", List{entry("02:00", 0)}}}), ConfigError);
  EXPECT_THROW(ModuleHarness("l2_table", {{"entries", List{entry("02:00:00:00:00:01", -1)}}}),
               ConfigError);
  ModuleHarness harness("l2_table", two_entries());
  EXPECT_THROW(harness.command("add", entry("02:00:00:00:00:09", 2)), ConfigError);
  EXPECT_THROW(harness.command("delete", Dict{{"mac", "02:00:00:00:00:09"}}), ConfigError);
}

}  // namespace
}  // namespace batchplane
