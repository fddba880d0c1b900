// SPDX-License-Identifier: BSD-3-Clause
// icmp_test.cc - errors and echo replies byte by byte, and all cases in which none may be sent.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "module_harness.h"
#include "modules/route/route_commands.h"

namespace batchplane {
namespace icmp_test {

uint32_t ip(const char* text) { return *net::parse_ipv4(text); }

std::unique_ptr<Environment> router_environment() {
  auto env = std::make_unique<Environment>();
  env->interfaces.push_back({.name = "lan", .index = 0, .addresses = {{ip("10.0.0.1"), 24}}});
  env->interfaces.push_back({.name = "wan",
                             .index = 1,
                             .mtu_bytes = 1400,
                             .addresses = {{ip("10.1.0.1"), 24}, {ip("10.2.0.1"), 24}}});
  return env;
}

uint16_t reason_index(const std::string& name) {
  const auto& all = drop_reasons();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return static_cast<uint16_t>(i);
  }
  ADD_FAILURE() << name;
  return 0;
}

uint16_t checksum_of(const uint8_t* data, uint32_t n_bytes) {
  return net::checksum_finish(net::checksum_add(data, n_bytes));
}

class IcmpErrorTest : public testing::Test {
 protected:
  IcmpErrorTest()
      : env_(router_environment()),
        table_(shared_route_table(*env_, "main")),
        harness_("icmp_error", {{"table", "main"}, {"errors_per_s", 10}, {"burst", 1000}}, 1,
                 env_.get()) {
    table_->build({.max_prefixes = 16, .max_next_hops = 8});
    table_->hops().set(3, {.interface = 1});
    harness_.meta().in_interface = 0;
    fail_for("ttl_expired");
  }
  void fail_for(const std::string& reason) { harness_.meta().drop_reason = reason_index(reason); }
  static FrameSpec request() {
    return {.ip_src = ip("10.0.0.9"), .ip_dst = ip("8.8.8.8"), .ttl = 1, .len_bytes = 100};
  }
  bool is_answered(const Bytes& frame) {
    const Outcome outcome = harness_.run({frame});
    EXPECT_EQ(outcome.outputs.size() + outcome.dropped_for("icmp_not_due"), 1U);
    return !outcome.outputs.empty();
  }

  std::unique_ptr<Environment> env_;
  std::shared_ptr<RouteTable> table_;
  ModuleHarness harness_;
};

TEST_F(IcmpErrorTest, TimeExceededIsRightByteByByte) {
  const Bytes sent = make_frame(request());
  const Outcome outcome = harness_.run({sent});
  ASSERT_EQ(outcome.outputs.size(), 1U);
  const Bytes& frame = outcome.outputs[0].bytes;
  ASSERT_EQ(frame.size(), 14U + 20 + 8 + 86);
  const uint8_t* header = &frame[14];
  EXPECT_EQ(net::load16(&frame[12]), net::kTypeIpv4);
  EXPECT_EQ(header[0], 0x45);
  EXPECT_EQ(header[1], 0xc0);
  EXPECT_EQ(net::load16(header + 2), 20 + 8 + 86);
  EXPECT_EQ(net::load16(header + 6), 0);
  EXPECT_EQ(header[8], 64);
  EXPECT_EQ(header[9], 1);
  EXPECT_EQ(checksum_of(header, 20), 0);
  EXPECT_EQ(net::load32(header + 12), ip("10.0.0.1"));
  EXPECT_EQ(net::load32(header + 16), ip("10.0.0.9"));
  const uint8_t* icmp = header + 20;
  EXPECT_EQ(icmp[0], 11);
  EXPECT_EQ(icmp[1], 0);
  EXPECT_EQ(checksum_of(icmp, 8 + 86), 0);
  EXPECT_EQ(net::load32(icmp + 4), 0U);
  EXPECT_TRUE(std::equal(sent.begin() + 14, sent.end(), frame.begin() + 42));
  EXPECT_EQ(outcome.outputs[0].meta.l3_offset_bytes, 14);
  EXPECT_NE(outcome.outputs[0].meta.flags & kMetaOriginated, 0);
}

TEST_F(IcmpErrorTest, ReasonsBecomeTypesAndCodes) {
  harness_.meta().next_hop = 3;
  const struct {
    const char* reason;
    uint8_t type, code;
    uint16_t mtu;
  } cases[] = {{"ttl_expired", 11, 0, 0},
               {"no_route", 3, 0, 0},
               {"neighbour_unreachable", 3, 1, 0},
               {"mtu_exceeded", 3, 4, 1400}};
  for (const auto& c : cases) {
    fail_for(c.reason);
    const Outcome outcome = harness_.run({make_frame(request())});
    ASSERT_EQ(outcome.outputs.size(), 1U) << c.reason;
    const uint8_t* icmp = &outcome.outputs[0].bytes[34];
    EXPECT_EQ(icmp[0], c.type);
    EXPECT_EQ(icmp[1], c.code);
    EXPECT_EQ(net::load16(icmp + 6), c.mtu);
    EXPECT_EQ(checksum_of(icmp, 8 + 86), 0);
  }
  fail_for("icmp_rate_limited");
  EXPECT_FALSE(is_answered(make_frame(request())));
}

// A tunnel needs room for its headers, so mtu_bytes may be below the interface's MTU.
TEST_F(IcmpErrorTest, TellsTheMtuThatIsGiven) {
  ModuleHarness error("icmp_error", {{"table", "main"}, {"mtu_bytes", 1300}}, 1, env_.get());
  fail_for("mtu_exceeded");
  error.meta() = harness_.meta();
  for (const uint32_t next_hop : {3U, 0U}) {
    error.meta().next_hop = next_hop;
    const Outcome outcome = error.run({make_frame(request())});
    ASSERT_EQ(outcome.outputs.size(), 1U);
    EXPECT_EQ(net::load16(&outcome.outputs[0].bytes[34 + 6]), 1300);
  }
}

TEST_F(IcmpErrorTest, QuotesAtMostWhatFits576AndNoPadding) {
  FrameSpec spec = request();
  spec.len_bytes = 1514;
  Bytes frame = harness_.run({make_frame(spec)}).outputs.at(0).bytes;
  EXPECT_EQ(frame.size(), 14U + 576);
  EXPECT_EQ(checksum_of(&frame[34], 576 - 20), 0);
  Bytes padded = make_frame(request());
  net::store16(&padded[16], 40);
  mend_ipv4_checksum(padded);
  frame = harness_.run({padded}).outputs.at(0).bytes;
  EXPECT_EQ(frame.size(), 14U + 28 + 40);
}

TEST_F(IcmpErrorTest, SourceIsTheIncomingInterfacesAddressNearestToTheSender) {
  FrameSpec spec = request();
  harness_.meta().in_interface = 1;
  spec.ip_src = ip("10.2.0.7");
  EXPECT_EQ(net::load32(&harness_.run({make_frame(spec)}).outputs.at(0).bytes[26]), ip("10.2.0.1"));
  spec.ip_src = ip("99.0.0.7");
  EXPECT_EQ(net::load32(&harness_.run({make_frame(spec)}).outputs.at(0).bytes[26]), ip("10.1.0.1"));
}

TEST_F(IcmpErrorTest, HeaderBehindAVlanTagIsFound) {
  const Bytes plain = make_frame(request());
  Bytes tagged = plain;
  tagged.insert(tagged.begin() + 12, {0x81, 0x00, 0x00, 0x05});
  harness_.meta().l3_offset_bytes = 18;
  const Bytes frame = harness_.run({tagged}).outputs.at(0).bytes;
  EXPECT_TRUE(std::equal(plain.begin() + 14, plain.end(), frame.begin() + 42, frame.end()));
}

TEST_F(IcmpErrorTest, SendsNoErrorWhereItMustNot) {
  const auto with = [&](auto change) {
    FrameSpec spec = request();
    change(spec);
    return make_frame(spec);
  };
  EXPECT_TRUE(is_answered(make_frame(request())));
  EXPECT_FALSE(is_answered(with([](FrameSpec& s) { s.ip_dst = ip("224.0.0.5"); })));
  EXPECT_FALSE(is_answered(with([](FrameSpec& s) { s.ip_dst = ip("255.255.255.255"); })));
  EXPECT_FALSE(is_answered(with([](FrameSpec& s) { s.ip_dst = ip("10.1.0.255"); })));
  EXPECT_FALSE(is_answered(with([](FrameSpec& s) { s.ip_src = ip("0.0.0.0"); })));
  EXPECT_FALSE(is_answered(with([](FrameSpec& s) { s.ip_src = ip("127.0.0.1"); })));
  EXPECT_FALSE(is_answered(with([](FrameSpec& s) { s.ip_src = ip("230.0.0.1"); })));
  EXPECT_FALSE(is_answered(with([](FrameSpec& s) { s.ip_src = ip("10.0.0.255"); })));
  EXPECT_FALSE(is_answered(with([](FrameSpec& s) { s.ip_src = ip("10.1.0.1"); })));
  EXPECT_FALSE(
      is_answered(with([](FrameSpec& s) { s.dst = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}; })));
  EXPECT_FALSE(is_answered(with([](FrameSpec& s) { s.dst = {0x01, 0, 0x5e, 0, 0, 1}; })));
  Bytes fragment = make_frame(request());
  net::store16(&fragment[14 + net::kIpFragment], 0x2000);  // a first fragment may be answered
  EXPECT_TRUE(is_answered(fragment));
  net::store16(&fragment[14 + net::kIpFragment], 0x0001);
  EXPECT_FALSE(is_answered(fragment));
  for (uint32_t type = 0; type < 20; ++type) {
    Bytes icmp = with([](FrameSpec& s) { s.proto = net::kProtoIcmp; });
    icmp[34] = static_cast<uint8_t>(type);
    const bool is_error = type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
    EXPECT_EQ(is_answered(icmp), !is_error) << type;
  }
  harness_.meta().flags = kMetaOriginated;
  EXPECT_FALSE(is_answered(make_frame(request())));
}

TEST_F(IcmpErrorTest, RateIsLimitedAndRecovers) {
  ModuleHarness limited("icmp_error", {{"errors_per_s", 10}, {"burst", 3}}, 1, env_.get());
  limited.meta() = harness_.meta();
  limited.set_now_ns(5'000'000'000);
  const std::vector<Bytes> frames(5, make_frame(request()));
  Outcome outcome = limited.run(frames);
  EXPECT_EQ(outcome.outputs.size(), 3U);
  EXPECT_EQ(outcome.dropped_for("icmp_rate_limited"), 2U);
  limited.set_now_ns(5'199'999'999);
  EXPECT_EQ(limited.run(frames).outputs.size(), 1U);
  limited.set_now_ns(5'200'000'000);
  EXPECT_EQ(limited.run(frames).outputs.size(), 1U);
  limited.set_now_ns(99'000'000'000);
  EXPECT_EQ(limited.run(frames).outputs.size(), 3U);  // only the burst, however long the pause
}

TEST_F(IcmpErrorTest, GarbageIsDroppedAndNeverReadBeyondItsEnd) {
  Rng rng(11);
  const Bytes good = make_frame(request());
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

Bytes ping(const char* to, uint32_t data_bytes = 56) {
  Bytes frame = make_frame({.ip_src = ip("10.0.0.9"),
                            .ip_dst = ip(to),
                            .proto = net::kProtoIcmp,
                            .ttl = 7,
                            .len_bytes = 14 + 20 + 8 + data_bytes});
  uint8_t* icmp = &frame[34];
  std::fill(icmp, icmp + 8, 0);
  icmp[0] = 8;
  net::store32(icmp + 4, 0x12340001);
  for (uint32_t i = 0; i < data_bytes; ++i) icmp[8 + i] = static_cast<uint8_t>(i * 7);
  net::store16(icmp + 2, checksum_of(icmp, 8 + data_bytes));
  return frame;
}

TEST(IcmpEcho, AnswersPingsToItsAddresses) {
  const auto env = router_environment();
  ModuleHarness echo("icmp_echo", {}, 2, env.get());
  for (const uint32_t data_bytes : {0U, 1U, 55U, 56U, 1472U}) {
    for (const char* to : {"10.0.0.1", "10.2.0.1"}) {
      const Bytes sent = ping(to, data_bytes);
      const Outcome outcome = echo.run({sent});
      ASSERT_EQ(outcome.gates(), std::vector<uint32_t>{0});
      const Bytes& frame = outcome.outputs[0].bytes;
      ASSERT_EQ(frame.size(), sent.size());
      EXPECT_EQ(net::load32(&frame[26]), ip(to));
      EXPECT_EQ(net::load32(&frame[30]), ip("10.0.0.9"));
      EXPECT_EQ(frame[22], 64);
      EXPECT_EQ(checksum_of(&frame[14], 20), 0);
      EXPECT_EQ(frame[34], 0);
      EXPECT_EQ(checksum_of(&frame[34], 8 + data_bytes), 0);
      EXPECT_TRUE(std::equal(sent.begin() + 38, sent.end(), frame.begin() + 38));
    }
  }
}

TEST(IcmpEcho, PassesOnWhatItDoesNotAnswerUnchanged) {
  const auto env = router_environment();
  ModuleHarness echo("icmp_echo", {}, 2, env.get());
  Bytes fragment = ping("10.0.0.1");
  net::store16(&fragment[14 + net::kIpFragment], 0x2000);
  Bytes reply = ping("10.0.0.1");
  reply[34] = 0;
  Bytes cut = ping("10.0.0.1");
  cut.resize(cut.size() - 1);
  const std::vector<Bytes> others = {ping("10.0.0.2"),
                                     ping("10.0.0.255"),
                                     fragment,
                                     reply,
                                     cut,
                                     make_frame({.ip_dst = ip("10.0.0.1")}),
                                     Bytes(14),
                                     Bytes{}};
  const Outcome outcome = echo.run(others);
  EXPECT_EQ(outcome.at(1), others);
}

TEST(IcmpEcho, DropsWrongChecksums) {
  const auto env = router_environment();
  ModuleHarness echo("icmp_echo", {}, 2, env.get());
  Bytes wrong = ping("10.0.0.1");
  wrong[60] ^= 1;
  const Outcome outcome = echo.run({wrong, ping("10.0.0.1")});
  EXPECT_EQ(outcome.dropped_for("bad_icmp_checksum"), 1U);
  EXPECT_EQ(outcome.gates(), std::vector<uint32_t>{0});
}

}  // namespace icmp_test
}  // namespace batchplane
