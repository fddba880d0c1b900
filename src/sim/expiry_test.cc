// SPDX-License-Identifier: BSD-3-Clause
// expiry_test.cc - buffers whose age limits pass while the machine holds the worker up: who leaves first, and how
// those that expire together come apart again.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"

namespace batchplane::sim {
namespace expiry_test {

constexpr uint64_t kHoleNs = 3'000'000;

SpecMaker holding() {
  SpecMaker maker;
  maker.spec().pipeline.engine.is_idle_hold = true;
  maker.spec().pipeline.engine.stranding_limit_ns = 1'000'000'000;
  return maker;
}

// One packet of each flow, at times that tell them apart; then a hole in which all deadlines pass. Flows in the
// order in which their packets leave.
std::vector<uint32_t> left_after_a_hole(SpecMaker& maker, uint32_t n_flows) {
  TraceArrivals& trace = maker.source().trace;
  for (uint32_t f = 0; f < n_flows; ++f) {
    trace.time_ns.push_back(100 * f);
    trace.flow.push_back(f);
    trace.size_bytes.push_back(64);
  }
  Simulation sim(maker.spec());
  sim.recorder().limit(100, 0);
  sim.update_recording();
  sim.run_until(50'000);
  EXPECT_EQ(sim.held_pkts(), n_flows);
  sim.stall(0, kHoleNs);
  sim.run_until(2 * kHoleNs);
  EXPECT_EQ(sim.held_pkts(), 0U);
  std::map<uint64_t, uint32_t> by_exit;
  for (const PacketRecord& pkt : sim.recorder().packets) by_exit[pkt.exit_ns] = pkt.flow;
  std::vector<uint32_t> flows;
  for (const auto& [exit_ns, flow] : by_exit) flows.push_back(flow);
  return flows;
}

TEST(Expiry, TheEarliestDeadlineLeavesFirst) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    SpecMaker maker = holding();
    maker.module("split", "l2_table", 10, 1).edge("in", "split");
    std::map<uint64_t, uint32_t> by_deadline;
    constexpr uint32_t kLeaves = 12;
    for (uint32_t i = 0; i < kLeaves; ++i) {
      const std::string n = std::to_string(i);
      const uint64_t limit_ns = 100'000 + random() % 2'000'000;
      maker.module("leaf_" + n, "cost", 1'000, 5, 32, limit_ns).module("out_" + n, "sink", 0, 0);
      maker.edge("split", "leaf_" + n, n).edge("leaf_" + n, "out_" + n);
      maker.flow("f_" + n, {"in", "split", "leaf_" + n, "out_" + n}, {{"split", n}});
      by_deadline[limit_ns + 100 * i] = i;
    }
    std::vector<uint32_t> expected;
    for (const auto& [at_ns, i] : by_deadline) expected.push_back(i);
    EXPECT_EQ(left_after_a_hole(maker, kLeaves), expected) << "trial " << trial;
  }
}

// A packet that comes into another buffer may be more urgent there than what else is due.
TEST(Expiry, WhatComesIntoAnotherBufferLeavesByItsDeadlineThere) {
  for (const uint64_t beside_ns : {320'000, 400'000}) {
    SpecMaker maker = holding();
    maker.module("split", "l2_table", 10, 1).module("first", "cost", 1'000, 5, 8, 300'000);
    maker.module("second", "cost", 1'000, 5, 8, 350'000).module("out", "sink", 0, 0);
    maker.module("beside", "cost", 1'000, 5, 8, beside_ns).module("end", "sink", 0, 0);
    maker.edge("in", "split").edge("split", "first", "0").edge("split", "beside", "1");
    maker.chain({"first", "second", "out"}).edge("beside", "end");
    maker.flow("long", {"in", "split", "first", "second", "out"}, {{"split", "0"}});
    maker.flow("short", {"in", "split", "beside", "end"}, {{"split", "1"}});
    const std::vector<uint32_t> expected =
        beside_ns < 350'000 ? std::vector<uint32_t>{1, 0} : std::vector<uint32_t>{0, 1};
    EXPECT_EQ(left_after_a_hole(maker, 2), expected) << beside_ns;
  }
}

}  // namespace expiry_test
}  // namespace batchplane::sim
