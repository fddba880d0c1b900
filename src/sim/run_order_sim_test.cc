// SPDX-License-Identifier: BSD-3-Clause
// run_order_sim_test.cc - the run order by deadline: urgent packets overtake heavy batches; no
// packet is lost, stranded or out of order within its flow; the same packets leave as in depth
// order.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"

namespace batchplane::sim {
namespace run_order_sim_test {

constexpr double kHeavyNs = 10'000;

// in -> split -> 4 heavy leaves before one light one, whose flow has an SLO of 20 us.
SpecMaker make_mixed(uint32_t trigger_pkts) {
  SpecMaker maker;
  maker.module("split", "l2_table", 10, 1).edge("in", "split");
  for (uint32_t i = 0; i < 5; ++i) {
    const std::string n = std::to_string(i);
    const bool is_heavy = i < 4;
    maker.module("leaf_" + n, "cost", is_heavy ? kHeavyNs : 20, 5, is_heavy ? trigger_pkts : 0);
    maker.module("out_" + n, "sink", 5, 2);
    maker.edge("split", "leaf_" + n, n).edge("leaf_" + n, "out_" + n);
    maker.flow(is_heavy ? "bulk_" + n : "tight", {"in", "split", "leaf_" + n, "out_" + n},
               {{"split", n}}, is_heavy ? 100'000'000 : 20'000);
  }
  maker.spec().pipeline.engine.stranding_limit_ns = 2'000'000;
  return maker;
}

std::vector<uint64_t> tight_delays_ns(Simulation& sim, uint32_t flow) {
  std::vector<uint64_t> delays_ns;
  for (const PacketRecord& pkt : sim.recorder().packets) {
    if (pkt.flow == flow && pkt.exit_ns != 0) delays_ns.push_back(pkt.exit_ns - pkt.entry_ns);
  }
  return delays_ns;
}

uint64_t lone_tight_delay_ns(bool by_deadline) {
  SpecMaker maker = make_mixed(0);
  maker.spec().pipeline.engine.runs_by_deadline = by_deadline;
  // One packet for each heavy leaf; a packet with little slack arrives while the first of them
  // runs.
  maker.source().trace = {{0, 0, 0, 0, 1'000}, {0, 1, 2, 3, 4}, {64, 64, 64, 64, 64}};
  Simulation sim(maker.spec());
  sim.recorder().limit(100, 0);
  sim.update_recording();
  sim.run_until(1'000'000);
  EXPECT_EQ(sim.held_pkts(), 0U);
  const auto delays_ns = tight_delays_ns(sim, 4);
  EXPECT_EQ(delays_ns.size(), 1U);
  return delays_ns.empty() ? 0 : delays_ns[0];
}

TEST(RunOrder, ATightPacketWaitsForOneHeavyBatchAndNotForAll) {
  EXPECT_GT(lone_tight_delay_ns(false), static_cast<uint64_t>(3.5 * kHeavyNs));
  EXPECT_LT(lone_tight_delay_ns(true), static_cast<uint64_t>(1.1 * kHeavyNs));
}

TEST(RunOrder, TheTightFlowsDelayFallsAtTheSameRate) {
  double rate[2];
  uint64_t p95_ns[2];
  for (const bool by_deadline : {false, true}) {
    SpecMaker maker = make_mixed(32);
    maker.spec().pipeline.engine.runs_by_deadline = by_deadline;
    maker.spec().pipeline.engine.is_idle_hold = true;
    maker.source().is_saturating = true;
    maker.source().order = exec::Order::kRandom;
    Simulation sim(maker.spec());
    sim.recorder().limit(100'000, 0);
    sim.update_recording();
    sim.run_until(20'000'000);
    rate[by_deadline] = static_cast<double>(sim.snapshot(false).balance.sent_pkts);
    auto delays_ns = tight_delays_ns(sim, 4);
    ASSERT_GT(delays_ns.size(), 1000U);
    std::ranges::sort(delays_ns);
    p95_ns[by_deadline] = delays_ns[delays_ns.size() * 95 / 100];
  }
  EXPECT_NEAR(rate[1] / rate[0], 1, 0.01);
  EXPECT_LT(static_cast<double>(p95_ns[1]), 0.75 * static_cast<double>(p95_ns[0]));
}

// --- no packet lost, stranded or out of order ----------------------------------------------------

// Branches that meet again, light and heavy mixed, some buffered, on one or two workers.
SpecMaker make_random(Rng& rng) {
  SpecMaker maker(rng.below(2) == 0 ? 32 : 8);
  Spec& spec = maker.spec();
  const uint32_t batch_pkts = spec.pipeline.engine.batch_pkts;
  const auto cost_ns = [&] { return rng.below(2) == 0 ? 3000.0 + rng.below(5000) : rng.below(60); };
  const auto trigger = [&] { return rng.below(2) == 0 ? 0 : 1 + rng.below(batch_pkts); };
  const auto limit_ns = [&] { return rng.below(2) == 0 ? 0 : 20'000 + rng.below(400'000); };
  maker.module("split", "l2_table", 10, 1).edge("in", "split");
  maker.module("merge", "cost", cost_ns(), 3, trigger(), limit_ns()).module("end", "sink", 2, 2);
  maker.edge("merge", "end");
  const uint32_t n = 2 + rng.below(6);
  for (uint32_t i = 0; i < n; ++i) {
    const std::string gate = std::to_string(i);
    const std::string a = "a_" + gate;
    const std::string b = "b_" + gate;
    maker.module(a, "cost", cost_ns(), rng.below(20), trigger(), limit_ns());
    maker.module(b, "cost", cost_ns(), rng.below(20), trigger(), limit_ns());
    maker.edge("split", a, gate).edge(a, b).edge(b, "merge");
    maker.flow("f_" + gate, {"in", "split", a, b, "merge", "end"}, {{"split", gate}},
               rng.below(2) == 0 ? 0 : 10'000 + rng.below(300'000));
  }
  spec.pipeline.engine.stranding_limit_ns = 1'000'000;
  spec.pipeline.engine.is_idle_hold = rng.below(2) == 0;
  SourceSpec& source = maker.source();
  source.order = exec::Order::kRandom;
  source.arrivals = exec::ArrivalKind::kPoisson;
  source.rate_pps = 100'000 + rng.below(3'000'000);
  source.is_saturating = rng.below(4) == 0;
  source.limit_pkts = 4000;
  source.seed = rng.next();
  return maker;
}

// Triggers and limits change during the run, in the same way for both orders.
void run_with_edits(Simulation& sim, uint64_t seed, uint32_t batch_pkts) {
  Rng rng(seed);
  for (uint64_t t_ns = 0; t_ns < 12'000'000; t_ns += 100'000) {
    sim.run_until(t_ns);
    const exec::Snapshot now = sim.snapshot(false);
    ASSERT_TRUE(now.balance.is_exact());
    exec::Decision decision;
    for (uint32_t m = 0; m < sim.model().modules.size(); ++m) {
      if (!sim.model().modules[m].has_buffer || rng.below(8) != 0) continue;
      exec::BufferChange change{};
      change.module = m;
      change.trigger_pkts = rng.below(3) == 0 ? 0 : rng.below(batch_pkts + 1);
      change.age_limit_ns = rng.below(2) == 0 ? exec::kKeepAge : 10'000 + rng.below(300'000);
      decision.changes.push_back(change);
    }
    sim.apply(decision);
    if (rng.below(4) == 0) sim.set_slo("f_0", 10'000 + rng.below(200'000));
  }
}

// Packets that left, by traffic flow.
std::map<uint32_t, uint64_t> run_to_the_end(Spec spec, bool by_deadline, uint64_t seed) {
  spec.pipeline.engine.runs_by_deadline = by_deadline;
  Simulation sim(spec);
  sim.recorder().limit(10'000, 0);
  sim.update_recording();
  run_with_edits(sim, seed, spec.pipeline.engine.batch_pkts);
  sim.run_until(600'000'000);
  EXPECT_EQ(sim.held_pkts(), 0U) << "stranded";
  EXPECT_EQ(sim.pool().in_use_pkts(), 0U);
  std::map<uint32_t, uint64_t> left;
  std::map<uint32_t, std::tuple<uint64_t, uint64_t>> last;
  for (const PacketRecord& pkt : sim.recorder().packets) {
    EXPECT_NE(pkt.exit_ns, 0U);
    EXPECT_FALSE(pkt.is_dropped);
    ++left[pkt.flow];
    // Packets are recorded as they enter.
    auto& [entry_ns, exit_ns] = last[pkt.flow];
    EXPECT_GE(pkt.entry_ns, entry_ns);
    EXPECT_GE(pkt.exit_ns, exit_ns) << "flow " << pkt.flow << " overtook itself";
    last[pkt.flow] = {pkt.entry_ns, pkt.exit_ns};
  }
  return left;
}

TEST(RunOrder, NothingIsLostStrandedOrOutOfOrderInRandomGraphs) {
  Rng rng(2026);
  for (uint32_t round = 0; round < 60; ++round) {
    SpecMaker maker = make_random(rng);
    const uint64_t seed = rng.next();
    SCOPED_TRACE("round " + std::to_string(round));
    const auto by_depth = run_to_the_end(maker.spec(), false, seed);
    const auto by_deadline = run_to_the_end(maker.spec(), true, seed);
    uint64_t pkts = 0;
    for (const auto& [flow, n] : by_depth) pkts += n;
    EXPECT_EQ(pkts, 4000U);
    EXPECT_EQ(by_depth, by_deadline);
    if (HasFailure()) return;
  }
}

TEST(RunOrder, ByDeadlineTheSameRunsGiveTheSameResult) {
  Rng rng(7);
  SpecMaker maker = make_random(rng);
  maker.spec().pipeline.engine.runs_by_deadline = true;
  uint64_t sum[2];
  for (uint64_t& exits_ns : sum) {
    Simulation sim(maker.spec());
    sim.recorder().limit(10'000, 0);
    sim.update_recording();
    sim.run_until(20'000'000);
    exits_ns = 0;
    for (const PacketRecord& pkt : sim.recorder().packets) exits_ns = exits_ns * 31 + pkt.exit_ns;
  }
  EXPECT_EQ(sum[0], sum[1]);
}

}  // namespace run_order_sim_test
}  // namespace batchplane::sim
