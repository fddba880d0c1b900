// SPDX-License-Identifier: BSD-3-Clause
// plant_test.cc - plans in virtual time: evaluate()'s predictions hold, and the placer reacts to
// changes.
#include "placement/plant.h"

#include <gtest/gtest.h>

#include "placement/choosers.h"
#include "placement/random_problems.h"
#include "placement/solve.h"

namespace batchplane::placement {
namespace plant_test {

// One slow device that draws little power, and a fast one that draws much.
Problem two_devices() {
  Problem problem;
  problem.devices = {{"small", 1, 3, 15}, {"large", 9, 55, 250}};
  problem.apps = {{"aes", Policy::kPower, 200'000, 512, 2e6, 1},
                  {"dpi", Policy::kPower, 200'000, 512, 2e6, 1}};
  problem.laws = {{{true, {3'000, 600, 0.4}}, {true, {40'000, 30, 0.08}}},
                  {{true, {3'000, 900, 0.6}}, {true, {40'000, 40, 0.10}}}};
  return problem;
}

struct Sum {
  AppRow all;
  double joules = 0;
};
Sum sum_of(const std::vector<PeriodRow>& rows, size_t from = 0) {
  Sum sum;
  for (size_t i = from; i < rows.size(); ++i) {
    sum.joules += rows[i].joules;
    for (const AppRow& app : rows[i].apps) {
      sum.all.offered_pkts += app.offered_pkts;
      sum.all.served_pkts += app.served_pkts;
      sum.all.lost_pkts += app.lost_pkts;
      sum.all.late_pkts += app.late_pkts;
      sum.all.refused_pkts += app.refused_pkts;
    }
  }
  return sum;
}
std::vector<PeriodRow> run(const PlantSpec& spec, const std::string& chooser,
                           const PlacerSettings& settings = {}) {
  return run_plant(spec, *make_chooser(chooser, spec, spec.truth, settings));
}

// Evenly spaced packets: the predicted delays of a plan hold, and so do its watts.
TEST(Plant, RunsAsEvaluatePredicts) {
  PlantSpec spec{.truth = two_devices(), .duration_ns = 2'000'000'000, .is_random = false};
  const Plan plan = solve(spec.truth, {});
  const Outcome promised = evaluate(spec.truth, plan);
  ASSERT_TRUE(promised.is_feasible);
  const auto rows = run(spec, "oracle");
  const Sum sum = sum_of(rows);
  EXPECT_EQ(sum.all.late_pkts, 0);
  EXPECT_EQ(sum.all.lost_pkts, 0);
  EXPECT_NEAR(sum.joules / 2, evaluate(spec.truth, rows.back().plan).watts, 0.02 * promised.watts);
  for (size_t a = 0; a < 2; ++a) {
    const Outcome of_rows = evaluate(spec.truth, rows.back().plan);
    EXPECT_LE(rows.back().apps[a].delay_max_ns, of_rows.delay_ns[a] * 1.0001);
  }
}

// The large device works on several batches at once: each lasts as long, and takes a fifth of the time from others.
Problem with_several_at_once() {
  Problem problem = two_devices();
  for (auto& laws : problem.laws) laws[1].batch = several_at_once(laws[1].batch, 0.2);
  return problem;
}

TEST(Plant, RunsAsPredictedWhereADeviceWorksOnSeveralBatchesAtOnce) {
  PlantSpec spec{.truth = with_several_at_once(), .duration_ns = 2'000'000'000, .is_random = false};
  for (App& app : spec.truth.apps) app.rate_pps = 12e6;
  Problem one_by_one = two_devices();
  one_by_one.apps = spec.truth.apps;
  EXPECT_LT(evaluate(one_by_one, solve(one_by_one, {})).served_value, 0.9);
  const auto rows = run(spec, "placer");
  const Sum sum = sum_of(rows, 1);
  EXPECT_GE(sum.all.served_pkts, 0.999 * sum.all.offered_pkts);
  EXPECT_EQ(sum.all.late_pkts, 0);
  const Outcome promised = evaluate(spec.truth, rows.back().plan);
  EXPECT_NEAR(sum.joules / 1.9, promised.watts, 0.02 * promised.watts);
  for (size_t a = 0; a < 2; ++a)
    EXPECT_LE(rows.back().apps[a].delay_max_ns, promised.delay_ns[a] * 1.0001);
}

TEST(Plant, FollowsAStepOfLoadWithinTwoPeriods) {
  PlantSpec spec{.truth = two_devices(), .duration_ns = 3'000'000'000};
  spec.changes = {{.at_ns = 1'050'000'000, .app = 0, .rate_pps = 3e6},
                  {.at_ns = 1'050'000'000, .app = 1, .rate_pps = 2e6}};
  const auto rows = run(spec, "placer");
  // 10 periods before the change, its own period, and two after it.
  const Sum after = sum_of(rows, 13);
  EXPECT_GE(after.all.served_pkts, 0.99 * after.all.offered_pkts);
  EXPECT_LE(after.all.late_pkts, 0.01 * after.all.served_pkts);
}

TEST(Plant, SurvivesTheLossOfADevice) {
  PlantSpec spec{.truth = two_devices(), .duration_ns = 3'000'000'000};
  spec.truth.apps[0].rate_pps = 2e6;
  spec.truth.apps[1].rate_pps = 1e6;
  spec.changes = {{.at_ns = 1'000'000'000, .device = 1, .is_up = false},
                  {.at_ns = 2'000'000'000, .device = 1, .is_up = true}};
  const auto rows = run(spec, "placer");
  const Sum sum = sum_of(rows);
  // At most the packets under way: the small device serves as much as it can, the rest is refused,
  // not lost.
  EXPECT_LE(sum.all.lost_pkts, 0.005 * sum.all.offered_pkts);
  EXPECT_GT(rows[15].apps[0].refused_pkts + rows[15].apps[1].refused_pkts, 0);
  EXPECT_GT(rows[15].apps[0].served_pkts + rows[15].apps[1].served_pkts, 0);
  EXPECT_GE(rows[25].apps[0].served_pkts, 0.99 * rows[25].apps[0].offered_pkts);
}

TEST(Plant, KeepsACapOfWatts) {
  PlantSpec spec{.truth = two_devices(), .duration_ns = 2'000'000'000};
  spec.truth.apps[0].rate_pps = 4e6;
  spec.truth.apps[1].rate_pps = 4e6;
  spec.changes = {{.at_ns = 1'000'000'000, .watt_cap = 100}};
  const auto rows = run(spec, "placer");
  EXPECT_GT(rows[5].joules * 10, 100);
  for (size_t i = 11; i < rows.size(); ++i) EXPECT_LE(rows[i].joules * 10, 101) << i;
}

// No plan changes back and forth while the load only fluctuates a little.
TEST(Plant, KeepsThePlanWhileTheLoadOnlyFluctuates) {
  PlantSpec spec{.truth = two_devices(), .duration_ns = 10'000'000'000};
  Rng rng(3);
  for (uint64_t ms = 150; ms < 10'000; ms += 100) {
    for (int a = 0; a < 2; ++a) {
      spec.changes.push_back({.at_ns = ms * 1'000'000,
                              .app = a,
                              .rate_pps = 200'000 * (0.97 + 0.06 * rng.below(1000) / 1000.0)});
    }
  }
  const auto rows = run(spec, "placer");
  uint32_t n_changes = 0;
  for (size_t i = 1; i < rows.size(); ++i) n_changes += rows[i].plan != rows[i - 1].plan ? 1 : 0;
  EXPECT_LE(n_changes, 5U);
  const Sum sum = sum_of(rows, 1);
  EXPECT_GE(sum.all.served_pkts, 0.99 * sum.all.offered_pkts);
}

// Laws too short by a factor of 1.5, and a neighbour that slows: the placer learns both, and delays
// keep their budgets.
TEST(Plant, LearnsWhatTheProfileDidNotSay) {
  PlantSpec spec{.truth = two_devices(), .duration_ns = 5'000'000'000};
  spec.truth.apps[0].rate_pps = 600'000;
  spec.truth.apps[1].rate_pps = 500'000;
  spec.truth.slowdown.assign(16, 1);
  for (size_t d = 0; d < 2; ++d) {
    for (size_t e = 0; e < 2; ++e) {
      spec.truth.slowdown[spec.truth.slot(0, d, 1, e)] = 1.4;
      spec.truth.slowdown[spec.truth.slot(1, d, 0, e)] = 1.3;
    }
  }
  Problem profiled = spec.truth;
  profiled.slowdown.clear();
  for (auto& laws : profiled.laws) {
    for (Law& law : laws) law.batch = law.batch.times(1 / 1.5);
  }
  const auto rows = run_plant(spec, *make_chooser("placer", spec, profiled, {}));
  const Sum late = sum_of(rows, 25);
  EXPECT_GE(late.all.served_pkts, 0.99 * late.all.offered_pkts);
  EXPECT_LE(late.all.late_pkts, 0.01 * late.all.served_pkts);
}

// Learned factors carry over to a placer for other applications, with devices in another order.
TEST(Placer, LearnsFromAnother) {
  Problem problem = two_devices();
  Placer old(problem);
  std::vector<Seen> seen(2);
  for (Seen& one : seen) {
    one.rate_pps = 200'000;
    one.pkt_bytes = 512;
  }
  old.step(100'000'000, seen);
  for (uint64_t ms = 200; ms < 3'000; ms += 100) {
    for (size_t a = 0; a < 2; ++a) {
      const Placed& placed = old.decision().plan[a];
      for (size_t d = 0; d < 2; ++d) {
        if (placed.share[d] <= 0) continue;
        seen[a].batch_pkts[d] = placed.batch_pkts[d];
        seen[a].batch_ns[d] = 2 * problem.laws[a][d].batch_time_ns(placed.batch_pkts[d], 512);
      }
    }
    old.step(ms * 1'000'000, seen);
  }
  Problem other = problem;
  std::swap(other.devices[0], other.devices[1]);
  for (auto& laws : other.laws) std::swap(laws[0], laws[1]);
  other.apps[1].name = "new";
  Placer next(other);
  next.learn_from(old);
  for (size_t d = 0; d < 2; ++d) {
    EXPECT_EQ(next.problem().laws[0][d], old.problem().laws[0][1 - d]);
    EXPECT_EQ(next.problem().laws[1][d], other.laws[1][d]);  // never measured
  }
  // Twice as long as profiled: blamed on the law, or on the application that ran beside it.
  double most = 1;
  for (const double factor : old.problem().slowdown) most = std::max(most, factor);
  most = std::max(most, old.problem().laws[0][0].batch.pkt_ns / problem.laws[0][0].batch.pkt_ns);
  EXPECT_GT(most, 1.8);
}

// Batches of a device that works on several at once wait for each other. That is no error of its law, however
// long they take, as long as it runs all that come; beyond that it is.
TEST(Placer, TakesBatchesSideBySideForNoErrorOfTheLaw) {
  Problem problem = with_several_at_once();
  problem.devices.erase(problem.devices.begin());
  for (auto& laws : problem.laws) laws.erase(laws.begin());
  problem.apps.pop_back();
  problem.laws.pop_back();
  const Law law = problem.laws[0][0];
  const auto learned = [&](double stretch, double busy_share) {
    Placer placer(problem);
    std::vector<Seen> seen(1);
    seen[0].rate_pps = 1e6;
    seen[0].pkt_bytes = 512;
    placer.step(100'000'000, seen);
    for (uint32_t n = 2; n < 40; ++n) {
      const uint32_t pkts = placer.decision().plan[0].batch_pkts[0];
      seen[0].batch_pkts[0] = pkts;
      seen[0].batch_ns[0] = stretch * law.batch_time_ns(pkts, 512);
      seen[0].batches_ps[0] = 1e9 * busy_share / law.batch_busy_ns(pkts, 512);
      placer.step(n * 100'000'000ULL, seen);
    }
    return placer.problem().laws[0][0].batch_time_ns(64, 512) / law.batch_time_ns(64, 512);
  };
  EXPECT_NEAR(learned(3, 0.999), 1, 0.01);
  EXPECT_NEAR(learned(3, 0.5), 2, 0.05);
  EXPECT_NEAR(learned(1.5, 0.1), 1.5, 0.05);
}

// Starting from the profile, two applications together correct a third one's factors; implausible
// times are limited.
TEST(Placer, CorrectsSlowdownsFromWhatWasMeasured) {
  Problem problem = two_devices();
  problem.devices.pop_back();
  problem.apps.push_back(problem.apps[1]);
  problem.laws = {{problem.laws[0][0]}, {problem.laws[1][0]}, {problem.laws[1][0]}};
  const auto after = [&](double profiled, double true_factor, uint32_t n_steps) {
    problem.slowdown.assign(9, 1);
    for (const size_t b : {1, 2}) problem.slowdown[problem.slot(0, 0, b, 0)] = profiled;
    Placer placer(problem);
    std::vector<Seen> seen(3);
    for (Seen& one : seen) {
      one.rate_pps = 1'000;
      one.pkt_bytes = 512;
    }
    placer.step(100'000'000, seen);
    for (uint32_t n = 0; n < n_steps; ++n) {
      const Placed& placed = placer.decision().plan[0];
      EXPECT_GT(placed.share[0], 0);
      seen[0].batch_pkts[0] = placed.batch_pkts[0];
      seen[0].batch_ns[0] =
          true_factor * problem.laws[0][0].batch_time_ns(placed.batch_pkts[0], 512);
      placer.step((2 + n) * 100'000'000, seen);
    }
    return placer.problem().slowdown[problem.slot(0, 0, 1, 0)];
  };
  EXPECT_NEAR(after(4, 16, 30), 4, 1e-6);
  EXPECT_NEAR(after(4, 9, 60), 3, 0.01);
  EXPECT_NEAR(after(2, 1, 60), 1, 0.01);
  EXPECT_EQ(after(200, 25, 0), 5);
}

TEST(Plant, ThePlacerComesCloseToTheOracle) {
  PlantSpec spec{.truth = two_devices(), .duration_ns = 10'000'000'000};
  for (uint64_t s = 0; s < 10; ++s) {
    spec.changes.push_back({.at_ns = s * 1'000'000'000 + 30'000'000,
                            .app = 0,
                            .rate_pps = s % 3 == 0 ? 2.5e6 : 150'000});
    spec.changes.push_back({.at_ns = s * 1'000'000'000 + 30'000'000,
                            .app = 1,
                            .rate_pps = s % 4 == 1 ? 2e6 : 120'000});
  }
  const Sum placed = sum_of(run(spec, "placer"));
  const Sum known = sum_of(run(spec, "oracle"));
  const Sum all = sum_of(run(spec, "all"));
  EXPECT_GE(placed.all.served_pkts, 0.95 * known.all.served_pkts);
  EXPECT_LE(placed.joules / placed.all.served_pkts, 1.1 * known.joules / known.all.served_pkts);
  EXPECT_LT(placed.joules, all.joules);
}

}  // namespace plant_test
}  // namespace batchplane::placement
