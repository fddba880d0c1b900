// SPDX-License-Identifier: BSD-3-Clause
// ipv6_check_test.cc - packets that pass the header check, their recorded offsets, and each fault;
// hop limits.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "frames6.h"

namespace batchplane {
namespace {

// One extension header of `bytes` bytes, a multiple of 8.
Bytes extension(uint8_t next, uint32_t bytes = 8) {
  Bytes header(bytes);
  header[0] = next;
  header[1] = static_cast<uint8_t>(bytes / 8 - 1);
  return header;
}
Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Bytes fragment(uint8_t next, uint16_t offset) {
  Bytes header = extension(next);
  header[1] = 0;
  net::store16(&header[2], static_cast<uint16_t>(offset << 3 | 1));
  return header;
}

std::string fate(const Bytes& frame, const Dict& params = {}) {
  ModuleHarness check("ipv6_check", params);
  const Outcome outcome = check.run({frame});
  return outcome.drops.empty() ? "passed" : outcome.drops[0].reason;
}
uint32_t l4_of(const Bytes& frame) {
  ModuleHarness check("ipv6_check");
  const Outcome outcome = check.run({frame});
  return outcome.outputs.empty() ? 9999 : outcome.outputs[0].meta.l4_offset_bytes;
}

TEST(Ipv6Check, NotesTheUpperLayerBehindExtensionHeaders) {
  EXPECT_EQ(l4_of(make_frame6()), 54U);
  EXPECT_EQ(l4_of(make_frame6({.next = 0, .extensions = extension(17)})), 62U);
  EXPECT_EQ(l4_of(make_frame6({.next = 0,
                               .extensions = extension(60, 16) + extension(43, 24) +
                                             fragment(44, 0) + extension(51) + extension(17, 8)})),
            0U + 14 + 40 + 16 + 24 + 8 + 8 + 8);
  EXPECT_EQ(l4_of(make_frame6({.next = 44, .extensions = fragment(17, 0)})), 62U);
  EXPECT_EQ(l4_of(make_frame6({.next = 44, .extensions = fragment(17, 100)})), 0U);
  EXPECT_EQ(l4_of(make_frame6({.next = 60, .extensions = extension(17, 248)})), 0U);  // too far
  EXPECT_EQ(l4_of(make_frame6({.next = 50})), 54U);
  EXPECT_EQ(l4_of(make_frame6({.next = 59, .payload_bytes = 0})), 54U);
  Bytes authenticated = extension(17, 16);  // its length counts 4-byte words, minus 2
  authenticated[1] = 2;
  EXPECT_EQ(l4_of(make_frame6({.next = 51, .extensions = authenticated})), 70U);
}

TEST(Ipv6Check, CutsOffPadding) {
  Bytes padded = make_frame6({.payload_bytes = 4});
  const Bytes plain = padded;
  padded.resize(60);
  padded.resize(64, 7);
  ModuleHarness check("ipv6_check");
  EXPECT_EQ(check.run({padded}).at(0), std::vector<Bytes>{plain});
}

TEST(Ipv6Check, EachFaultHasItsReason) {
  Bytes frame = make_frame6();
  frame[14] = 0x45;
  EXPECT_EQ(fate(frame), "bad_version");
  frame = make_frame6();
  frame.pop_back();
  EXPECT_EQ(fate(frame), "bad_payload_length");
  EXPECT_EQ(fate(make_frame6({.hop_limit = 0})), "hop_limit_zero");
  EXPECT_EQ(fate(make_frame6({.hop_limit = 1})), "passed");
  EXPECT_EQ(fate(make_frame6({.next = 60, .payload_bytes = 0})), "bad_extension_header");
  EXPECT_EQ(fate(make_frame6({.next = 60, .extensions = {17, 3, 0, 0, 0, 0, 0, 0}})),
            "bad_extension_header");
  EXPECT_EQ(fate(make_frame6({.next = 60, .extensions = extension(0) + extension(17)})),
            "bad_extension_header");
  Bytes chain;
  for (uint32_t i = 0; i < 7; ++i) chain = chain + extension(60);
  EXPECT_EQ(fate(make_frame6({.next = 60, .extensions = chain + extension(17)})), "passed");
  EXPECT_EQ(fate(make_frame6({.next = 60, .extensions = chain + extension(60) + extension(17)})),
            "too_many_extension_headers");
}

TEST(Ipv6Check, Martians) {
  const struct {
    const char *src, *dst, *fate;
  } cases[] = {{"ff02::1", "2001:db8::1", "martian_source"},
               {"::1", "2001:db8::1", "martian_source"},
               {"::", "2001:db8::1", "martian_source"},
               {"::", "ff02::1:ff00:1", "passed"},
               {"::", "ff05::2", "martian_source"},
               {"fe80::1", "ff02::1", "passed"},
               {"2001:db8::1", "::1", "martian_destination"},
               {"2001:db8::1", "::", "martian_destination"},
               {"2001:db8::1", "ff01::1", "martian_destination"},
               {"2001:db8::1", "ff0e::1", "passed"},
               {"64:ff9b::1", "2001:db8::1", "passed"}};
  for (const auto& c : cases) {
    const Bytes frame = make_frame6({.ip_src = c.src, .ip_dst = c.dst});
    EXPECT_EQ(fate(frame), c.fate) << c.src << " " << c.dst;
    EXPECT_EQ(fate(frame, {{"drop_martians", false}}), "passed");
  }
}

TEST(Ipv6Check, ShortPacketsAndGarbageAreNeverReadBeyondTheirEnd) {
  const Bytes whole = make_frame6({.next = 0, .extensions = extension(60, 16) + extension(17)});
  for (uint32_t len = 0; len < whole.size(); ++len) {
    const std::string expected = len < 54 ? "too_short" : "bad_payload_length";
    EXPECT_EQ(fate(Bytes(whole.begin(), whole.begin() + len)), expected);
  }
  ModuleHarness check("ipv6_check");
  Rng rng(5);
  for (uint32_t round = 0; round < 5000; ++round) {
    Bytes frame = whole;
    for (uint32_t k = 0; k < 3; ++k) frame[20 + rng.below(60)] = static_cast<uint8_t>(rng.next());
    net::store16(&frame[18], static_cast<uint16_t>(rng.below(50)));
    check.run({frame});
  }
  EXPECT_EQ(check.leaked_pkts(), 0U);
}

TEST(Ipv6Check, HeaderBehindATagIsChecked) {
  Bytes tagged = make_frame6();
  tagged.insert(tagged.begin() + 12, {0x81, 0, 0, 5});
  ModuleHarness check("ipv6_check", {{"l3_offset_bytes", 18}});
  const Outcome outcome = check.run({tagged});
  ASSERT_EQ(outcome.outputs.size(), 1U);
  EXPECT_EQ(outcome.outputs[0].meta.l3_offset_bytes, 18);
  EXPECT_EQ(outcome.outputs[0].meta.l4_offset_bytes, 58);
}

TEST(HopLimit, FallsByOneAndEnds) {
  ModuleHarness harness("hop_limit");
  const Outcome outcome = harness.run({make_frame6({.hop_limit = 0}), make_frame6({.hop_limit = 1}),
                                       make_frame6({.hop_limit = 2}), make_frame6(), Bytes(53)});
  EXPECT_EQ(outcome.dropped_for("hop_limit_expired"), 2U);
  EXPECT_EQ(outcome.dropped_for("too_short"), 1U);
  ASSERT_EQ(outcome.outputs.size(), 2U);
  EXPECT_EQ(outcome.outputs[0].bytes, make_frame6({.hop_limit = 1}));
  EXPECT_EQ(outcome.outputs[1].bytes, make_frame6({.hop_limit = 63}));
}

}  // namespace
}  // namespace batchplane
