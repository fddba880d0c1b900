// SPDX-License-Identifier: BSD-3-Clause
// net6_test.cc - IPv6 notation in both directions against the examples of the standards and the C library.
#include "base/net6.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace batchplane::net {
namespace {

std::string again(const char* text) {
  const auto address = parse_ipv6(text);
  return address ? format_ipv6(*address) : "none";
}

TEST(Net6, WritesTheTextOfRfc5952) {
  EXPECT_EQ(again("2001:0db8:0000:0000:0001:0000:0000:0001"), "2001:db8::1:0:0:1");
  EXPECT_EQ(again("2001:db8:0:1:1:1:1:1"), "2001:db8:0:1:1:1:1:1");
  EXPECT_EQ(again("2001:0:0:1:0:0:0:1"), "2001:0:0:1::1");
  EXPECT_EQ(again("2001:DB8::AbCd"), "2001:db8::abcd");
  EXPECT_EQ(again("::"), "::");
  EXPECT_EQ(again("::1"), "::1");
  EXPECT_EQ(again("1::"), "1::");
  EXPECT_EQ(again("::ffff:10.0.0.1"), "::ffff:10.0.0.1");
  EXPECT_EQ(again("0:0:0:1::"), "0:0:0:1::");
}

TEST(Net6, RandomAddressesComeBack) {
  Rng rng(7);
  for (uint32_t i = 0; i < 20'000; ++i) {
    uint8_t bytes[16];
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.below(3) != 0 ? 0 : rng.next());
    const Address6 address = load_address6(bytes);
    const std::string text = format_ipv6(address);
    ASSERT_EQ(parse_ipv6(text), address) << text;
    char theirs[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, bytes, theirs, sizeof theirs);
    // The C library writes IPv4-compatible addresses as ::a.b.c.d, which RFC 5952 does not require.
    if (std::string(theirs).find('.') == std::string::npos) {
      ASSERT_EQ(text, theirs);
    }
    uint8_t back[16];
    store_address6(back, address);
    ASSERT_EQ(std::memcmp(back, bytes, 16), 0);
  }
}

TEST(Net6, RefusesInvalidAddressesAndPrefixes) {
  for (const char* text : {"", "1", ":", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "10.0.0.1",
                           "fe80::1%lan", "2001:db8::1/64", "12345::", "g::"}) {
    EXPECT_FALSE(parse_ipv6(text)) << text;
  }
  for (const char* text : {"2001:db8::", "2001:db8::/129", "2001:db8::1/64", "2001:db8::/", "::/-1",
                           "2001:db8::/64x"}) {
    EXPECT_FALSE(parse_prefix6(text)) << text;
  }
  EXPECT_EQ(format_prefix6(*parse_prefix6("2001:db8::/32")), "2001:db8::/32");
  EXPECT_EQ(format_prefix6(*parse_interface_address6("2001:db8::1/64")), "2001:db8::1/64");
}

TEST(Net6, MasksCoverEveryLength) {
  for (uint32_t length = 0; length <= 128; ++length) {
    const Address6 mask = mask6(length);
    EXPECT_EQ(__builtin_popcountll(mask.high) + __builtin_popcountll(mask.low),
              static_cast<int>(length));
  }
  EXPECT_TRUE(holds(*parse_prefix6("2001:db8::/33"), *parse_ipv6("2001:db8:7fff::1")));
  EXPECT_FALSE(holds(*parse_prefix6("2001:db8::/33"), *parse_ipv6("2001:db8:8000::1")));
}

TEST(Net6, KindsOfAddresses) {
  EXPECT_EQ(format_ipv6(link_local_of({0x02, 0x00, 0x5e, 0x10, 0x00, 0x52})), "fe80::5eff:fe10:52");
  EXPECT_EQ(format_ipv6(solicited_node_group(*parse_ipv6("2001:db8::a1b2:c3d4"))),
            "ff02::1:ffb2:c3d4");
  EXPECT_EQ(format_mac(group_mac(*parse_ipv6("ff02::1:ffb2:c3d4"))), "33:33:ff:b2:c3:d4");
  EXPECT_TRUE(parse_ipv6("febf::1")->is_link_local());
  EXPECT_FALSE(parse_ipv6("fec0::1")->is_link_local());
  EXPECT_TRUE(parse_ipv6("ff02::1")->is_link_group());
  EXPECT_FALSE(parse_ipv6("ff05::1")->is_link_group());
}

}  // namespace
}  // namespace batchplane::net
