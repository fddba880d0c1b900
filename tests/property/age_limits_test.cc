// SPDX-License-Identifier: BSD-3-Clause
// age_limits_test.cc - no packet waits in a task beyond its limit and the run allowance: random
// pipelines under load steps, flows that stop, changes of triggers and limits, in virtual time.
//
// 2 million packets; BATCHPLANE_LONG=1: 100 million.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "property/age_scenario.h"

namespace batchplane::sim {
namespace {

struct Worst {
  uint64_t pkts = 0;
  uint64_t age_releases = 0;
  uint64_t n_over_limit = 0;  // segments in which some packet used the allowance
  double allowance_used = 0;  // largest share
};

class AgeRun {
 public:
  AgeRun(uint64_t seed, Worst& worst)
      : seed_(seed), scenario_(seed), sim_(scenario_.spec()), worst_(worst) {
    for (const ModuleSpec& module : scenario_.spec().pipeline.modules) {
      const uint64_t limit_ns = module.age_limit_ns != 0
                                    ? module.age_limit_ns
                                    : scenario_.spec().pipeline.engine.stranding_limit_ns;
      buffers_.push_back({module.trigger_pkts, module.trigger_pkts, limit_ns});
    }
  }

  void run() {
    Rng& rng = scenario_.rng();
    for (int segment = 0; segment < 20; ++segment) {
      sim_.recorder().watch_ages(buffers_.size());
      sim_.update_recording();
      sim_.run_until(sim_.now_ns() + 20'000 + rng.below(1'000'000));
      check();
      change_load(rng);
      change_buffers(rng);
      sim_.set_idle_hold(rng.below(3) != 0);
    }
    const exec::Snapshot now = sim_.snapshot(false);
    worst_.pkts += now.balance.in_pkts;
    for (const exec::ModuleSnapshot& module : now.modules) {
      worst_.age_releases += module.causes[static_cast<uint32_t>(exec::Cause::kAge)].firings;
    }
  }

 private:
  void check() {
    const AllowanceBound bound(sim_.graph(), scenario_.spec(), buffers_);
    std::vector<double> of_worker(sim_.graph().worker_names.size(), 0);
    for (const auto& task : sim_.graph().tasks) of_worker[task->worker] += bound.window_ns(*task);
    bool is_over = false;
    for (const auto& task : sim_.graph().tasks) {
      const double allowance_ns = of_worker[task->worker] + 2;  // readings are whole nanoseconds
      for (const uint32_t m : task->modules) {
        const auto age_ns = static_cast<double>(sim_.recorder().ages[m].worst_ns);
        const auto limit_ns = static_cast<double>(bound.limit_ns(*task, m));
        ASSERT_LE(age_ns, limit_ns + allowance_ns)
            << "seed " << seed_ << ", " << sim_.graph().modules[m]->name << " at " << sim_.now_ns()
            << " ns, limit " << limit_ns << " ns, allowance " << allowance_ns;
        is_over |= age_ns > limit_ns;
        worst_.allowance_used = std::max(worst_.allowance_used, (age_ns - limit_ns) / allowance_ns);
      }
    }
    worst_.n_over_limit += is_over ? 1 : 0;
  }

  void change_load(Rng& rng) {
    Source& source = sim_.source("load");
    const uint64_t now_ns = sim_.now_ns();
    const uint32_t what = rng.below(6);
    source.set_on(what != 0, now_ns);                                      // flows stop,
    source.set_saturating(what == 1, now_ns);                              // fill the ring,
    if (what == 2) source.set_rate(source.spec().rate_pps / 100, now_ns);  // fall to a hundredth,
    if (what == 3) source.set_rate(scenario_.rate_pps(), now_ns);          // or go on elsewhere
  }

  // Until the next check either the old or the new settings may have been in force.
  void change_buffers(Rng& rng) {
    exec::Decision decision;
    const bool changes = rng.below(3) == 0;
    for (uint32_t m = 0; m < buffers_.size(); ++m) {
      BufferRange& now = buffers_[m];
      if (changes && sim_.model().modules[m].has_buffer && rng.below(2) == 0) {
        decision.changes.push_back({m, scenario_.trigger_pkts(), scenario_.limit_ns(), "test"});
      }
      const uint32_t was_pkts = trigger_of(m);
      now = {was_pkts, was_pkts, limit_of(m)};
    }
    for (const exec::BufferChange& change : decision.changes) {
      BufferRange& now = buffers_[change.module];
      now.low_pkts = std::min(now.low_pkts, change.trigger_pkts);
      now.high_pkts = std::max(now.high_pkts, change.trigger_pkts);
      now.limit_ns = std::max(now.limit_ns, change.age_limit_ns);
    }
    sim_.apply(decision);
  }

  uint32_t trigger_of(uint32_t m) {
    return sim_.model().modules[m].has_buffer ? sim_.trigger_pkts(m) : 0;
  }
  uint64_t limit_of(uint32_t m) { return sim_.snapshot(false).modules[m].age_limit_ns; }

  uint64_t seed_;
  AgeScenario scenario_;
  Simulation sim_;
  std::vector<BufferRange> buffers_;
  Worst& worst_;
};

TEST(AgeLimits, NoPacketIsOlderThanItsLimitAndTheRunAllowance) {
  const char* const is_long = std::getenv("BATCHPLANE_LONG");
  const uint64_t wanted =
      is_long != nullptr && std::string(is_long) == "1" ? 100'000'000 : 2'000'000;
  Worst worst;
  uint64_t seed = 1;
  for (; worst.pkts < wanted; ++seed) {
    AgeRun(seed, worst).run();
    if (HasFatalFailure()) return;
  }
  std::printf("%llu packets, %llu scenarios, %llu releases by age, %.2f of an allowance used\n",
              static_cast<unsigned long long>(worst.pkts),
              static_cast<unsigned long long>(seed - 1),
              static_cast<unsigned long long>(worst.age_releases), worst.allowance_used);
  // The scenarios do what they are for: limits decide, and are overrun by what may overrun them.
  EXPECT_GT(worst.age_releases, wanted / 1000);
  EXPECT_GT(worst.n_over_limit, 50U);
  EXPECT_GT(worst.allowance_used, 0.3);
}

// One buffer, one packet: released at the first check after its limit, to the nanosecond.
TEST(AgeLimits, APacketAloneLeavesAtItsLimit) {
  SpecMaker maker;
  maker.module("held", "cost", 100, 0, 32, 50'000).module("out", "sink", 0, 0);
  maker.chain({"in", "held", "out"}).flow("f", {"in", "held", "out"}, {});
  maker.spec().pipeline.engine.is_idle_hold = true;
  maker.spec().loop.empty_poll_ns = 1;
  maker.source().limit_pkts = 1;
  Simulation sim(maker.spec());
  sim.recorder().watch_ages(3);
  sim.recorder().limit(1, 0);
  sim.update_recording();
  sim.run_until(1'000'000);
  EXPECT_EQ(sim.recorder().ages[1].pkts, 1U);
  EXPECT_EQ(sim.recorder().ages[1].worst_ns, 50'000U);
  ASSERT_EQ(sim.recorder().packets.size(), 1U);
  EXPECT_EQ(sim.recorder().packets[0].exit_ns, sim.recorder().packets[0].poll_ns + 50'100);
}

}  // namespace
}  // namespace batchplane::sim
