// SPDX-License-Identifier: BSD-3-Clause
// mac_rewrite_test.cc - either address, both or none, live changes, short frames.
#include <gtest/gtest.h>

#include "module_harness.h"

namespace batchplane {
namespace {

constexpr const char* kNewDst = "0a:0b:0c:0d:0e:0f";
constexpr const char* kNewSrc = "1a:1b:1c:1d:1e:1f";

Bytes expected(bool sets_dst, bool sets_src) {
  FrameSpec spec;
  if (sets_dst) spec.dst = {0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f};
  if (sets_src) spec.src = {0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f};
  return make_frame(spec);
}

TEST(MacRewrite, EachCombination) {
  for (const bool sets_dst : {false, true}) {
    for (const bool sets_src : {false, true}) {
      Dict params;
      if (sets_dst) params["dst"] = kNewDst;
      if (sets_src) params["src"] = kNewSrc;
      ModuleHarness harness("mac_rewrite", params);
      EXPECT_EQ(harness.run({make_frame()}).at(0),
                std::vector<Bytes>{expected(sets_dst, sets_src)});
      EXPECT_EQ(harness.module().saved_params(), params);
    }
  }
}

TEST(MacRewrite, ShortFramesAreDropped) {
  ModuleHarness harness("mac_rewrite", {{"dst", kNewDst}, {"src", kNewSrc}});
  std::vector<Bytes> frames;
  for (uint32_t len = 0; len <= 14; ++len) frames.push_back(Bytes(len, 7));
  const Outcome outcome = harness.run(frames);
  EXPECT_EQ(outcome.dropped_for("too_short"), 14U);
  EXPECT_EQ(outcome.outputs.size(), 1U);
}

TEST(MacRewrite, LiveChange) {
  ModuleHarness harness("mac_rewrite", {{"dst", kNewDst}});
  harness.command("set", Dict{{"src", kNewSrc}});
  EXPECT_EQ(harness.run({make_frame()}).at(0), std::vector<Bytes>{expected(true, true)});
  EXPECT_THROW(harness.command("set", Dict{{"src", "no"}}), ConfigError);
  EXPECT_THROW(harness.command("set", Dict{{"source", kNewSrc}}), ConfigError);
  EXPECT_THROW(harness.command("add", Dict{}), ConfigError);
  EXPECT_EQ(harness.module().saved_params(), (Dict{{"dst", kNewDst}, {"src", kNewSrc}}));
}

TEST(MacRewrite, RefusesBadAddresses) {
  EXPECT_THROW(ModuleHarness("mac_rewrite", {{"dst", "0a:0b"}}), ConfigError);
}

}  // namespace
}  // namespace batchplane
