// SPDX-License-Identifier: BSD-3-Clause
// checksum_test.cc - modes full, incremental and check against a plain sum; malformed headers.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "module_harness.h"

namespace batchplane {
namespace {

bool is_right(const Bytes& frame) {
  return net::checksum_finish(net::checksum_add(&frame[14], (frame[14] & 15U) * 4)) == 0;
}

Bytes random_header(Rng& rng, uint32_t options_bytes) {
  Bytes frame = make_frame({.len_bytes = 120, .options_bytes = options_bytes});
  for (uint32_t at = 15; at < 34 + options_bytes; ++at)
    frame[at] = static_cast<uint8_t>(rng.next());
  return frame;
}

TEST(Checksum, FullWritesTheRightSum) {
  ModuleHarness harness("checksum");
  Rng rng(1);
  for (uint32_t options_bytes = 0; options_bytes <= 40; options_bytes += 4) {
    std::vector<Bytes> frames;
    for (int i = 0; i < 50; ++i) frames.push_back(random_header(rng, options_bytes));
    const std::vector<Bytes> out = harness.run(frames).at(0);
    ASSERT_EQ(out.size(), frames.size());
    for (size_t i = 0; i < out.size(); ++i) {
      Bytes expected = frames[i];
      mend_ipv4_checksum(expected);
      EXPECT_EQ(out[i], expected);
      EXPECT_TRUE(is_right(out[i]));
    }
  }
}

TEST(Checksum, IncrementalFollowsTheTtl) {
  for (const int steps : {1, 3, 255}) {
    ModuleHarness harness("checksum", {{"mode", "incremental"}, {"ttl_steps", steps}});
    Rng rng(2);
    std::vector<Bytes> frames;
    for (int i = 0; i < 200; ++i) {
      Bytes frame = random_header(rng, i % 2 == 0 ? 0 : 8);
      frame[22] =
          static_cast<uint8_t>(steps + rng.below(256 - steps));  // a TTL never falls below 0
      mend_ipv4_checksum(frame);
      frame[22] = static_cast<uint8_t>(frame[22] - steps);
      frames.push_back(frame);
    }
    for (const Bytes& frame : harness.run(frames).at(0)) EXPECT_TRUE(is_right(frame));
  }
}

TEST(Checksum, IncrementalKeepsAWrongSumWrong) {
  ModuleHarness harness("checksum", {{"mode", "incremental"}});
  Bytes frame = make_frame();
  frame[22] -= 1;
  frame[24] ^= 0x10;
  EXPECT_FALSE(is_right(harness.run({frame}).at(0)[0]));
}

TEST(Checksum, CheckDropsWrongSums) {
  ModuleHarness harness("checksum", {{"mode", "check"}});
  Bytes wrong = make_frame();
  wrong[25] ^= 1;
  Bytes wrong_option = make_frame({.options_bytes = 4});
  wrong_option[34] ^= 1;
  const Outcome outcome =
      harness.run({make_frame(), wrong, make_frame({.options_bytes = 8}), wrong_option});
  EXPECT_EQ(outcome.outputs.size(), 2U);
  EXPECT_EQ(outcome.dropped_for("bad_checksum"), 2U);
}

TEST(Checksum, MalformedHeadersAreDropped) {
  for (const char* mode : {"full", "incremental", "check"}) {
    ModuleHarness harness("checksum", {{"mode", mode}});
    std::vector<Bytes> frames;
    for (uint32_t len = 0; len < 34; ++len) frames.push_back(Bytes(len, 0x45));
    Bytes version = make_frame();
    version[14] = 0x65;
    Bytes small = make_frame();
    small[14] = 0x44;
    Bytes large = make_frame();
    large[14] = 0x4f;
    frames.insert(frames.end(), {version, small, large});
    const Outcome outcome = harness.run(frames);
    EXPECT_EQ(outcome.dropped_for("too_short"), 34U) << mode;
    EXPECT_EQ(outcome.dropped_for("bad_version"), 1U) << mode;
    EXPECT_EQ(outcome.dropped_for("bad_header_length"), 2U) << mode;
    EXPECT_TRUE(outcome.outputs.empty());
  }
}

TEST(Checksum, UsesTheKnownOffset) {
  ModuleHarness harness("checksum");
  harness.meta().l3_offset_bytes = 18;
  Bytes frame = make_frame();
  Bytes expected = frame;
  frame[24] = frame[25] = 0;
  for (Bytes* bytes : {&frame, &expected}) bytes->insert(bytes->begin() + 12, {0x81, 0, 0, 1});
  EXPECT_EQ(harness.run({frame}).at(0), std::vector<Bytes>{expected});
}

TEST(Checksum, RefusesUnknownModes) {
  EXPECT_THROW(ModuleHarness("checksum", {{"mode", "some"}}), ConfigError);
}

}  // namespace
}  // namespace batchplane
