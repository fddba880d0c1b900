// SPDX-License-Identifier: BSD-3-Clause
// policer_test.cc - colours against a simple model of the RFCs, meters per flow and other keys, and
// actions.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "module_harness.h"

namespace batchplane {
namespace {

// 8 Mbit/s is one byte per microsecond: tokens come 2 bytes every 2 us.
Dict single_rate() { return {{"cir_bps", 8'000'000}, {"cbs_bytes", 1000}, {"ebs_bytes", 500}}; }
Bytes frame_of(uint32_t ip_bytes, uint32_t dscp = 0, uint16_t port = 1) {
  Bytes frame = make_frame({.port_src = port, .len_bytes = net::kEthBytes + ip_bytes});
  frame[net::kEthBytes + 1] = static_cast<uint8_t>(dscp << 2);
  mend_ipv4_checksum(frame);
  return frame;
}
std::string colours_of(ModuleHarness& harness, const std::vector<Bytes>& frames) {
  std::string text;
  for (const Bytes& frame : frames) {
    const Value before = harness.module().show();
    (void)harness.run({frame});
    const Value after = harness.module().show();
    for (const char* name : {"green", "yellow", "red"}) {
      const std::string key = std::string(name) + "_pkts";
      if (after[key] == before[key]) continue;
      text += name[0];
    }
  }
  return text;
}

TEST(Policer, SingleRateBurstsThenTheRate) {
  ModuleHarness harness("policer", single_rate());
  EXPECT_EQ(colours_of(harness, std::vector<Bytes>(8, frame_of(250))), "ggggyyrr");
  harness.set_now_ns(1'000'000 + 250'000);
  EXPECT_EQ(colours_of(harness, std::vector<Bytes>(2, frame_of(250))), "gr");
  const Value shown = harness.module().show();
  EXPECT_EQ(shown["green_bytes"].as_int(), 5 * 250);
  EXPECT_EQ(shown["red_pkts"].as_int(), 3);
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

TEST(Policer, TwoRates) {
  ModuleHarness harness("policer", {{"mode", "trtcm"},
                                    {"cir_bps", 8'000'000},
                                    {"cbs_bytes", 500},
                                    {"pir_bps", 16'000'000},
                                    {"pbs_bytes", 1000}});
  EXPECT_EQ(colours_of(harness, std::vector<Bytes>(5, frame_of(250))), "ggyyr");
  harness.set_now_ns(1'000'000 + 250'000);  // 250 committed, 500 peak
  EXPECT_EQ(colours_of(harness, std::vector<Bytes>(3, frame_of(250))), "gyr");
}

// Token buckets in bytes x ns, so token counts are exact at any time that is a whole number of
// steps.
struct Model {
  bool is_two_rate;
  int64_t committed, second, committed_burst, second_burst, committed_per_us, peak_per_us;
  char mark(int64_t elapsed_us, int64_t bytes, char colour) {
    const int64_t whole = committed + elapsed_us * committed_per_us;
    committed = std::min(whole, committed_burst);
    second = std::min(second_burst,
                      second + (is_two_rate ? elapsed_us * peak_per_us : whole - committed));
    if (is_two_rate) {
      if (colour == 'r' || second < bytes) return 'r';
      second -= bytes;
      if (colour == 'y' || committed < bytes) return 'y';
      committed -= bytes;
      return 'g';
    }
    if (colour == 'g' && committed >= bytes) return committed -= bytes, 'g';
    if (colour != 'r' && second >= bytes) return second -= bytes, 'y';
    return 'r';
  }
};

TEST(Policer, RandomTrafficAgainstTheModel) {
  static constexpr uint32_t kDscps[] = {0, 12, 14};  // green, yellow, red on arrival
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const bool is_two_rate = seed % 2 == 0;
    const bool is_aware = seed % 3 == 0;
    const int64_t cir = 1 + rng.below(20);
    const int64_t pir = cir + rng.below(20);
    Model model{is_two_rate, 3000 + rng.below(4000), 3000 + rng.below(4000), 0, 0, cir, pir};
    model.committed_burst = model.committed;
    model.second_burst = model.second;
    ModuleHarness harness("policer", {{"mode", is_two_rate ? "trtcm" : "srtcm"},
                                      {"cir_bps", cir * 8'000'000},
                                      {"pir_bps", pir * 8'000'000},
                                      {"cbs_bytes", model.committed},
                                      {"ebs_bytes", model.second},
                                      {"pbs_bytes", model.second},
                                      {"colour_aware", is_aware},
                                      {"red_action", "permit"}});
    uint64_t now_ns = 1'000'000;
    for (uint32_t i = 0; i < 300; ++i) {
      const uint32_t elapsed_us = 2 * rng.below(200);
      now_ns += uint64_t{elapsed_us} * 1000;
      harness.set_now_ns(now_ns);
      const uint32_t bytes = 46 + rng.below(1400);
      const uint32_t arrives = rng.below(3);
      const char before = is_aware ? "gyr"[arrives] : 'g';
      const char expected = model.mark(elapsed_us, bytes, before);
      ASSERT_EQ(colours_of(harness, {frame_of(bytes, kDscps[arrives])}), std::string(1, expected))
          << "seed " << seed << " packet " << i;
    }
  }
}

TEST(Policer, WhatHasAMeterOfItsOwn) {
  for (const char* per : {"mark", "vrf", "flow"}) {
    Dict params = single_rate();
    params["per"] = per;
    params["meters"] = 64;
    ModuleHarness harness("policer", params);
    std::vector<Packet*> pkts;
    for (uint32_t i = 0; i < 60; ++i) {
      pkts.push_back(harness.make_packet(frame_of(500, 0, static_cast<uint16_t>(i % 10))));
      pkts.back()->set_mark(i % 10);
      pkts.back()->meta().vrf = static_cast<uint16_t>(i % 10);
    }
    const Outcome outcome = harness.run_packets(pkts);
    const Value shown = harness.module().show();
    if (per == std::string("flow")) {
      EXPECT_GT(shown["green_pkts"].as_int(), 14);  // a few of ten flows may share a meter
    } else {
      EXPECT_EQ(shown["green_pkts"].as_int(), 20) << per;
      EXPECT_EQ(shown["yellow_pkts"].as_int(), 10) << per;
      EXPECT_EQ(outcome.dropped_for("policer_red"), 30U) << per;
    }
  }
}

TEST(Policer, ActionsByColour) {
  Dict params = single_rate();
  params["green_action"] = "dscp ef";
  params["yellow_action"] = "dscp af12";
  ModuleHarness harness("policer", params);
  const Outcome outcome = harness.run(std::vector<Bytes>(6, frame_of(400)));
  EXPECT_EQ(outcome.at(0),
            (std::vector<Bytes>{frame_of(400, 46), frame_of(400, 46), frame_of(400, 12)}));
  EXPECT_EQ(outcome.dropped_for("policer_red"), 3U);
  (void)harness.command("set", Dict{{"yellow_action", "drop"}, {"green_action", "drop"}});
  harness.set_now_ns(1'000'000'000'000);
  const Outcome dropped = harness.run(std::vector<Bytes>(3, frame_of(400)));
  EXPECT_EQ(dropped.dropped_for("policer_green"), 2U);
  EXPECT_EQ(dropped.dropped_for("policer_yellow"), 1U);
}

TEST(Policer, OverheadCounts) {
  Dict params = single_rate();
  params["overhead_bytes"] = 38;
  ModuleHarness harness("policer", params);
  (void)harness.run({frame_of(462)});
  EXPECT_EQ(harness.module().show()["green_bytes"].as_int(), 500);
}

TEST(Policer, ShortPacketsAreDroppedTheOthersPass) {
  Dict params = single_rate();
  params["per"] = "flow";
  params["colour_aware"] = true;
  params["green_action"] = "dscp 1";
  ModuleHarness harness("policer", params);
  std::vector<Bytes> frames;
  for (uint32_t len = 0; len <= 60; ++len) {
    frames.push_back(make_frame());
    frames.back().resize(len);
  }
  const Outcome outcome = harness.run(frames);
  EXPECT_EQ(outcome.dropped_for("too_short"), 14U);
  EXPECT_EQ(outcome.outputs.size() + outcome.drops.size(), 61U);
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

TEST(Policer, BucketsOutliveAnApply) {
  ModuleHarness first("policer", single_rate());
  (void)first.run(std::vector<Bytes>(8, frame_of(250)));
  ModuleHarness second("policer", single_rate());
  second.module().inherit(first.module());
  second.module().adopt(first.module());
  EXPECT_EQ(colours_of(second, {frame_of(250)}), "r");
  EXPECT_EQ(second.module().show()["green_pkts"].as_int(), 4);
}

TEST(Policer, BadInput) {
  const auto refused = [](Dict more) {
    Dict params = single_rate();
    params.merge(more);
    for (const auto& [key, value] : more) params[key] = value;
    EXPECT_THROW(ModuleHarness("policer", params), ConfigError);
  };
  EXPECT_THROW(ModuleHarness("policer", Dict{}), ConfigError);
  refused({{"red_action", "mark"}});
  refused({{"red_action", "dscp 64"}});
  refused({{"cbs_bytes", 1}});
  refused({{"mode", "trtcm"}, {"pir_bps", 4'000'000}});
  refused({{"mode", "trtcm"}, {"pbs_bytes", 1}});
  refused({{"yellow_dscps", List{"af13"}}});
  refused({{"per", "port"}});
  ModuleHarness harness("policer", single_rate());
  EXPECT_THROW((void)harness.command("set", Dict{{"cir", 1}}), ConfigError);
  EXPECT_THROW((void)harness.command("set", Dict{{"cir_bps", 1}}), ConfigError);
  EXPECT_THROW((void)harness.command("set", Dict{{"cbs_bytes", 1}}), ConfigError);
  EXPECT_THROW((void)harness.command("reset", Dict{}), ConfigError);
  (void)harness.command("set", Dict{{"cir_bps", 16'000'000}});
  EXPECT_EQ(harness.module().saved_params()["cir_bps"].as_int(), 16'000'000);
  EXPECT_EQ(harness.module().saved_params()["cbs_bytes"].as_int(), 1000);
}

}  // namespace
}  // namespace batchplane
