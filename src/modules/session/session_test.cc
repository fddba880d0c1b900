// SPDX-License-Identifier: BSD-3-Clause
// session_test.cc - what bearers may send and what they use, and how sessions are written.
#include <gtest/gtest.h>

#include <set>

#include "modules/session/session.h"
#include "modules/session/session_layout.h"
#include "modules/session/session_rules.h"
#include "modules/session/session_test_util.h"

namespace batchplane {
namespace session_test {

using session::format_flow_description;
using session::format_session;
using session::parse_flow_description;
using session::parse_session;

// The modules on one user's path, all on one table.
struct Way {
  Environment env;
  ModuleHarness downlink;
  ModuleHarness enforce;

  explicit Way(const Dict& session)
      : downlink("session_downlink", {{"sessions", List{session}}}, 1, &env),
        enforce("session_enforce", {}, 1, &env) {}

  Packet* found(const Bytes& frame) {
    Packet* pkt = enforce.make_packet(frame);
    Packet* probe = downlink.make_packet(frame);
    Packet* pkts[] = {probe};
    Batch batch{pkts, 1, 0};
    downlink.info().run(&downlink.module(), downlink.ctx(), batch.pkts, 1);
    if (pkts[0] != nullptr) {
      pkt->set_mark(pkts[0]->mark());
      downlink.ctx().free(pkts[0]);
    }
    downlink.ctx().n_dropped = downlink.ctx().n_fates = downlink.ctx().n_removed = 0;
    return pkt;
  }
  // How many of n packets pass at `now_ns`.
  uint32_t passed(const Bytes& frame, uint32_t n, uint64_t now_ns,
                  const std::string& reason = "qer_rate") {
    enforce.set_now_ns(now_ns);
    std::vector<Packet*> pkts;
    for (uint32_t i = 0; i < n; ++i) pkts.push_back(found(frame));
    const Outcome outcome = enforce.run_packets(std::move(pkts));
    EXPECT_EQ(outcome.dropped_for(reason), n - outcome.outputs.size());
    return static_cast<uint32_t>(outcome.outputs.size());
  }
  Value row() { return enforce.command("list", Dict{{"seid", 1}})["sessions"].as_list().at(0); }
};

// A 100-byte frame has 86 IP bytes: at 688 kbit/s that is one packet per millisecond.
constexpr int kOnePerMs = 688'000;
constexpr uint64_t kMs = 1'000'000;

TEST(SessionEnforce, KeepsABearersRate) {
  Way way(with_qers(test_session(),
                    {Dict{{"id", 1}, {"mbr_down_bps", kOnePerMs}, {"burst_ns", 10'000'000}}}, {1},
                    {}));
  const uint64_t start = 1000 * kMs;
  // The burst of 10 ms, and the packet that finds the meter exactly at its limit.
  EXPECT_EQ(way.passed(downlink_frame(), 100, start), 11U);
  EXPECT_EQ(way.passed(downlink_frame(), 10, start + kMs / 2), 0U);
  EXPECT_EQ(way.passed(downlink_frame(), 10, start + 5 * kMs), 5U);
  uint32_t passed = 0;
  for (uint64_t ms = 6; ms <= 1005; ++ms) {
    passed += way.passed(downlink_frame(), 3, start + ms * kMs);
  }
  EXPECT_EQ(passed, 1000U);
  // Another bearer of the same user has no limit.
  EXPECT_EQ(way.passed(downlink_frame(5000), 50, start + 1005 * kMs), 50U);
}

TEST(SessionEnforce, ARateChangesLiveAndGoesWithItsRule) {
  const Dict slow{{"id", 1}, {"mbr_down_bps", kOnePerMs}, {"burst_ns", 1000}};
  Way way(with_qers(test_session(), {slow}, {1}, {}));
  auto in_100_ms = [&way, ms = uint64_t{100}](uint32_t each) mutable {
    uint32_t passed = 0;
    for (const uint64_t end = ms + 100; ms < end; ++ms) {
      passed += way.passed(downlink_frame(), each, ms * kMs);
    }
    return passed;
  };
  EXPECT_NEAR(in_100_ms(3), 100, 1);
  way.enforce.command(
      "modify",
      Dict{{"seid", 1}, {"qers", List{Dict{{"id", 1}, {"mbr_down_bps", kOnePerMs / 2}}}}});
  EXPECT_NEAR(in_100_ms(3), 50, 1);
  way.enforce.command("modify",
                      Dict{{"seid", 1}, {"pdrs", List{Dict{{"id", 2}, {"qers", List{}}}}}});
  EXPECT_EQ(in_100_ms(3), 300U);
  // A new rule in the slot of a limited one is not limited.
  way.enforce.command("add", with_qers(test_session(), {slow}, {1}, {}));
  EXPECT_NEAR(in_100_ms(3), 100, 1);
  way.enforce.command("delete", Dict{{"seid", 1}});
  way.enforce.command("add", test_session());
  EXPECT_EQ(in_100_ms(3), 300U);
}

TEST(SessionEnforce, ASharedRateIsThatOfAllItsBearersTogether) {
  const Dict shared{{"id", 7}, {"mbr_down_bps", 2 * kOnePerMs}, {"burst_ns", 1000}};
  const Dict own{{"id", 1}, {"mbr_down_bps", kOnePerMs}, {"burst_ns", 1000}};
  Way way(with_qers(test_session(), {shared, own}, {1, 7}, {7}));
  uint32_t special = 0;
  uint32_t plain = 0;
  for (uint64_t ms = 100; ms < 1100; ++ms) {
    plain += way.passed(downlink_frame(), 3, ms * kMs);
    special += way.passed(downlink_frame(5000), 3, ms * kMs + kMs / 2);
  }
  EXPECT_LE(plain, 1001U);
  EXPECT_NEAR(plain + special, 2000U, 5);
}

TEST(SessionEnforce, ClosedGatesAndFarsThatDrop) {
  Way way(with_qers(test_session(), {Dict{{"id", 1}, {"gate_down", "closed"}}}, {1}, {}));
  EXPECT_EQ(way.passed(downlink_frame(), 3, kMs, "qer_gate"), 0U);
  EXPECT_EQ(way.passed(downlink_frame(5000), 3, kMs), 3U);
  const Dict drop{{"seid", 1}, {"fars", List{Dict{{"id", 2}, {"action", "drop"}}}}};
  way.enforce.command("modify", drop);
  EXPECT_EQ(way.passed(downlink_frame(5000), 3, kMs, "far_drop"), 0U);
  way.enforce.command("modify",
                      Dict{{"seid", 1}, {"qers", List{Dict{{"id", 1}, {"gate_down", "open"}}}}});
  EXPECT_EQ(way.passed(downlink_frame(), 3, kMs), 3U);
}

TEST(SessionEnforce, CountsUseBySessionAndUsageRule) {
  Way way(test_session());
  EXPECT_EQ(way.passed(downlink_frame(), 3, kMs), 3U);
  // The frame's padding is not counted as usage.
  Bytes padded = downlink_frame(5000, kTestUe, 40);
  padded.resize(60);
  EXPECT_EQ(way.passed(padded, 2, kMs), 2U);
  const Value row = way.row();
  EXPECT_EQ(row["down_pkts"].as_int(), 5);
  EXPECT_EQ(row["down_bytes"].as_int(), 3 * 86 + 2 * 26);
  EXPECT_EQ(row["up_pkts"].as_int(), 0);
  EXPECT_EQ(row["urrs"].as_list()[0]["down_bytes"].as_int(), 3 * 86 + 2 * 26);
  EXPECT_EQ(row["urrs"].as_list()[1]["down_bytes"].as_int(), 2 * 26);
}

TEST(SessionEnforce, AModifiedSessionKeepsItsCounts) {
  Way way(test_session());
  EXPECT_EQ(way.passed(downlink_frame(), 3, kMs), 3U);
  Packet* before = way.found(downlink_frame());
  way.enforce.command(
      "modify",
      Dict{{"seid", 1}, {"fars", List{Dict{{"id", 1}, {"teid", 1}, {"peer", "192.0.2.9"}}}}});
  EXPECT_EQ(way.enforce.run_packets({before}).outputs.size(), 1U);
  EXPECT_EQ(way.row()["down_pkts"].as_int(), 4);
}

TEST(SessionEnforce, APacketOfADeletedSessionIsNotCountedForItsSuccessor) {
  Way way(test_session());
  Packet* before = way.found(downlink_frame());
  way.enforce.command("delete", Dict{{"seid", 1}});
  way.enforce.command("add", test_session());
  EXPECT_EQ(way.enforce.run_packets({before}).dropped_for("session_gone"), 1U);
  EXPECT_EQ(way.row()["down_pkts"].as_int(), 0);
  EXPECT_EQ(way.passed(downlink_frame(), 2, kMs), 2U);
}

TEST(SessionSyntax, ASessionReadsAsItWasWritten) {
  Dict given = with_qers(test_session(),
                         {Dict{{"id", 1},
                               {"qfi", 9},
                               {"gate_up", "closed"},
                               {"mbr_up_bps", 5000},
                               {"burst_ns", 77'000}}},
                         {1}, {});
  given["ue6"] = "2001:db8:45:2::/64";
  given["group"] = 3;
  given["bar"] = Dict{{"hold_pkts", 9}};
  given["urrs"] = List{Dict{{"id", 1}, {"volume_bytes", 7}, {"time_ns", 5'000'000}},
                       Dict{{"id", 2}, {"up_bytes", 8}, {"down_bytes", 9}}};
  const Dict once = format_session(parse_session(given, "x"));
  EXPECT_EQ(Value(once), Value(format_session(parse_session(once, "x"))));
  EXPECT_EQ(once.at("ue6").as_string(), "2001:db8:45:2::/64");
  given["fars"] = List{
      Dict{{"id", 0}}, Dict{{"id", 1}, {"teid", 1}, {"peer", "2001:db8::2"}},
      Dict{{"id", 2}, {"teid", 2}, {"peer", "192.0.2.2"}, {"action", "buffer"}, {"notify", false}}};
  const Dict again = format_session(parse_session(given, "x"));
  EXPECT_EQ(Value(again), Value(format_session(parse_session(again, "x"))));
  EXPECT_EQ(again.at("fars").as_list()[2]["action"].as_string(), "buffer");
  EXPECT_FALSE(again.at("fars").as_list()[2]["notify"].as_bool());
  EXPECT_EQ(again.at("bar")["hold_pkts"].as_int(), 9);
  EXPECT_EQ(again.at("urrs").as_list()[0]["time_ns"].as_int(), 5'000'000);
  EXPECT_EQ(again.at("urrs").as_list()[1]["down_bytes"].as_int(), 9);
  EXPECT_EQ(format_session(parse_session(given, "x")).at("fars").as_list()[1]["peer"].as_string(),
            "2001:db8::2");
  EXPECT_EQ(once.at("qers").as_list()[0]["burst_ns"].as_int(), 77'000);
}

TEST(SessionSyntax, FlowDescriptions) {
  for (const char* text :
       {"permit out ip from any to assigned", "permit out udp from 198.51.100.0/24 53 to assigned",
        "permit out tcp from 10.0.0.1 to 10.45.0.2 1000-2000",
        "permit out 132 from any 1-2 to assigned 3"}) {
    EXPECT_EQ(format_flow_description(parse_flow_description(text, "x")), text);
  }
  for (const char* text :
       {"", "deny out ip from any to any", "permit in ip from any to any", "permit out ip from any",
        "permit out ip from any to", "permit out x from any to any",
        "permit out 256 from any to any", "permit out ip from 10.0.0.1/33 to any",
        "permit out ip from 10.0.0.1/24 to any", "permit out udp from any 70000 to any",
        "permit out udp from any 9-8 to any", "permit out udp from any 9- to any",
        "permit out udp from any to any 1 2"}) {
    EXPECT_NE(refusal_of([&] { (void)parse_flow_description(text, "here"); }).find("here"),
              std::string::npos)
        << text;
  }
}

TEST(SessionSyntax, EachMistakeSaysWhere) {
  const auto refusal = [](const std::function<void(Dict&)>& spoil) {
    Dict session = test_session();
    spoil(session);
    return refusal_of([&] { (void)parse_session(session, "s"); });
  };
  const auto set = [](const char* key, const Value& value) {
    return [key, value](Dict& session) { session[key] = value; };
  };
  EXPECT_EQ(refusal([](Dict&) {}), "");
  EXPECT_NE(refusal(set("ue", "10.45.0")).find("s.ue: expected"), std::string::npos);
  EXPECT_NE(refusal(set("ue6", "2001:db8::/48")).find("s.ue6"), std::string::npos);
  EXPECT_NE(refusal(set("seid", 0)).find("s.seid"), std::string::npos);
  EXPECT_NE(refusal(set("group", 4096)).find("s.group"), std::string::npos);
  EXPECT_NE(refusal(set("pdrs", List{})).find("without rules"), std::string::npos);
  EXPECT_NE(refusal(set("fars", List{})).find("no far 0"), std::string::npos);
  EXPECT_NE(refusal(set("urrs", List{})).find("no urr 1"), std::string::npos);
  EXPECT_NE(refusal(set("colour", 1)).find("unknown key 'colour'"), std::string::npos);
  EXPECT_NE(refusal([](Dict& session) { session.erase("ue"); }).find("user's address"),
            std::string::npos);
  const Dict double_far{{"id", 0}};
  EXPECT_NE(refusal(set("fars", List{double_far, double_far})).find("fars[1]"), std::string::npos);
  Dict no_teid = test_pdr(1, "access", 0);
  EXPECT_NE(refusal(set("pdrs", List{no_teid})).find("pdrs[0].teid"), std::string::npos);
  Dict downlink_teid = test_pdr(1, "core", 0);
  downlink_teid["teid"] = 5;
  EXPECT_NE(refusal(set("pdrs", List{downlink_teid})).find("no tunnel endpoint"),
            std::string::npos);
}

TEST(SessionMeters, RatesAreExactToOneInTenThousand) {
  for (const uint64_t bps : {1000ULL, 64'000ULL, 1'000'000'000ULL, 100'000'000'000ULL}) {
    const session::MeterRate rate = session::meter_rate(bps, 5);
    const double ns = static_cast<double>(1500 * rate.cost >> 10) / 256;
    EXPECT_NEAR(ns, 1500 * 8e9 / static_cast<double>(bps),
                1500 * 8e9 / static_cast<double>(bps) * 1e-3)
        << bps;
  }
  EXPECT_EQ(session::meter_rate(0, 5).cost, 0U);
}

TEST(SessionMeters, OneWordSaysTheSame) {
  for (uint64_t bps = 1; bps <= 1'000'000'000'000; bps *= 7) {
    for (const uint64_t burst_ns : {1000ULL, 20'000'000ULL, 10'000'000'000ULL}) {
      const session::MeterRate rate = session::meter_rate(bps, burst_ns);
      const session::PackedRate packed = session::PackedRate::of(rate);
      EXPECT_TRUE(packed.has_limit());
      for (const uint32_t bytes : {20U, 1500U, 9728U}) {
        const auto cost =
            static_cast<uint64_t>(static_cast<unsigned __int128>(bytes) * rate.cost >> 10);
        EXPECT_LE(packed.cost(bytes), cost) << bps;
        EXPECT_GE(packed.cost(bytes), cost - cost / 500'000'000 - (bps < 2'000'000 ? 1 : 0)) << bps;
      }
      EXPECT_GE(packed.burst(), rate.burst);
      EXPECT_LT(packed.burst(), rate.burst + 64 * 256);
    }
  }
  EXPECT_FALSE(session::PackedRate::of({}).has_limit());
}

TEST(SessionRules, DirectionsLieApartAndNoSlotIsTwoRules) {
  std::set<uint32_t> seen;
  for (uint32_t i = 0; i < 1000; ++i) {
    for (const bool is_uplink : {false, true}) {
      const uint32_t slot = session::slot_at(i, is_uplink);
      EXPECT_EQ(session::is_uplink_slot(slot), is_uplink);
      EXPECT_TRUE(seen.insert(slot).second) << slot;
    }
  }
  // The uplink and downlink runs together leave no gaps.
  EXPECT_LT(*seen.rbegin(), 2 * 1024U);
  constexpr size_t kLineBytes = 64;
  EXPECT_EQ(session::kRunSlots * sizeof(session::PdrState) % kLineBytes, 0U);
}

}  // namespace session_test
}  // namespace batchplane
