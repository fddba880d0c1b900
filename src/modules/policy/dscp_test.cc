// SPDX-License-Identifier: BSD-3-Clause
// dscp_test.cc - setting, mapping and splitting by DSCP, for IPv4 and IPv6.
#include <gtest/gtest.h>

#include "module_harness.h"
#include "modules/policy/dscp_field.h"

namespace batchplane {
namespace {

Bytes frame4(uint32_t dscp, uint32_t ecn = 1) {
  Bytes frame = make_frame();
  frame[net::kEthBytes + 1] = static_cast<uint8_t>(dscp << 2 | ecn);
  mend_ipv4_checksum(frame);
  return frame;
}

Bytes frame6(uint32_t dscp) {
  Bytes frame(74);
  net::store16(&frame[12], net::kTypeIpv6);
  net::store32(&frame[14], 6U << 28 | dscp << 22 | 2U << 20 | 0x12345);
  return frame;
}

Bytes arp_frame() {
  Bytes frame = make_frame();
  net::store16(&frame[12], net::kTypeArp);
  return frame;
}

TEST(Dscp, EveryValueToEveryOtherWithAGoodChecksum) {
  for (uint32_t to = 0; to < 64; ++to) {
    ModuleHarness harness("dscp", {{"to", std::to_string(to)}});
    std::vector<Bytes> frames;
    for (uint32_t from = 0; from < 64; ++from) frames.push_back(frame4(from, from % 4));
    const Outcome outcome = harness.run(frames);
    ASSERT_EQ(outcome.outputs.size(), 64U);
    for (uint32_t from = 0; from < 64; ++from)
      EXPECT_EQ(outcome.outputs[from].bytes, frame4(to, from % 4));
    EXPECT_EQ(harness.module().show()["changed_pkts"].as_int(), 63);
  }
}

TEST(Dscp, Ipv6KeepsItsFlowLabel) {
  ModuleHarness harness("dscp", {{"to", "af41"}});
  EXPECT_EQ(harness.run({frame6(46)}).at(0), std::vector<Bytes>{frame6(34)});
}

TEST(Dscp, TheMapGoesBeforeTheRest) {
  ModuleHarness harness("dscp", {{"map", List{Dict{{"from", "ef"}, {"to", "cs5"}}}}});
  EXPECT_EQ(harness.run({frame4(46), frame4(10), arp_frame()}).at(0),
            (std::vector<Bytes>{frame4(40), frame4(10), arp_frame()}));
  (void)harness.command("set", Dict{{"to", 0}, {"map", List{Dict{{"from", 10}, {"to", 12}}}}});
  EXPECT_EQ(harness.run({frame4(46), frame4(10)}).at(0),
            (std::vector<Bytes>{frame4(0), frame4(12)}));
  ModuleHarness again("dscp", harness.module().saved_params());
  EXPECT_EQ(again.run({frame4(46), frame4(10)}).at(0), (std::vector<Bytes>{frame4(0), frame4(12)}));
}

TEST(Dscp, ShortPacketsAreDroppedNeverRead) {
  for (const char* kind : {"dscp", "dscp_split"}) {
    ModuleHarness harness(
        kind, kind == std::string("dscp") ? Dict{{"to", "ef"}} : Dict{{"default_gate", 0}});
    std::vector<Bytes> frames;
    for (uint32_t len = 0; len <= 34; ++len) {
      frames.push_back(frame4(0));
      frames.back().resize(len);
    }
    for (uint32_t len = 15; len <= 54; ++len) {
      frames.push_back(frame6(0));
      frames.back().resize(len);
    }
    EXPECT_EQ(harness.run(frames).dropped_for("too_short"), 34U + 39U) << kind;
  }
}

TEST(Dscp, BadInput) {
  const auto refused = [](const Dict& params) {
    EXPECT_THROW(ModuleHarness("dscp", params), ConfigError);
  };
  refused({{"to", "af14"}});
  refused({{"to", "64"}});
  refused({{"map", List{Dict{{"from", 1}}}}});
  refused({{"map", List{Dict{{"from", 1}, {"to", 64}}}}});
  refused({{"map", List{Dict{{"from", 1}, {"to", 2}}, Dict{{"from", 1}, {"to", 3}}}}});
  ModuleHarness harness("dscp", {{"to", "ef"}});
  EXPECT_THROW((void)harness.command("set", Dict{{"dscp", 1}}), ConfigError);
  EXPECT_THROW((void)harness.command("set", Dict{{"to", "fast"}}), ConfigError);
  EXPECT_THROW((void)harness.command("add", Dict{}), ConfigError);
  EXPECT_EQ(harness.run({frame4(0)}).at(0), std::vector<Bytes>{frame4(46)});
}

TEST(DscpSplit, ByValueAndDefault) {
  ModuleHarness harness(
      "dscp_split",
      {{"rules", List{Dict{{"dscp", "ef"}, {"gate", 2}}, Dict{{"dscp", 10}, {"gate", 1}}}}});
  const Outcome outcome = harness.run({frame4(46), frame6(10), frame4(0), arp_frame(), frame6(46)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{2, 1, 2}));
  EXPECT_EQ(outcome.dropped_for("no_match"), 2U);
  (void)harness.command("add", Dict{{"dscp", "be"}, {"gate", 1}});
  (void)harness.command("delete", Dict{{"dscp", 46}});
  const Outcome after = harness.run({frame4(46), frame4(0)});
  EXPECT_EQ(after.gates(), std::vector<uint32_t>{1});
  EXPECT_EQ(harness.command("list")["rules"].as_list().size(), 2U);
  EXPECT_THROW((void)harness.command("add", Dict{{"dscp", 1}, {"gate", 3}}), ConfigError);
  EXPECT_THROW((void)harness.command("add", Dict{{"dscp", 99}, {"gate", 0}}), ConfigError);
  EXPECT_THROW((void)harness.command("delete", Dict{{"dscp", 46}}), ConfigError);
}

TEST(DscpSplit, NonIpPacketsGoToTheDefaultGate) {
  ModuleHarness harness("dscp_split", {{"default_gate", 3}});
  EXPECT_EQ(harness.run({arp_frame(), frame4(1)}).gates(), (std::vector<uint32_t>{3, 3}));
}

}  // namespace
}  // namespace batchplane
