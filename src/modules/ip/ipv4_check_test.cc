// SPDX-License-Identifier: BSD-3-Clause
// ipv4_check_test.cc - each fault has its drop reason; good packets pass with their offsets
// recorded.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "module_harness.h"

namespace batchplane {
namespace {

TEST(Ipv4Check, GoodPacketsPassUnchanged) {
  ModuleHarness harness("ipv4_check");
  FrameSpec options;
  options.options_bytes = 12;
  options.len_bytes = 100;
  const std::vector<Bytes> frames = {make_frame(), make_frame(options)};
  const Outcome outcome = harness.run(frames);
  EXPECT_EQ(outcome.at(0), frames);
  EXPECT_EQ(outcome.outputs[0].meta.l3_offset_bytes, 14);
  EXPECT_EQ(outcome.outputs[0].meta.l4_offset_bytes, 34);
  EXPECT_EQ(outcome.outputs[1].meta.l4_offset_bytes, 46);
}

TEST(Ipv4Check, PaddingStays) {
  ModuleHarness harness("ipv4_check");
  Bytes frame = make_frame({.len_bytes = 46});
  frame.resize(60);
  EXPECT_EQ(harness.run({frame}).at(0), std::vector<Bytes>{frame});
}

// Sets byte `at` of a good frame, updates the checksum if `mends`, and returns the drop reason.
std::string reason_for(uint32_t at, uint8_t value, bool mends = true, uint32_t options_bytes = 0) {
  ModuleHarness harness("ipv4_check");
  FrameSpec spec;
  spec.options_bytes = options_bytes;
  Bytes frame = make_frame(spec);
  frame[at] = value;
  if (mends) mend_ipv4_checksum(frame);
  const Outcome outcome = harness.run({frame});
  return outcome.drops.empty() ? "" : outcome.drops[0].reason;
}

TEST(Ipv4Check, EachFaultHasItsReason) {
  EXPECT_EQ(reason_for(14, 0x65), "bad_version");
  EXPECT_EQ(reason_for(14, 0x05), "bad_version");
  EXPECT_EQ(reason_for(14, 0x44, false), "bad_header_length");
  EXPECT_EQ(reason_for(14, 0x40, false), "bad_header_length");
  EXPECT_EQ(reason_for(14, 0x4f, false), "bad_header_length");  // 60 bytes, only 46 present
  EXPECT_EQ(reason_for(17, 47), "bad_total_length");            // one byte more than present
  EXPECT_EQ(reason_for(17, 46), "");
  EXPECT_EQ(reason_for(17, 20), "");
  EXPECT_EQ(reason_for(17, 19), "bad_total_length");
  EXPECT_EQ(reason_for(16, 0xff), "bad_total_length");
  EXPECT_EQ(reason_for(17, 27, true, 8), "bad_total_length");  // shorter than a header with options
  EXPECT_EQ(reason_for(24, 0x12, false), "bad_checksum");
  EXPECT_EQ(reason_for(35, 0x99, false, 8), "bad_checksum");  // in the options
  for (const uint8_t octet : {0, 127, 224, 239, 240, 255}) {
    EXPECT_EQ(reason_for(26, octet), "martian_source") << int{octet};
  }
  for (const uint8_t octet : {1, 10, 126, 128, 223})
    EXPECT_EQ(reason_for(26, octet), "") << int{octet};
  for (const uint8_t octet : {0, 127}) EXPECT_EQ(reason_for(30, octet), "martian_destination");
  for (const uint8_t octet : {1, 126, 128, 224, 255})
    EXPECT_EQ(reason_for(30, octet), "") << int{octet};
}

TEST(Ipv4Check, GroupsAreDroppedWhereThatIsAsked) {
  ModuleHarness harness("ipv4_check", {{"drop_groups", true}});
  const Outcome outcome =
      harness.run({make_frame({.ip_dst = 0xe0000001}), make_frame({.ip_dst = 0xffffffff}),
                   make_frame({.ip_dst = 0xdfffffff})});
  EXPECT_EQ(outcome.dropped_for("group_destination"), 2U);
  EXPECT_EQ(outcome.at(0).size(), 1U);
}

TEST(Ipv4Check, SourceRoutesAreRefused) {
  const auto with = [](const Bytes& options) {
    Bytes frame = make_frame({.len_bytes = 74, .options_bytes = 12});
    std::ranges::copy(options, frame.begin() + net::kEthBytes + net::kIpv4Bytes);
    mend_ipv4_checksum(frame);
    return frame;
  };
  ModuleHarness check("ipv4_check");
  for (const Bytes& refused : {Bytes{131, 7, 4, 10, 0, 0, 9}, Bytes{137, 7, 4, 10, 0, 0, 9},
                               Bytes{1, 1, 131, 3, 4}, Bytes{7, 7, 4, 0, 0, 0, 0, 137, 3, 4}}) {
    EXPECT_EQ(check.run({with(refused)}).dropped_for("source_route"), 1U);
  }
  // After the end of options, and inside another option's data.
  for (const Bytes& passes :
       {Bytes{0, 131, 7, 4}, Bytes{7, 7, 131, 137, 131, 137, 131}, Bytes{148, 4, 0, 0}}) {
    EXPECT_EQ(check.run({with(passes)}).outputs.size(), 1U);
  }
  // A nonsensical length could hide a source route.
  for (const Bytes& refused :
       {Bytes{7, 0, 131, 7}, Bytes{7, 1, 131, 7}, Bytes{7, 13, 131}, Bytes{7, 255, 131}}) {
    EXPECT_EQ(check.run({with(refused)}).dropped_for("bad_option"), 1U);
  }
  ModuleHarness lax("ipv4_check", {{"drop_martians", false}, {"check_checksum", false}});
  EXPECT_EQ(lax.run({with({131, 7, 4, 10, 0, 0, 9})}).dropped_for("source_route"), 1U);
}

TEST(Ipv4Check, TruncationsNeverPass) {
  ModuleHarness harness("ipv4_check");
  std::vector<Bytes> frames;
  for (uint32_t len = 0; len < 60; ++len) {
    Bytes frame = make_frame();
    frame.resize(len);
    frames.push_back(frame);
  }
  const Outcome outcome = harness.run(frames);
  EXPECT_EQ(outcome.dropped_for("too_short"), 34U);
  EXPECT_EQ(outcome.dropped_for("bad_total_length"), 26U);
  EXPECT_TRUE(outcome.outputs.empty());
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

TEST(Ipv4Check, ChecksCanBeTurnedOff) {
  ModuleHarness harness("ipv4_check", {{"check_checksum", false}, {"drop_martians", false}});
  Bytes frame = make_frame({.ip_src = 0x7f000001});
  frame[24] ^= 0xff;
  EXPECT_EQ(harness.run({frame}).outputs.size(), 1U);
  frame[14] = 0x55;
  EXPECT_EQ(harness.run({frame}).dropped_for("bad_version"), 1U);
}

TEST(Ipv4Check, OtherOffset) {
  ModuleHarness harness("ipv4_check", {{"l3_offset_bytes", 18}});
  Bytes frame = make_frame();
  frame.insert(frame.begin() + 12, {0x81, 0x00, 0x00, 0x05});
  const Outcome outcome = harness.run({frame, make_frame()});
  ASSERT_EQ(outcome.outputs.size(), 1U);
  EXPECT_EQ(outcome.outputs[0].meta.l3_offset_bytes, 18);
  EXPECT_EQ(outcome.outputs[0].meta.l4_offset_bytes, 38);
  EXPECT_EQ(outcome.drops.size(), 1U);
}

// The checksum or an earlier check catches any single bit error in a header.
TEST(Ipv4Check, EveryFlippedBitIsNoticed) {
  ModuleHarness harness("ipv4_check");
  for (uint32_t bit = 0; bit < 160; ++bit) {
    Bytes frame = make_frame();
    frame[14 + bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
    EXPECT_EQ(harness.run({frame}).drops.size(), 1U) << bit;
  }
}

// The fast path and the full check agree on random headers.
TEST(Ipv4Check, AgreesWithTheChecksumSum) {
  ModuleHarness harness("ipv4_check", {{"drop_martians", false}});
  Rng rng(11);
  for (int round = 0; round < 200; ++round) {
    Bytes frame = make_frame();
    for (uint32_t at = 18; at < 34; ++at) frame[at] = static_cast<uint8_t>(rng.next());
    if (round % 2 == 0) mend_ipv4_checksum(frame);
    const uint32_t sum = net::checksum_add(&frame[14], 20);
    const bool is_good = (sum & 0xffff) + (sum >> 16) == 0xffff;
    EXPECT_EQ(harness.run({frame}).outputs.size(), is_good ? 1U : 0U);
  }
}

}  // namespace
}  // namespace batchplane
