// SPDX-License-Identifier: BSD-3-Clause
// icmp6_test.cc - ICMPv6 errors and echo replies byte by byte, and all cases in which none may be
// sent.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "frames6.h"
#include "modules/route/route_commands.h"

namespace batchplane {
namespace icmp6_test {

uint16_t reason_index(const std::string& name) {
  const auto& all = drop_reasons();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return static_cast<uint16_t>(i);
  }
  ADD_FAILURE() << name;
  return 0;
}

class Icmp6ErrorTest : public testing::Test {
 protected:
  Icmp6ErrorTest()
      : env_(environment6()),
        table_(shared_route_table<Ipv6Family>(*env_, "main")),
        harness_("icmp6_error", {{"table", "main"}, {"errors_per_s", 10}, {"burst", 1000}}, 1,
                 env_.get()) {
    env_->interfaces[1].mtu_bytes = 1400;
    table_->build({.max_prefixes = 16, .max_next_hops = 8, .next_hop_bytes = 4});
    table_->hops().set(3, {.interface = 1});
    harness_.meta().in_interface = 0;
    fail_for("hop_limit_expired");
  }
  void fail_for(const std::string& reason) { harness_.meta().drop_reason = reason_index(reason); }
  bool is_answered(const Bytes& frame) {
    const Outcome outcome = harness_.run({frame});
    EXPECT_EQ(outcome.outputs.size() + outcome.dropped_for("icmp_not_due"), 1U);
    return !outcome.outputs.empty();
  }

  std::unique_ptr<Environment> env_;
  std::shared_ptr<RouteTable6> table_;
  ModuleHarness harness_;
};

TEST_F(Icmp6ErrorTest, TimeExceededIsRightByteByByte) {
  const Bytes sent = make_frame6({.hop_limit = 1});
  const Outcome outcome = harness_.run({sent});
  ASSERT_EQ(outcome.outputs.size(), 1U);
  Bytes message{3, 0, 0, 0, 0, 0, 0, 0};
  message.insert(message.end(), sent.begin() + 14, sent.end());
  EXPECT_EQ(outcome.outputs[0].bytes,
            make_icmp6({.dst = {}, .src = {}, .ip_src = "2001:db8:a::1", .ip_dst = "2001:db8:a::9"},
                       message));
  EXPECT_NE(outcome.outputs[0].meta.flags & kMetaOriginated, 0);
}

TEST_F(Icmp6ErrorTest, ReasonsBecomeTypesAndCodes) {
  ModuleHarness error("icmp6_error", {{"table", "main"}}, 1, env_.get());
  error.meta() = harness_.meta();
  error.meta().next_hop = 3;
  const struct {
    const char* reason;
    uint8_t type, code;
    uint32_t mtu;
  } cases[] = {{"hop_limit_expired", 3, 0, 0},
               {"no_route", 1, 0, 0},
               {"beyond_scope", 1, 2, 0},
               {"neighbour_unreachable", 1, 3, 0},
               {"mtu_exceeded", 2, 0, 1400}};
  for (const auto& c : cases) {
    error.meta().drop_reason = reason_index(c.reason);
    const Outcome outcome = error.run({make_frame6()});
    ASSERT_EQ(outcome.outputs.size(), 1U) << c.reason;
    const Bytes& frame = outcome.outputs[0].bytes;
    EXPECT_EQ(frame[54], c.type);
    EXPECT_EQ(frame[55], c.code);
    EXPECT_EQ(net::load32(&frame[58]), c.mtu);
    EXPECT_EQ(icmp6_sum(frame), 0);
  }
}

TEST_F(Icmp6ErrorTest, QuotesAsMuchAsFits1280) {
  const Bytes frame = harness_.run({make_frame6({.payload_bytes = 1400})}).outputs.at(0).bytes;
  EXPECT_EQ(frame.size(), 14U + 1280);
  EXPECT_EQ(icmp6_sum(frame), 0);
}

TEST_F(Icmp6ErrorTest, SourceFitsTheReceiversScope) {
  const auto source_to = [&](const char* sender) {
    return net::format_ipv6(net::load_address6(
        &harness_.run({make_frame6({.ip_src = sender})}).outputs.at(0).bytes[22]));
  };
  EXPECT_EQ(source_to("fe80::77"), "fe80::ff:fe00:a");
  EXPECT_EQ(source_to("2a00::77"), "2001:db8:a::1");
  harness_.meta().in_interface = 1;
  EXPECT_EQ(source_to("2a00::77"), "2001:db8:b::1");
}

TEST_F(Icmp6ErrorTest, SendsNoErrorWhereItMustNot) {
  EXPECT_TRUE(is_answered(make_frame6()));
  for (const char* src : {"::", "::1", "ff02::1", "2001:db8:a::1", "2001:db8:b::1"}) {
    EXPECT_FALSE(is_answered(make_frame6({.ip_src = src}))) << src;
  }
  EXPECT_FALSE(is_answered(make_frame6({.ip_dst = "ff0e::1"})));
  EXPECT_FALSE(is_answered(make_frame6({.dst = {0x33, 0x33, 0, 0, 0, 1}})));
  for (uint32_t type = 0; type < 256; ++type) {
    const Bytes icmp = make_icmp6({}, {static_cast<uint8_t>(type), 0, 0, 0, 0, 0, 0, 0});
    EXPECT_EQ(is_answered(icmp), type >= 128 && type != 137) << type;
    Bytes hidden = make_frame6({.next = 60, .extensions = {58, 0, 1, 4, 0, 0, 0, 0}});
    hidden[62] = static_cast<uint8_t>(type);
    EXPECT_EQ(is_answered(hidden), type >= 128 && type != 137) << type;
  }
  const Bytes later = make_frame6({.next = 44, .extensions = {58, 0, 0, 8, 0, 0, 0, 1}});
  EXPECT_FALSE(is_answered(later));
  fail_for("mtu_exceeded");
  harness_.meta().next_hop = 3;
  EXPECT_TRUE(is_answered(make_frame6({.ip_dst = "ff0e::1"})));  // path MTU discovery for multicast
  harness_.meta().next_hop = 5;
  EXPECT_FALSE(is_answered(make_frame6()));  // MTU unknown
  fail_for("hop_limit_expired");
  harness_.meta().flags = kMetaOriginated;
  EXPECT_FALSE(is_answered(make_frame6()));
}

TEST_F(Icmp6ErrorTest, RateIsLimitedAndRecovers) {
  ModuleHarness limited("icmp6_error", {{"errors_per_s", 10}, {"burst", 3}}, 1, env_.get());
  limited.meta() = harness_.meta();
  limited.set_now_ns(5'000'000'000);
  const std::vector<Bytes> frames(5, make_frame6());
  Outcome outcome = limited.run(frames);
  EXPECT_EQ(outcome.outputs.size(), 3U);
  EXPECT_EQ(outcome.dropped_for("icmp_rate_limited"), 2U);
  limited.set_now_ns(5'200'000'000);
  EXPECT_EQ(limited.run(frames).outputs.size(), 2U);
}

TEST_F(Icmp6ErrorTest, GarbageIsDroppedAndNeverReadBeyondItsEnd) {
  Rng rng(11);
  const Bytes good = make_frame6();
  for (uint32_t len = 0; len < good.size(); ++len) {
    EXPECT_FALSE(is_answered(Bytes(good.begin(), good.begin() + len))) << len;
  }
  for (uint32_t round = 0; round < 3000; ++round) {
    Bytes frame(good.begin(), good.begin() + rng.below(static_cast<uint32_t>(good.size())) + 1);
    for (uint32_t k = 0; k < 4; ++k)
      frame[rng.below(static_cast<uint32_t>(frame.size()))] = static_cast<uint8_t>(rng.next());
    harness_.run({frame});
  }
  EXPECT_EQ(harness_.leaked_pkts(), 0U);
}

Bytes ping6(const std::string& dst, const std::string& src = "2001:db8:a::9", uint32_t bytes = 56) {
  Bytes message(8 + bytes);
  message[0] = 128;
  net::store32(&message[4], 0x12340001);
  for (uint32_t i = 0; i < bytes; ++i) message[8 + i] = static_cast<uint8_t>(i * 7);
  return make_icmp6({.ip_src = src, .ip_dst = dst, .hop_limit = 7}, message);
}

class Icmp6EchoTest : public testing::Test {
 protected:
  Icmp6EchoTest() : env_(environment6()), echo_("icmp6_echo", {}, 3, env_.get()) {
    echo_.meta().in_interface = 0;
  }
  std::unique_ptr<Environment> env_;
  ModuleHarness echo_;
};

TEST_F(Icmp6EchoTest, AnswersPingsToItsAddresses) {
  for (const uint32_t bytes : {0U, 1U, 55U, 56U, 1452U}) {
    for (const char* to : {"2001:db8:a::1", "2001:db8:b::1", "fe80::ff:fe00:a"}) {
      const Bytes sent = ping6(to, "2001:db8:a::9", bytes);
      const Outcome outcome = echo_.run({sent});
      ASSERT_EQ(outcome.gates(), std::vector<uint32_t>{0}) << to;
      Bytes message(sent.begin() + 54, sent.end());
      message[0] = 129;
      EXPECT_EQ(outcome.outputs[0].bytes,
                make_icmp6({.ip_src = to, .ip_dst = "2001:db8:a::9", .hop_limit = 64}, message));
    }
  }
}

TEST_F(Icmp6EchoTest, AnswersPingsToAllNodesFromAnAddressThatFits) {
  const Outcome outcome = echo_.run({ping6("ff02::1", "fe80::9"), ping6("ff02::2")});
  ASSERT_EQ(outcome.gates(), (std::vector<uint32_t>{0, 0}));
  EXPECT_EQ(net::load_address6(&outcome.outputs[0].bytes[22]), ip6("fe80::ff:fe00:a"));
  EXPECT_EQ(net::load_address6(&outcome.outputs[1].bytes[22]), ip6("2001:db8:a::1"));
  EXPECT_EQ(icmp6_sum(outcome.outputs[0].bytes), 0);
}

TEST_F(Icmp6EchoTest, SortsOutDiscoveryAndPassesOnTheRestUnchanged) {
  std::vector<Bytes> discovery;
  for (uint8_t type = 133; type <= 137; ++type) {
    discovery.push_back(make_icmp6({.ip_dst = "ff02::1"}, {type, 0, 0, 0, 0, 0, 0, 0}));
  }
  EXPECT_EQ(echo_.run(discovery).at(2), discovery);
  Bytes cut = ping6("2001:db8:a::1");
  cut.pop_back();
  const std::vector<Bytes> others = {
      ping6("2001:db8:a::2"),
      ping6("fe80::ff:fe00:b"),  // an address of the other link
      ping6("ff02::5"),
      ping6("2001:db8:a::1", "::"),
      make_frame6({.ip_dst = "2001:db8:a::1"}),
      make_icmp6({.ip_dst = "2001:db8:a::1"}, {129, 0, 0, 0, 0, 0, 0, 0}),
      cut,
      Bytes(54),
      Bytes{}};
  EXPECT_EQ(echo_.run(others).at(1), others);
}

TEST_F(Icmp6EchoTest, DropsWrongChecksums) {
  Bytes wrong = ping6("2001:db8:a::1");
  wrong[70] ^= 1;
  EXPECT_EQ(echo_.run({wrong}).dropped_for("bad_icmp_checksum"), 1U);
}

}  // namespace icmp6_test
}  // namespace batchplane
