// SPDX-License-Identifier: BSD-3-Clause
// random_problems.h - random problems, and the best plan by exhaustive search: for tests and the
// benchmark.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"
#include "placement/problem.h"

namespace batchplane::placement {

inline double between(Rng& rng, double low, double high) {
  return low * std::pow(high / low, static_cast<double>(rng.below(1'000'000)) / 1e6);
}

// The same law as a table, of a device that works on several batches at once: one takes only a part of its time.
inline BatchLaw several_at_once(const BatchLaw& line, double part) {
  BatchTable table{.batch_pkts = {1, 64, 4096}, .pkt_bytes = {64, 1472}};
  for (const uint32_t n : table.batch_pkts) {
    for (const uint32_t bytes : table.pkt_bytes) {
      table.alone_ns.push_back(line.line_ns(n, bytes));
      table.busy_ns.push_back(part * line.line_ns(n, bytes));
    }
  }
  BatchLaw law = line;
  law.table = std::make_shared<const BatchTable>(std::move(table));
  return law;
}

inline Problem random_problem(uint64_t seed, size_t n_apps, size_t n_devices) {
  Rng rng(seed);
  Problem problem;
  for (size_t d = 0; d < n_devices; ++d) {
    Device device;
    device.name.assign(1, static_cast<char>('0' + d));
    device.active_w = between(rng, 10, 300);
    device.idle_w = device.active_w * between(rng, 0.05, 0.6);
    device.off_w = device.idle_w * between(rng, 0.05, 0.9);
    problem.devices.push_back(device);
  }
  for (size_t a = 0; a < n_apps; ++a) {
    App app;
    app.name.assign(1, static_cast<char>('a' + a));
    app.policy = static_cast<Policy>(rng.below(3));
    app.rate_pps = between(rng, 5e4, 8e6);
    app.pkt_bytes = between(rng, 64, 1500);
    app.budget_ns = between(rng, 5e4, 5e6);
    app.value = between(rng, 0.5, 2);
    problem.apps.push_back(app);
    std::vector<Law> laws;
    for (size_t d = 0; d < n_devices; ++d) {
      const bool is_wide = d % 2 == 1;
      const bool is_there = rng.below(8) != 0;
      const BatchLaw batch{between(rng, 100, 50'000), between(rng, 5, 500),
                           between(rng, 0.001, 0.2), is_wide ? 20.0 : 0.0};
      const bool has_table = is_wide && seed % 2 == 0;
      laws.push_back(
          {is_there, has_table ? several_at_once(batch, 0.3) : batch, is_wide ? 4096U : 256U});
    }
    problem.laws.push_back(laws);
  }
  if (rng.below(3) == 0) {
    problem.slowdown.assign(n_apps * n_devices * n_apps * n_devices, 1);
    for (double& factor : problem.slowdown) factor = between(rng, 1, 1.6);
  }
  if (rng.below(4) == 0) {
    for (const Device& device : problem.devices) problem.watt_cap += device.active_w * 0.6;
  }
  return problem;
}

// Every placement of one application: eighths of its packets on each device, powers of two as
// batches.
inline void all_ways(const Problem& problem, size_t a, std::vector<Placed>& ways) {
  const size_t n = problem.devices.size();
  ways.push_back({});
  std::vector<uint32_t> parts(n, 0);
  const std::function<void(size_t, uint32_t)> deal = [&](size_t d, uint32_t left) {
    if (d + 1 == n) {
      parts[d] = left;
      std::vector<Placed> made{{}};
      for (size_t e = 0; e < n; ++e) {
        if (parts[e] == 0) continue;
        if (!problem.laws[a][e].is_there) return;
        std::vector<Placed> more;
        for (const Placed& placed : made) {
          for (uint32_t b = 1; b <= problem.laws[a][e].max_batch_pkts; b *= 2) {
            more.push_back(placed);
            more.back().share[e] = parts[e] / 8.0;
            more.back().batch_pkts[e] = b;
          }
        }
        made = std::move(more);
      }
      ways.insert(ways.end(), made.begin(), made.end());
      return;
    }
    for (uint32_t k = 0; k <= left; ++k) {
      parts[d] = k;
      deal(d + 1, left - k);
    }
  };
  deal(0, 8);
}

// The best of all pairs of placements; those infeasible alone are left out.
inline double best_of_all(const Problem& problem) {
  std::vector<std::vector<Placed>> ways(problem.apps.size());
  for (size_t a = 0; a < problem.apps.size(); ++a) {
    std::vector<Placed> all;
    all_ways(problem, a, all);
    Plan alone(problem.apps.size());
    for (const Placed& way : all) {
      alone[a] = way;
      if (evaluate(problem, alone).is_feasible) ways[a].push_back(way);
    }
  }
  double best = std::numeric_limits<double>::infinity();
  for (const Placed& first : ways[0]) {
    for (const Placed& second : ways[1]) {
      best = std::min(best, score(evaluate(problem, {first, second})));
    }
  }
  return best;
}

}  // namespace batchplane::placement
