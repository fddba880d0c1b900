// SPDX-License-Identifier: BSD-3-Clause
// prefix_mark_test.cc - marks by prefix, for IPv4 and IPv6, behind VLAN tags and PPPoE sessions.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "module_harness.h"
#include "modules/classify/prefix_list.h"

namespace batchplane {
namespace prefix_mark_test {

Bytes to4(uint32_t address) {
  Bytes frame = make_frame();
  net::store32(&frame[net::kEthBytes + net::kIpDst], address);
  return frame;
}
Bytes to6(const net::Address6& address) {
  Bytes frame(74);
  net::store16(&frame[12], net::kTypeIpv6);
  net::store32(&frame[14], 6U << 28);
  net::store_address6(&frame[14 + net::kIp6Dst], address);
  return frame;
}
// Inserts `front` between the MAC addresses and the type.
Bytes with(Bytes frame, const Bytes& front) {
  frame.insert(frame.begin() + 12, front.begin(), front.end());
  return frame;
}
Bytes in_pppoe(Bytes frame, uint16_t protocol) {
  const Bytes session{0x88,
                      0x64,
                      0x11,
                      0,
                      0,
                      7,
                      0,
                      62,
                      static_cast<uint8_t>(protocol >> 8),
                      static_cast<uint8_t>(protocol)};
  frame.erase(frame.begin() + 12, frame.begin() + 14);
  return with(frame, session);
}

Dict of(const List& prefixes) { return {{"prefixes", prefixes}, {"other_mark", 99}}; }
Value entry(const std::string& prefix, uint32_t mark) {
  return Dict{{"prefix", prefix}, {"mark", mark}};
}
uint32_t mark_of(ModuleHarness& harness, const Bytes& frame) {
  const Outcome outcome = harness.run({frame});
  EXPECT_EQ(outcome.outputs.size(), 1U);
  EXPECT_EQ(outcome.outputs[0].bytes, frame) << "unchanged";
  return outcome.outputs[0].mark;
}

TEST(PrefixMark, TakesTheLongestPrefix) {
  ModuleHarness harness(
      "prefix_mark",
      of({entry("10.0.0.0/8", 1), entry("10.1.0.0/16", 2), entry("10.1.2.3", 3),
          entry("2001:db8::/32", 4), entry("2001:db8:0:7::/64", 5), entry("2001:db8::1", 6)}));
  EXPECT_EQ(mark_of(harness, to4(0x0a000001)), 1U);
  EXPECT_EQ(mark_of(harness, to4(0x0a010001)), 2U);
  EXPECT_EQ(mark_of(harness, to4(0x0a010203)), 3U);
  EXPECT_EQ(mark_of(harness, to4(0x0b000001)), 99U);
  EXPECT_EQ(mark_of(harness, to6({0x20010db800000001, 9})), 4U);
  EXPECT_EQ(mark_of(harness, to6({0x20010db800000007, 9})), 5U);
  EXPECT_EQ(mark_of(harness, to6({0x20010db800000000, 1})), 6U);
  EXPECT_EQ(mark_of(harness, to6({0x20010db900000000, 1})), 99U);
}

TEST(PrefixMark, AgreesWithASlowSearch) {
  Rng rng(7);
  PrefixList list;
  for (uint32_t k = 0; k < 3000; ++k) {
    const uint32_t length = 8 + rng.below(25);
    const auto address = static_cast<uint32_t>(rng.next()) & 0x0f0f0fffU & net::mask4(length);
    list.emplace(net::Prefix4{address, static_cast<uint8_t>(length)}, k);
    const uint32_t length6 = rng.below(129);
    const net::Address6 address6 =
        net::Address6{rng.next() & 0x0f0f0f0f0f0f0f0f, rng.next() & 3} & net::mask6(length6);
    list.emplace(net::Prefix6{address6, static_cast<uint8_t>(length6)}, k);
  }
  const PrefixMarks marks = marks_of(list);
  for (uint32_t k = 0; k < 3000; ++k) {
    const auto address = static_cast<uint32_t>(rng.next()) & 0x0f0f0fffU;
    const net::Address6 address6{rng.next() & 0x0f0f0f0f0f0f0f0f, rng.next() & 3};
    uint32_t want = 12345;
    uint32_t want6 = 12345;
    int best = -1;
    int best6 = -1;
    for (const auto& [key, mark] : list) {
      if (const auto* v4 = std::get_if<net::Prefix4>(&key)) {
        if ((address & net::mask4(v4->length)) != v4->address || v4->length <= best) continue;
        best = v4->length;
        want = mark;
      } else {
        const auto& v6 = std::get<net::Prefix6>(key);
        if (!net::holds(v6, address6) || v6.length <= best6) continue;
        best6 = v6.length;
        want6 = mark;
      }
    }
    uint32_t got = 12345;
    uint32_t got6 = 12345;
    const PrefixLengths<1>::Key key{address};
    const PrefixLengths<2>::Key key6{address6.high, address6.low};
    marks.v4.find(&key, 1, &got);
    marks.v6.find(&key6, 1, &got6);
    ASSERT_EQ(got, want);
    ASSERT_EQ(got6, want6);
  }
}

TEST(PrefixMark, LooksBehindTagsAndSessions) {
  ModuleHarness harness("prefix_mark", of({entry("10.0.0.0/8", 1), entry("2001:db8::/32", 2)}));
  const Bytes tag{0x81, 0, 0, 5};
  const Bytes tags{0x88, 0xa8, 0, 9, 0x81, 0, 0, 5};
  const Bytes three{0x88, 0xa8, 0, 9, 0x81, 0, 0, 5, 0x81, 0, 0, 6};
  const Bytes v4 = to4(0x0a000001);
  const Bytes v6 = to6({0x20010db800000000, 1});
  EXPECT_EQ(mark_of(harness, with(v4, tag)), 1U);
  EXPECT_EQ(mark_of(harness, with(v6, tags)), 2U);
  EXPECT_EQ(mark_of(harness, with(v4, three)), 99U);
  EXPECT_EQ(mark_of(harness, in_pppoe(v4, 0x0021)), 1U);
  EXPECT_EQ(mark_of(harness, with(in_pppoe(v6, 0x0057), tag)), 2U);
  EXPECT_EQ(mark_of(harness, in_pppoe(v4, 0xc021)), 99U);
  // Cut at any length, nothing is read beyond the end.
  const Bytes whole = with(in_pppoe(v6, 0x0057), tags);
  for (size_t n = 14; n < whole.size(); ++n) {
    const uint32_t mark =
        mark_of(harness, Bytes(whole.begin(), whole.begin() + static_cast<long>(n)));
    EXPECT_EQ(mark, n >= 14 + 8 + 8 + 40 ? 2U : 99U) << n;
  }
}

TEST(PrefixMark, AddsTheClassOfTheDscp) {
  Dict params = of({entry("10.0.0.0/8", 100)});
  params["classes"] = List{Dict{{"dscp", "ef"}, {"add", 3}}};
  ModuleHarness harness("prefix_mark", params);
  Bytes frame = to4(0x0a000001);
  EXPECT_EQ(mark_of(harness, frame), 100U);
  frame[net::kEthBytes + 1] = 46 << 2;
  EXPECT_EQ(mark_of(harness, frame), 103U);
  net::store32(&frame[net::kEthBytes + net::kIpDst], 0);
  EXPECT_EQ(mark_of(harness, frame), 99U);
}

TEST(PrefixMark, ReadsSources) {
  Dict params = of({entry("10.0.0.0/8", 1)});
  params["by"] = "source";
  ModuleHarness harness("prefix_mark", params);
  Bytes frame = to4(0x0a000001);
  net::store32(&frame[net::kEthBytes + net::kIpSrc], 0x0b000001);
  EXPECT_EQ(mark_of(harness, frame), 99U);
  net::store32(&frame[net::kEthBytes + net::kIpSrc], 0x0a000001);
  EXPECT_EQ(mark_of(harness, frame), 1U);
}

TEST(PrefixMark, ChangesLive) {
  ModuleHarness harness("prefix_mark", of({entry("10.0.0.0/8", 1)}));
  harness.command("add", List{entry("10.1.0.0/16", 2), entry("2001:db8::/32", 3)});
  EXPECT_EQ(mark_of(harness, to4(0x0a010001)), 2U);
  harness.command("delete", Dict{{"prefix", "10.1.0.0/16"}});
  EXPECT_EQ(mark_of(harness, to4(0x0a010001)), 1U);
  EXPECT_THROW(harness.command("delete", Dict{{"prefix", "10.1.0.0/16"}}), ConfigError);
  EXPECT_THROW(harness.command("add", entry("10.0.0.0/8", 4)), ConfigError);
  EXPECT_THROW(harness.command("add", entry("10.0.0.1/8", 4)), ConfigError);
  ModuleHarness again("prefix_mark", harness.module().saved_params());
  EXPECT_EQ(mark_of(again, to6({0x20010db800000000, 1})), 3U);
}

}  // namespace prefix_mark_test
}  // namespace batchplane
