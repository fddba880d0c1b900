// SPDX-License-Identifier: BSD-3-Clause
// baselines_test.cc - the papers' controllers on the real executor, in virtual time.
#include <gtest/gtest.h>

#include <memory>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"
#include "slo/controllers.h"

namespace batchplane::sim {
namespace baselines_test {

constexpr uint64_t kPeriodNs = 10'000'000;

// A tree whose leaves take 1000 ns per batch and 50 ns per packet, under load, with one SLO for all
// flows.
struct Controlled {
  Controlled(uint32_t n_leaves, double rate_pps, uint64_t slo_ns, const char* name) {
    SpecMaker maker = make_tree(n_leaves, 1000, 50, 0, 20);
    maker.source().rate_pps = rate_pps;
    maker.source().arrivals = exec::ArrivalKind::kPoisson;
    for (auto& flow : maker.spec().pipeline.flows) flow.delay_slo_ns = slo_ns;
    simulation = std::make_unique<Simulation>(maker.spec());
    simulation->set_idle_hold(
        true);  // as in the papers: an idle core waits for its buffers to fill
    controller = slo::make_controller(name, simulation->model(), {});
  }
  exec::PeriodSnapshot step() {
    simulation->run_until(simulation->now_ns() + kPeriodNs);
    exec::PeriodSnapshot period = simulation->period();
    decision = controller->step(period);
    simulation->apply(decision);
    return period;
  }
  // Busy share of the core, from the executed batches and packets.
  static double load_of(const exec::PeriodSnapshot& period) {
    double busy_ns = 0;
    for (const exec::ModulePeriod& module : period.modules) {
      busy_ns += module.cost.line().work_ns(static_cast<double>(module.batches),
                                            static_cast<double>(module.pkts));
    }
    return busy_ns / static_cast<double>(period.period_ns);
  }

  std::unique_ptr<Simulation> simulation;
  std::unique_ptr<slo::Controller> controller;
  exec::Decision decision;
};

TEST(FullSimulated, ConvergesOnATreeOfFourWithinTenPeriods) {
  for (const uint64_t slo_ns : {30'000, 60'000, 500'000}) {
    Controlled run(4, 3e6, slo_ns, "full");
    std::vector<double> load;
    int n_late = 0;
    for (int i = 0; i < 40; ++i) {
      const exec::PeriodSnapshot period = run.step();
      load.push_back(Controlled::load_of(period));
      if (i < 10) continue;
      for (const exec::FlowPeriod& flow : period.flows) n_late += flow.delay_ns > slo_ns ? 1 : 0;
    }
    for (size_t i = 10; i < load.size(); ++i) {
      EXPECT_NEAR(load[i], load.back(), 0.05 * load.back()) << slo_ns << " ns, period " << i;
    }
    EXPECT_LE(n_late, 6) << slo_ns << " ns: of 120 flow periods";
  }
}

TEST(FullSimulated, WithoutSloEndsAsMaxAndSavesLoad) {
  Controlled full(4, 3e6, 0, "full");
  Controlled null(4, 3e6, 0, "null");
  double full_load = 0;
  double null_load = 0;
  for (int i = 0; i < 15; ++i) {
    full_load = Controlled::load_of(full.step());
    null_load = Controlled::load_of(null.step());
  }
  const exec::PeriodSnapshot period = full.step();
  for (size_t m = 0; m < period.modules.size(); ++m) {
    const bool is_controlled = full.simulation->model().modules[m].is_controlled;
    EXPECT_EQ(period.modules[m].trigger_pkts, is_controlled ? 32U : 0U);
  }
  EXPECT_LT(full_load, 0.5 * null_load);
}

TEST(FullSimulated, AnSloEditIsFollowedInThePeriodAfter) {
  Controlled run(4, 3e6, 500'000, "full");
  for (int i = 0; i < 15; ++i) run.step();
  run.simulation->set_slo("flow_0", 30'000);
  run.step();  // sees the flow late
  EXPECT_FALSE(run.decision.changes.empty());
  run.step();  // still holds packets of the previous period
  const exec::PeriodSnapshot after = run.step();
  EXPECT_LE(after.flows[0].delay_ns, 30'000U);
}

// The load drops by a factor of 100. Without an age limit packets wait for their buffer to fill
// until the next decision; with one, none is older than its SLO allows.
TEST(FullAgeSimulated, HoldsTheSloWhenTheLoadFalls) {
  uint64_t worst_ns[2] = {};
  for (const bool has_age : {false, true}) {
    Controlled run(4, 3e6, 60'000, has_age ? "full+age" : "full");
    for (int i = 0; i < 15; ++i) run.step();
    run.simulation->source("load").set_rate(3e4, run.simulation->now_ns());
    const exec::PeriodSnapshot period = run.step();
    for (const exec::FlowPeriod& flow : period.flows) {
      worst_ns[has_age ? 1 : 0] = std::max(worst_ns[has_age ? 1 : 0], flow.delay_max_ns);
    }
  }
  EXPECT_GT(worst_ns[0], 500'000U);
  EXPECT_LE(worst_ns[1], 60'000U);
}

TEST(OnOffSimulated, IsFullOrBypassed) {
  Controlled run(4, 3e6, 60'000, "onoff");
  for (int i = 0; i < 10; ++i) {
    run.step();
    for (const exec::BufferChange& change : run.decision.changes) {
      EXPECT_TRUE(change.trigger_pkts == 0 || change.trigger_pkts == 32);
    }
  }
}

}  // namespace baselines_test
}  // namespace batchplane::sim
