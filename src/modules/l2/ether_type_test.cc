// SPDX-License-Identifier: BSD-3-Clause
// ether_type_test.cc - frames by EtherType at every batch size, live rules, priority tags, short
// frames.
#include <gtest/gtest.h>

#include "module_harness.h"

namespace batchplane {
namespace {

Dict rule(Value type, int gate) { return Dict{{"ether_type", std::move(type)}, {"gate", gate}}; }

Bytes frame_of(uint16_t type) {
  Bytes frame = make_frame();
  net::store16(&frame[12], type);
  return frame;
}

Dict three_rules() { return {{"rules", List{rule("ipv4", 0), rule("arp", 2), rule("0x86dd", 1)}}}; }

TEST(EtherType, EveryBatchSize) {
  ModuleHarness harness("ether_type", three_rules());
  constexpr uint16_t kTypes[] = {0x0800, 0x0806, 0x86dd, 0x8100};
  constexpr uint32_t kGates[] = {0, 2, 1};
  for (uint32_t n = 1; n <= 256; n = n < 40 ? n + 1 : n + 24) {
    std::vector<Bytes> frames;
    std::vector<uint32_t> expected;
    uint32_t n_other = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t pick = i * 7 % 5 % 4;
      frames.push_back(frame_of(kTypes[pick]));
      if (pick == 3) {
        ++n_other;
      } else {
        expected.push_back(kGates[pick]);
      }
    }
    const Outcome outcome = harness.run(frames);
    EXPECT_EQ(outcome.gates(), expected) << n;
    EXPECT_EQ(outcome.dropped_for("no_match"), n_other) << n;
  }
}

TEST(EtherType, ShortFramesAreDroppedDespiteADefault) {
  ModuleHarness harness("ether_type", {{"rules", List{rule(0, 1)}}, {"default_gate", 0}});
  std::vector<Bytes> frames;
  for (uint32_t len = 0; len <= 16; ++len) frames.push_back(Bytes(len, 9));
  const Outcome outcome = harness.run(frames);
  EXPECT_EQ(outcome.dropped_for("too_short"), 14U);
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{0, 0, 0}));
}

// A tag of VLAN 0 carries only a priority (IEEE 802.1Q).
TEST(EtherType, APriorityTagIsNoTag) {
  const auto with_tag = [](uint16_t control) {
    Bytes frame = make_frame();
    const uint8_t tag[] = {0x81, 0, static_cast<uint8_t>(control >> 8),
                           static_cast<uint8_t>(control)};
    frame.insert(frame.begin() + 12, tag, tag + 4);
    return frame;
  };
  ModuleHarness harness("ether_type", three_rules());
  const Outcome outcome =
      harness.run({make_frame(), with_tag(0xa000), with_tag(0), with_tag(7), frame_of(0x0806)});
  EXPECT_EQ(outcome.at(0), (std::vector<Bytes>{make_frame(), make_frame(), make_frame()}));
  EXPECT_EQ(outcome.at(2).size(), 1U);
  EXPECT_EQ(outcome.dropped_for("no_match"), 1U);
  EXPECT_EQ(outcome.outputs[1].meta.l3_offset_bytes, 14);
  // With a rule for tagged frames they pass unchanged.
  ModuleHarness tags("ether_type", {{"rules", List{rule("vlan", 0)}}});
  EXPECT_EQ(tags.run({with_tag(0xa000)}).at(0), std::vector<Bytes>{with_tag(0xa000)});
}

TEST(EtherType, LiveEdits) {
  ModuleHarness harness("ether_type", three_rules());
  harness.command("add", rule("vlan", 1));
  EXPECT_EQ(harness.run({frame_of(0x8100)}).gates(), (std::vector<uint32_t>{1}));
  harness.command("delete", Dict{{"ether_type", "0x8100"}});
  EXPECT_EQ(harness.run({frame_of(0x8100)}).dropped_for("no_match"), 1U);
  harness.command("replace", Dict{{"rules", List{rule(0x0806, 0)}}});
  const Outcome outcome = harness.run({frame_of(0x0806), frame_of(0x0800)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{0}));
  EXPECT_EQ(outcome.dropped_for("no_match"), 1U);
  EXPECT_EQ(harness.command("list")["rules"].as_list().size(), 1U);
}

TEST(EtherType, RefusesBadRules) {
  EXPECT_THROW(ModuleHarness("ether_type", {{"rules", List{rule("ipx", 0)}}}), ConfigError);
  EXPECT_THROW(ModuleHarness("ether_type", {{"rules", List{rule(0x10000, 0)}}}), ConfigError);
  EXPECT_THROW(ModuleHarness("ether_type", {{"rules", List{rule("ipv4", 0), rule(0x0800, 1)}}}),
               ConfigError);
  List many;
  for (int i = 0; i < 33; ++i) many.push_back(rule(i, 0));
  EXPECT_THROW(ModuleHarness("ether_type", {{"rules", many}}), ConfigError);
}

}  // namespace
}  // namespace batchplane
