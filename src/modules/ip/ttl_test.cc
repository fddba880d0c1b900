// SPDX-License-Identifier: BSD-3-Clause
// ttl_test.cc - the TTL falls by one; packets whose TTL expires are dropped.
#include <gtest/gtest.h>

#include "module_harness.h"

namespace batchplane {
namespace {

constexpr uint32_t kTtlAt = net::kEthBytes + net::kIpTtl;

TEST(Ttl, DropsThePacketWhoseTtlEnds) {
  ModuleHarness harness("ttl");
  const Outcome outcome =
      harness.run({make_frame({.ttl = 0}), make_frame({.ttl = 1}), make_frame({.ttl = 2})});
  EXPECT_EQ(outcome.dropped_for("ttl_expired"), 2U);
  ASSERT_EQ(outcome.outputs.size(), 1U);
  EXPECT_EQ(outcome.outputs[0].bytes[kTtlAt], 1);
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

TEST(Ttl, MendsTheHeaderChecksum) {
  ModuleHarness harness("ttl");
  for (int ttl = 2; ttl <= 255; ++ttl) {
    Bytes expected = make_frame({.ttl = static_cast<uint8_t>(ttl)});
    const std::vector<Bytes> out = harness.run({expected}).at(0);
    expected[kTtlAt] = static_cast<uint8_t>(ttl - 1);
    mend_ipv4_checksum(expected);
    EXPECT_EQ(out, std::vector<Bytes>{expected}) << "TTL " << ttl;
  }
}

TEST(Ttl, LeavesTheChecksumWhereItIsToldTo) {
  ModuleHarness harness("ttl", {{"mend_checksum", false}});
  Bytes expected = make_frame({.ttl = 9});
  const std::vector<Bytes> out = harness.run({expected}).at(0);
  expected[kTtlAt] = 8;
  EXPECT_EQ(out, std::vector<Bytes>{expected});
}

TEST(Ttl, FindsTheHeaderBehindATag) {
  ModuleHarness harness("ttl");
  harness.meta().l3_offset_bytes = 18;
  Bytes frame = make_frame({.ttl = 9});
  const Bytes tag{0x81, 0, 0, 5};
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  const std::vector<Bytes> out = harness.run({frame}).at(0);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0][kTtlAt + 4], 8);
}

TEST(Ttl, DropsWhatEndsInsideTheHeader) {
  ModuleHarness harness("ttl");
  std::vector<Bytes> frames;
  for (const uint32_t size : {0U, 13U, 14U, 22U, 33U}) {
    frames.push_back(make_frame({.ttl = 9}));
    frames.back().resize(size);
  }
  const Outcome outcome = harness.run(frames);
  EXPECT_EQ(outcome.dropped_for("too_short"), frames.size());
  EXPECT_TRUE(outcome.outputs.empty());
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

}  // namespace
}  // namespace batchplane
