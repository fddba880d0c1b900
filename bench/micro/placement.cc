// SPDX-License-Identifier: BSD-3-Clause
// placement.cc - how long one decision about devices takes, and how far it is from the best there is.
//
// --trials random problems of 8 applications and 6 devices are solved; the quality is looked at on ten times as
// many with 2 and 2, of which every plan can be tried.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "common/environment.h"
#include "common/report.h"
#include "placement/random_problems.h"
#include "placement/solve.h"

namespace {

using batchplane::placement::Problem;

// Of one size; one problem a trial.
bench::Result time_of(const std::string& name, size_t n_apps, size_t n_devices, uint32_t n) {
  bench::Result result{.name = name};
  for (uint64_t seed = 1; seed <= n; ++seed) {
    const Problem problem = batchplane::placement::random_problem(seed, n_apps, n_devices);
    const auto begin = std::chrono::steady_clock::now();
    const auto plan = batchplane::placement::solve(problem, {});
    const auto end = std::chrono::steady_clock::now();
    if (plan.size() != n_apps) throw std::runtime_error("no plan came of it");
    result.ns_per_pkt.push_back(std::chrono::duration<double, std::nano>(end - begin).count());
  }
  return result;
}

double percent_near_the_best(uint32_t n) {
  uint32_t n_near = 0;
  for (uint64_t seed = 1; seed <= n; ++seed) {
    const Problem problem = batchplane::placement::random_problem(seed, 2, 2);
    const double found = score(evaluate(problem, batchplane::placement::solve(problem, {})));
    n_near += found <= 1.01 * batchplane::placement::best_of_all(problem) ? 1 : 0;
  }
  return 100.0 * n_near / n;
}

int run(const bench::Options& options) {
  bench::Report report("placement", options);
  for (const auto& [label, apps, devices] : {std::tuple{"2 applications, 3 devices", 2, 3},
                                             std::tuple{"8 applications, 6 devices", 8, 6}}) {
    if (!report.wants(label)) continue;
    const bench::Result result =
        time_of(label, static_cast<size_t>(apps), static_cast<size_t>(devices), options.trials);
    for (const auto& [name, share] : {std::pair{"one decision", 0.5}, {"nine in ten", 0.9}}) {
      bench::Interval us = bench::time_percentile(result, share);
      for (double* const value : {&us.low, &us.median, &us.high}) *value /= 1e3;
      report.figure(std::string(label) + ", " + name, "us", us, bench::Target{1000, true});
    }
  }
  const std::string near = "plans within 1 % of the best of all, 2 and 2";
  if (report.wants(near)) {
    const double percent = percent_near_the_best(10 * options.trials);
    report.figure(near, "%", {percent, percent, percent}, bench::Target{99.5, false});
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 100, .batches = 1});
  return bench::guarded([&] { return run(options); });
}
