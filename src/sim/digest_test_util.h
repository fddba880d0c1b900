// SPDX-License-Identifier: BSD-3-Clause
// digest_test_util.h - a digest of everything that a simulation did: every execution, every
// packet's path, counters and histograms.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"
#include "slo/controllers.h"

namespace batchplane::sim {

// FNV-1a over 64-bit words, byte by byte.
struct Digest {
  uint64_t value = 0xcbf29ce484222325ULL;
  void add(uint64_t word) {
    for (int i = 0; i < 8; ++i) {
      value = (value ^ (word & 0xff)) * 0x100000001b3ULL;
      word >>= 8;
    }
  }
};

// 30 periods of 100 us under a controller, with a change of rate, an SLO edit and a stall.
inline uint64_t digest_of(const Spec& spec, const std::string& controller_name) {
  Simulation sim(spec);
  sim.recorder().limit(20'000, 200'000);
  sim.update_recording();
  const auto controller = slo::make_controller(controller_name, sim.model(), {});
  Digest digest;
  for (int period = 1; period <= 30; ++period) {
    sim.run_until(static_cast<uint64_t>(period) * 100'000);
    sim.apply(controller->step(sim.period()));
    if (period == 10) sim.source("load").set_rate(313'131.7, sim.now_ns());
    if (period == 15) sim.set_slo(spec.pipeline.flows[0].name, 77'000);
    if (period == 20) sim.stall(0, 23'456);
  }
  for (const Execution& run : sim.recorder().executions) {
    digest.add(run.start_ns);
    digest.add(run.end_ns);
    digest.add(run.module);
    digest.add(run.batch_pkts);
    digest.add(run.cause);
  }
  for (const PacketRecord& pkt : sim.recorder().packets) {
    digest.add(pkt.flow);
    digest.add(pkt.entry_ns);
    digest.add(pkt.poll_ns);
    digest.add(pkt.exit_ns);
  }
  const exec::Snapshot now = sim.snapshot(true);
  for (const exec::FlowSnapshot& flow : now.flows) {
    digest.add(flow.total.pkts);
    digest.add(flow.total.late_pkts);
    digest.add(flow.total.delay_sum_ns);
    for (const uint64_t n : flow.fine_buckets) digest.add(n);
  }
  for (const exec::ModuleSnapshot& module : now.modules) {
    digest.add(module.batches);
    digest.add(module.pkts);
    for (const exec::CauseCount& cause : module.causes) digest.add(cause.wait_ns);
  }
  return digest.value;
}

// Scenarios that use each kind of arithmetic: schedules, random choices, noise, tables, stalls.
inline std::vector<std::pair<std::string, Spec>> digest_scenarios() {
  std::vector<std::pair<std::string, Spec>> all;
  SpecMaker gateway = make_gateway(16, 0);
  gateway.source().rate_pps = 7e6;
  gateway.source().arrivals = exec::ArrivalKind::kPoisson;
  gateway.source().order = exec::Order::kRandom;
  gateway.spec().loop.poll_per_batch_ns = 21.3;
  gateway.spec().loop.egress_per_pkt_ns = 0.7;
  all.emplace_back("gateway, Poisson", gateway.spec());

  SpecMaker tree = make_tree(6, 433.7, 17.3, 0, 29.1);
  tree.source().rate_pps = 2.7e6;
  tree.source().arrivals = exec::ArrivalKind::kOnOff;
  tree.source().on_ns = 43'211;
  tree.source().off_ns = 12'347;
  tree.spec().noise_sigma = 0.13;
  tree.spec().stalls = {3'000, {1'000, 7'000, 30'000}};
  tree.spec().pipeline.engine.is_idle_hold = true;
  for (size_t f = 0; f < tree.source().flows.size(); ++f) {
    tree.source().flows[f].weight = 1.0 / (1.0 + static_cast<double>(f));
  }
  all.emplace_back("tree, on-off, noise, stalls", tree.spec());

  SpecMaker robot = make_tree(16, 4000, 3.1, 0, 80);
  robot.spec().pipeline.modules[1].kind = "split";
  robot.spec().pipeline.modules[1].params = {{"mode", Value("random")}};
  for (uint32_t i = 0; i < 16; ++i) robot.spec().pipeline.modules[2 + 2 * i].age_limit_ns = 61'803;
  robot.source().is_saturating = true;
  all.emplace_back("random leaves, saturated", robot.spec());
  return all;
}

inline std::vector<std::pair<std::string, uint64_t>> all_digests() {
  std::vector<std::pair<std::string, uint64_t>> digests;
  for (const auto& [name, spec] : digest_scenarios()) {
    for (const char* controller : {"null", "max", "fixed(5)"}) {
      digests.emplace_back(name + ", " + controller, digest_of(spec, controller));
    }
  }
  return digests;
}

}  // namespace batchplane::sim
