// SPDX-License-Identifier: BSD-3-Clause
// split_test.cc - shares, determinism and flow affinity of every mode.
#include <gtest/gtest.h>

#include <set>

#include "module_harness.h"

namespace batchplane {
namespace {

std::vector<Bytes> flows(uint32_t first, uint32_t n) {
  std::vector<Bytes> frames;
  for (uint32_t i = first; i < first + n; ++i)
    frames.push_back(make_frame({.ip_src = 0x0a000000 + i}));
  return frames;
}

std::vector<double> shares(ModuleHarness& harness, uint32_t n_gates, uint32_t n_batches) {
  std::vector<double> share(n_gates);
  for (uint32_t b = 0; b < n_batches; ++b) {
    for (const uint32_t gate : harness.run(flows(b * 200, 200)).gates()) {
      share.at(gate) += 1.0 / (200.0 * n_batches);
    }
  }
  return share;
}

TEST(Split, RoundRobinGoesOnAcrossBatches) {
  ModuleHarness harness("split", {{"gates", 3}});
  EXPECT_EQ(harness.run(flows(0, 4)).gates(), (std::vector<uint32_t>{0, 1, 2, 0}));
  EXPECT_EQ(harness.run(flows(0, 3)).gates(), (std::vector<uint32_t>{1, 2, 0}));
  ModuleHarness young("split", {{"gates", 3}});
  young.module().adopt(harness.module());
  EXPECT_EQ(young.run(flows(0, 1)).gates(), (std::vector<uint32_t>{1}));
}

TEST(Split, RandomIsUniformAndSeeded) {
  const Dict params{{"mode", "random"}, {"gates", 5}, {"seed", 3}};
  ModuleHarness one("split", params);
  ModuleHarness two("split", params);
  ModuleHarness other("split", {{"mode", "random"}, {"gates", 5}, {"seed", 4}});
  const std::vector<uint32_t> gates = one.run(flows(0, 100)).gates();
  EXPECT_EQ(gates, two.run(flows(0, 100)).gates());
  EXPECT_NE(gates, other.run(flows(0, 100)).gates());
  for (const double share : shares(one, 5, 100)) EXPECT_NEAR(share, 0.2, 0.012);
}

TEST(Split, WeightedFollowsTheWeights) {
  ModuleHarness harness("split",
                        {{"mode", "weighted"}, {"gates", 3}, {"weights", List{6, 0, 2.0}}});
  std::vector<double> share = shares(harness, 3, 100);
  EXPECT_NEAR(share[0], 0.75, 0.012);
  EXPECT_EQ(share[1], 0);
  harness.command("set", Dict{{"weights", List{0, 1, 0}}});
  share = shares(harness, 3, 2);
  EXPECT_NEAR(share[1], 1.0, 1e-9);
  EXPECT_EQ(harness.module().saved_params().at("weights"), Value(List{0.0, 1.0, 0.0}));
}

TEST(Split, HashKeepsFlowsTogetherAndSpreadsThem) {
  ModuleHarness harness("split", {{"mode", "hash"}, {"gates", 4}});
  const std::vector<uint32_t> gates = harness.run(flows(0, 200)).gates();
  EXPECT_EQ(harness.run(flows(0, 200)).gates(), gates);
  for (const double share : shares(harness, 4, 100)) EXPECT_NEAR(share, 0.25, 0.015);
  ModuleHarness weighted("split", {{"mode", "hash"}, {"gates", 2}, {"weights", List{1, 3}}});
  EXPECT_NEAR(shares(weighted, 2, 100)[0], 0.25, 0.015);
}

uint32_t gate_of(ModuleHarness& harness, const Bytes& frame) {
  return harness.run({frame}).gates().at(0);
}

TEST(Split, HashSeesTheFiveTupleOnly) {
  ModuleHarness harness("split", {{"mode", "hash"}, {"gates", 4096}});
  const FrameSpec base;
  const uint32_t gate = gate_of(harness, make_frame(base));
  FrameSpec same = base;
  same.ttl = 3;
  same.len_bytes = 200;
  same.dst = {6, 6, 6, 6, 6, 6};
  EXPECT_EQ(gate_of(harness, make_frame(same)), gate);
  for (int change = 0; change < 5; ++change) {
    FrameSpec spec = base;
    if (change == 0) spec.ip_src += 1;
    if (change == 1) spec.ip_dst += 1;
    if (change == 2) spec.port_src += 1;
    if (change == 3) spec.port_dst += 1;
    if (change == 4) spec.proto = net::kProtoTcp;
    EXPECT_NE(gate_of(harness, make_frame(spec)), gate) << change;
  }
}

TEST(Split, FragmentsStayTogether) {
  ModuleHarness harness("split", {{"mode", "hash"}, {"gates", 4096}});
  Bytes first = make_frame();
  first[20] = 0x20;  // more fragments
  Bytes second = make_frame({.port_src = 7, .port_dst = 9});
  second[21] = 10;  // offset: what follows is payload
  EXPECT_EQ(gate_of(harness, first), gate_of(harness, second));
}

TEST(Split, HashTakesAnyFrameButStubs) {
  ModuleHarness harness("split", {{"mode", "hash"}, {"gates", 4}});
  std::vector<Bytes> frames;
  for (uint32_t len = 0; len < 60; ++len) {
    Bytes frame = make_frame();
    frame.resize(len);
    frames.push_back(frame);
  }
  Bytes tall = make_frame();
  tall[14] = 0x4f;  // a header beyond the packet's end
  frames.push_back(tall);
  const Outcome outcome = harness.run(frames);
  EXPECT_EQ(outcome.dropped_for("too_short"), 14U);
  EXPECT_EQ(outcome.outputs.size(), 47U);
}

TEST(Split, RefusesBadParameters) {
  EXPECT_THROW(ModuleHarness("split", {{"gates", 0}}), ConfigError);
  EXPECT_THROW(ModuleHarness("split", Dict{}), ConfigError);
  EXPECT_THROW(ModuleHarness("split", {{"gates", 2}, {"mode", "weighted"}}), ConfigError);
  EXPECT_THROW(ModuleHarness("split", {{"gates", 2}, {"mode", "random"}, {"weights", List{1, 1}}}),
               ConfigError);
  EXPECT_THROW(ModuleHarness("split", {{"gates", 2}, {"mode", "weighted"}, {"weights", List{1}}}),
               ConfigError);
  EXPECT_THROW(
      ModuleHarness("split", {{"gates", 2}, {"mode", "weighted"}, {"weights", List{0, 0}}}),
      ConfigError);
  EXPECT_THROW(
      ModuleHarness("split", {{"gates", 2}, {"mode", "weighted"}, {"weights", List{-1, 2}}}),
      ConfigError);
  ModuleHarness harness("split", {{"gates", 2}});
  EXPECT_THROW(harness.command("set", Dict{{"weights", List{1, 1}}}), ConfigError);
}

}  // namespace
}  // namespace batchplane
