// SPDX-License-Identifier: BSD-3-Clause
// vlan_test.cc - pushing, popping and splitting by tags; the network header offset stays correct.
#include <gtest/gtest.h>

#include <random>

#include "module_harness.h"

namespace batchplane {
namespace {

// `tags`: (type, TCI) pairs, outer first.
Bytes tagged(const std::vector<std::pair<uint16_t, uint16_t>>& tags, Bytes frame = make_frame()) {
  size_t at = 12;
  for (const auto& [type, tci] : tags) {
    const uint8_t bytes[] = {static_cast<uint8_t>(type >> 8), static_cast<uint8_t>(type),
                             static_cast<uint8_t>(tci >> 8), static_cast<uint8_t>(tci)};
    frame.insert(frame.begin() + static_cast<std::ptrdiff_t>(at), bytes, bytes + 4);
    at += 4;
  }
  return frame;
}
Bytes vlan(uint16_t vid) { return tagged({{0x8100, vid}}); }
Bytes qinq(uint16_t outer, uint16_t inner) { return tagged({{0x88a8, outer}, {0x8100, inner}}); }
Bytes cut(Bytes frame, size_t len_bytes) {
  frame.resize(len_bytes);
  return frame;
}
std::string refusal(ModuleHarness& harness, const std::string& verb, const Value& args) {
  try {
    harness.command(verb, args);
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}

TEST(VlanPush, PutsTheTagInFrontAndMovesTheHeaders) {
  ModuleHarness push("vlan_push", {{"vid", 100}, {"pcp", 5}, {"dei", true}});
  push.meta().l4_offset_bytes = 34;
  const Outcome outcome = push.run({make_frame(), vlan(7)});
  EXPECT_EQ(outcome.at(0)[0], tagged({{0x8100, 0xb064}}));
  EXPECT_EQ(outcome.at(0)[1], tagged({{0x8100, 0xb064}, {0x8100, 7}}));
  EXPECT_EQ(outcome.outputs[0].meta.l3_offset_bytes, 18);
  EXPECT_EQ(outcome.outputs[0].meta.l4_offset_bytes, 38);
  EXPECT_EQ(outcome.outputs[1].meta.l3_offset_bytes, 22);
  EXPECT_EQ(push.leaked_pkts(), 0U);
}

TEST(VlanPush, ServiceTagMayTakeThePriorityOfTheInnerOne) {
  ModuleHarness push("vlan_push", {{"vid", 2}, {"pcp", -1}, {"tpid", "0x88a8"}});
  const Outcome outcome = push.run({tagged({{0x8100, 0xc005}}), make_frame()});
  EXPECT_EQ(outcome.at(0)[0], tagged({{0x88a8, 0xc002}, {0x8100, 0xc005}}));
  EXPECT_EQ(outcome.at(0)[1], tagged({{0x88a8, 2}}));
}

TEST(VlanPush, RefusesWhatIsShortDeepLongOrWithoutRoom) {
  ModuleHarness push("vlan_push", {{"vid", 1}}, 1, nullptr, kMaxFrameBytes + 64);
  std::vector<Bytes> frames;
  for (uint32_t len = 0; len < 14; ++len) frames.push_back(cut(make_frame(), len));
  frames.push_back(cut(vlan(5), 14));  // a tag cut after its type
  frames.push_back(cut(vlan(5), 17));
  frames.push_back(qinq(1, 2));
  frames.push_back(make_frame({.len_bytes = kMaxFrameBytes - 3}));
  frames.push_back(make_frame({.len_bytes = kMaxFrameBytes - 4}));
  const Outcome outcome = push.run(frames);
  EXPECT_EQ(outcome.dropped_for("too_short"), 16U);
  EXPECT_EQ(outcome.dropped_for("too_many_tags"), 1U);
  EXPECT_EQ(outcome.dropped_for("frame_too_long"), 1U);
  ASSERT_EQ(outcome.at(0).size(), 1U);
  Packet* full = push.make_packet(make_frame());
  full->push_front(kHeadroomBytes - 3);
  EXPECT_EQ(push.run_packets({full}).dropped_for("no_headroom"), 1U);
}

TEST(VlanPush, IsSetLive) {
  ModuleHarness push("vlan_push", {{"vid", 1}});
  push.command("set", Dict{{"vid", 9}, {"tpid", "0x88a8"}});
  EXPECT_EQ(push.run({make_frame()}).at(0)[0], tagged({{0x88a8, 9}}));
  EXPECT_NE(refusal(push, "set", Dict{{"vid", 4095}}), "");
  EXPECT_NE(refusal(push, "set", Dict{{"max_tags", 3}}), "");
  EXPECT_NE(refusal(push, "set", Dict{}), "");
  EXPECT_NE(refusal(push, "add", Dict{{"vid", 3}}), "");
  EXPECT_EQ(push.module().saved_params().at("vid").as_int(), 9);
  EXPECT_EQ(push.run({make_frame()}).at(0)[0], tagged({{0x88a8, 9}}));
}

TEST(VlanPop, TakesOneTagOrAll) {
  ModuleHarness one("vlan_pop");
  one.meta().l3_offset_bytes = 18;
  one.meta().l4_offset_bytes = 38;
  Outcome outcome = one.run({vlan(5), qinq(1, 2)});
  EXPECT_EQ(outcome.at(0)[0], make_frame());
  EXPECT_EQ(outcome.at(0)[1], vlan(2));
  EXPECT_EQ(outcome.outputs[0].meta.l3_offset_bytes, 14);
  EXPECT_EQ(outcome.outputs[0].meta.l4_offset_bytes, 34);
  EXPECT_EQ(outcome.outputs[1].meta.l3_offset_bytes, 18);
  ModuleHarness all("vlan_pop", {{"tags", "all"}});
  outcome = all.run({vlan(5), qinq(1, 2)});
  EXPECT_EQ(outcome.at(0), (std::vector<Bytes>{make_frame(), make_frame()}));
  EXPECT_EQ(outcome.outputs[1].meta.l3_offset_bytes, 14);
}

TEST(VlanPop, UntaggedNestedAndShortFrames) {
  const Bytes three = tagged({{0x88a8, 1}, {0x8100, 2}, {0x8100, 3}});
  std::vector<Bytes> frames = {make_frame(), three, vlan(3)};
  for (uint32_t len = 0; len <= 21; ++len) frames.push_back(cut(vlan(4), len));
  ModuleHarness strict("vlan_pop");
  Outcome outcome = strict.run(frames);
  EXPECT_EQ(outcome.dropped_for("not_tagged"), 1U);
  EXPECT_EQ(outcome.dropped_for("too_many_tags"), 1U);
  EXPECT_EQ(outcome.dropped_for("too_short"), 18U);  // all frames that end before the inner type
  EXPECT_EQ(outcome.at(0).size(), 5U);
  EXPECT_EQ(outcome.at(0)[1], cut(make_frame(), 14));
  ModuleHarness lenient("vlan_pop", {{"untagged", "pass"}, {"max_tags", 3}, {"tags", "all"}});
  outcome = lenient.run({make_frame(), three});
  EXPECT_EQ(outcome.at(0), (std::vector<Bytes>{make_frame(), make_frame()}));
}

TEST(VlanPop, UndoesPushWhateverTheFrame) {
  ModuleHarness push("vlan_push", {{"vid", 77}});
  ModuleHarness pop("vlan_pop");
  for (uint32_t len = 14; len < 80; ++len) {
    const Bytes frame = make_frame({.len_bytes = std::max(len, 60U)});
    const Bytes given = cut(frame, len);
    EXPECT_EQ(pop.run(push.run({given}).at(0)).at(0).at(0), given);
  }
}

Dict rule(int vid, int gate) { return {{"vid", vid}, {"gate", gate}}; }
Dict rule(int vid, int inner, int gate) {
  return {{"vid", vid}, {"inner_vid", inner}, {"gate", gate}};
}

TEST(VlanSplit, SendsByOuterAndInnerVlan) {
  ModuleHarness split("vlan_split",
                      {{"rules", List{rule(10, 1), rule(20, 2), rule(10, 5, 3), rule(30, 6, 1)}}});
  const Outcome outcome =
      split.run({vlan(10), vlan(20), qinq(10, 5), qinq(10, 6), qinq(30, 6),
                 tagged({{0x8100, 0xe00a}}), vlan(11), qinq(30, 7), vlan(30), make_frame(),
                 tagged({{0x8100, 10}, {0x8100, 1}, {0x8100, 1}}), cut(vlan(10), 17)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 2, 3, 1, 1, 1}));
  EXPECT_EQ(outcome.dropped_for("no_match"), 3U);
  EXPECT_EQ(outcome.dropped_for("not_tagged"), 1U);
  EXPECT_EQ(outcome.dropped_for("too_many_tags"), 1U);
  EXPECT_EQ(outcome.dropped_for("too_short"), 1U);
  EXPECT_EQ(outcome.outputs[0].bytes, vlan(10));
  EXPECT_EQ(outcome.outputs[0].meta.l3_offset_bytes, 18);
  EXPECT_EQ(outcome.outputs[2].meta.l3_offset_bytes, 22);
}

TEST(VlanSplit, PopsWhatTheRuleNamesAndSetsTheVrf) {
  Dict first = rule(10, 0);
  first["vrf"] = 3;
  Dict both = rule(10, 5, 1);
  both["vrf"] = 65535;
  ModuleHarness split("vlan_split", {{"rules", List{first, both, rule(20, 2)}}, {"pop", true}});
  split.meta().vrf = 9;
  const Outcome outcome = split.run({vlan(10), qinq(10, 5), qinq(10, 6), vlan(20)});
  ASSERT_EQ(outcome.gates(), (std::vector<uint32_t>{0, 1, 0, 2}));
  EXPECT_EQ(outcome.outputs[0].bytes, make_frame());
  EXPECT_EQ(outcome.outputs[1].bytes, make_frame());
  EXPECT_EQ(outcome.outputs[2].bytes, vlan(6));
  EXPECT_EQ(outcome.outputs[3].bytes, make_frame());
  const uint16_t vrfs[] = {3, 65535, 3, 9};
  const uint8_t l3[] = {14, 14, 18, 14};
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(outcome.outputs[i].meta.vrf, vrfs[i]);
    EXPECT_EQ(outcome.outputs[i].meta.l3_offset_bytes, l3[i]);
  }
}

TEST(VlanSplit, DefaultAndUntaggedGatesLeaveFramesAlone) {
  ModuleHarness split(
      "vlan_split",
      {{"rules", List{rule(10, 0)}}, {"pop", true}, {"default_gate", 1}, {"untagged_gate", 2}});
  const Outcome outcome = split.run({vlan(11), make_frame(), cut(make_frame(), 13)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(outcome.outputs[0].bytes, vlan(11));
  EXPECT_EQ(outcome.dropped_for("too_short"), 1U);
}

TEST(VlanSplit, APriorityTagIsNoTag) {
  const Dict rules{{"rules", List{Dict{{"vid", 5}, {"gate", 0}}}}, {"untagged_gate", 1}};
  ModuleHarness split("vlan_split", rules, 2);
  const Outcome outcome =
      split.run({vlan(0xe000), vlan(0), qinq(0, 5), tagged({{0x8100, 0}, {0x8100, 0}}), vlan(9)});
  EXPECT_EQ(outcome.at(1), std::vector<Bytes>(3, make_frame()));
  EXPECT_EQ(outcome.at(0), std::vector<Bytes>{vlan(5)});
  EXPECT_EQ(outcome.dropped_for("no_match"), 1U);
  for (const Output& output : outcome.outputs) {
    EXPECT_EQ(output.meta.l3_offset_bytes, output.gate == 1 ? 14 : 18);
  }
  ModuleHarness without("vlan_split", {{"rules", rules.at("rules")}});
  EXPECT_EQ(without.run({vlan(0x2000)}).dropped_for("not_tagged"), 1U);
}

TEST(VlanSplit, LiveEditsAreWholeOrNothing) {
  ModuleHarness split("vlan_split", {{"rules", List{rule(10, 0)}}}, 3);
  split.command("add", Dict{{"items", List{rule(11, 1), rule(12, 4, 2), rule(10, 1)}}});
  EXPECT_EQ(split.run({vlan(10), vlan(11), qinq(12, 4)}).gates(), (std::vector<uint32_t>{1, 1, 2}));
  const Value before = split.command("list");
  EXPECT_EQ(before["rules"].as_list().size(), 3U);
  for (const Value& bad :
       {Value(rule(4095, 0)), Value(rule(1, 3)), Value(Dict{{"vid", 3}}), Value(Dict{{"gate", 1}}),
        Value(Dict{{"vid", 3}, {"gate", 0}, {"vrf", 65536}}),
        Value(Dict{{"vid", 3}, {"gate", 0}, {"colour", 1}}), Value(List{rule(50, 0), rule(50, 1)}),
        Value(List{rule(50, 0), Dict{}})}) {
    EXPECT_NE(refusal(split, "add", bad), "");
  }
  EXPECT_NE(refusal(split, "delete", List{rule(99, 0)}), "");
  EXPECT_NE(refusal(split, "delete", List{Dict{{"vid", 10}}, Dict{{"vid", 99}}}), "");
  EXPECT_EQ(split.command("list"), before);
  split.command("delete", Dict{{"vid", 12}, {"inner_vid", 4}});
  EXPECT_EQ(split.run({qinq(12, 4)}).dropped_for("no_match"), 1U);
  split.command("replace", Dict{{"rules", List{rule(7, 2)}}});
  EXPECT_EQ(split.run({vlan(7), vlan(10)}).gates(), std::vector<uint32_t>{2});
  EXPECT_EQ(split.module().saved_params().at("rules").as_list().size(), 1U);
}

TEST(VlanSplit, HoldsEveryVlanAndAgreesWithASlowTable) {
  std::mt19937 random(3);
  List rules;
  std::map<std::pair<int, int>, int> oracle;
  for (int vid = 0; vid <= 4094; ++vid) {
    if (vid % 5 == 4) continue;
    rules.push_back(rule(vid, vid % 64));
    oracle[{vid, -1}] = vid % 64;
  }
  for (int i = 0; i < 3000; ++i) {
    const int vid = static_cast<int>(random() % 4095);
    const int inner = static_cast<int>(random() % 20);
    const int gate = static_cast<int>(random() % 64);
    if (oracle.emplace(std::pair{vid, inner}, gate).second) rules.push_back(rule(vid, inner, gate));
  }
  ModuleHarness split("vlan_split", {{"rules", rules}, {"default_gate", 64}});
  for (int round = 0; round < 100; ++round) {
    std::vector<Bytes> frames;
    std::vector<uint32_t> expected;
    for (int i = 0; i < 100; ++i) {
      const auto vid = static_cast<uint16_t>(random() % 4095);
      const auto inner = static_cast<uint16_t>(random() % 20);
      const bool is_double = random() % 2 != 0;
      frames.push_back(is_double ? qinq(vid, inner) : vlan(vid));
      auto it = oracle.find({vid, is_double ? inner : -1});
      if (it == oracle.end()) it = oracle.find({vid, -1});
      expected.push_back(it == oracle.end() ? 64 : static_cast<uint32_t>(it->second));
    }
    ASSERT_EQ(split.run(frames).gates(), expected);
  }
}

TEST(SetMeta, NotesWhatIsAskedFor) {
  ModuleHarness set("set_meta", {{"vrf", 5}});
  set.meta().tunnel_id = 8;
  Outcome outcome = set.run({make_frame(), {}});
  EXPECT_EQ(outcome.outputs[0].meta.vrf, 5);
  EXPECT_EQ(outcome.outputs[1].meta.vrf, 5);
  EXPECT_EQ(outcome.outputs[0].meta.tunnel_id, 8U);
  EXPECT_EQ(outcome.outputs[0].meta.flags & kMetaMarked, 0);
  set.command("set", Dict{{"mark", 0xffffffffU}, {"tunnel_id", 1}});
  Packet* pkt = set.make_packet(make_frame());
  Packet* pkts[] = {pkt};
  set.info().run(&set.module(), set.ctx(), pkts, 1);
  EXPECT_EQ(pkt->mark(), 0xffffffffU);
  EXPECT_EQ(pkt->meta().tunnel_id, 1U);
  EXPECT_EQ(pkt->meta().vrf, 5);
  set.ctx().free(pkt);
  EXPECT_NE(refusal(set, "set", Dict{{"vrf", 65536}}), "");
  EXPECT_EQ(set.module().saved_params().at("mark").as_int(), 0xffffffffU);
}

}  // namespace
}  // namespace batchplane
