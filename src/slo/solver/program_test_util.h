// SPDX-License-Identifier: BSD-3-Clause
// program_test_util.h - problem instances for tests of the model and its solver.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "slo/model/budget.h"

namespace batchplane::slo {

// Adds a flow over the given modules and their tasks.
inline void add_flow(Program& program, double budget_ns, const std::vector<uint32_t>& modules) {
  ProgramFlow flow{.budget_ns = budget_ns};
  flow.modules_begin = static_cast<uint32_t>(program.flow_modules.size());
  flow.tasks_begin = static_cast<uint32_t>(program.flow_tasks.size());
  for (const uint32_t v : modules) {
    program.flow_modules.push_back(v);
    const uint32_t task = program.modules[v].task;
    bool is_new = true;
    for (size_t i = flow.tasks_begin; i < program.flow_tasks.size(); ++i) {
      is_new &= program.flow_tasks[i] != task;
    }
    if (is_new) program.flow_tasks.push_back(task);
  }
  flow.modules_end = static_cast<uint32_t>(program.flow_modules.size());
  flow.tasks_end = static_cast<uint32_t>(program.flow_tasks.size());
  program.flows.push_back(flow);
}

// A saturated task that splits its packets over n modules without costs, which should have the same trigger.
inline Program alike_branches(uint32_t n) {
  Program program;
  program.tasks.push_back(
      {.is_saturated = true, .run_pkts = 32, .other_run_ns = 900, .runs_waited = 3});
  program.modules.assign(
      n, {.share = 1.0 / n, .arriving_pkts = 2, .max_pkts = 32, .sure_pkts = 1, .alike = 0});
  return program;
}

// Log-uniform between low and high.
inline double log_uniform(Rng& rng, double low, double high) {
  return low * std::pow(high / low, rng.uniform());
}

// One task with n_modules modules and 1 to 4 flows, each through some of them. Budgets range from
// infeasible to loose.
inline Program random_program_of(Rng& rng, bool is_saturated, uint32_t n_modules,
                                 uint32_t max_pkts) {
  Program program;
  program.sigmas = rng.below(4) == 0 ? 0 : 1.645;
  program.hold_ns = rng.below(3) == 0 ? 0 : 3 * rng.uniform();
  ProgramTask task{.is_saturated = is_saturated};
  task.run_pkts = is_saturated ? max_pkts : 1 + (max_pkts - 1) * rng.uniform();
  task.other_run_ns = log_uniform(rng, 20, 1000);
  task.runs_waited = is_saturated ? 3 : 2;
  double work_ns = task.other_run_ns / task.run_pkts;
  for (uint32_t v = 0; v < n_modules; ++v) {
    ProgramModule module{.cost_per_batch_ns = log_uniform(rng, 10, 4000),
                         .cost_per_pkt_ns = log_uniform(rng, 1, 200)};
    module.share = 0.05 + 0.95 * rng.uniform();
    module.arriving_pkts = 1 + std::floor(30 * rng.uniform()) / 10;
    module.max_pkts = max_pkts;
    work_ns +=
        module.share * (module.cost_per_batch_ns / (0.5 * max_pkts) + module.cost_per_pkt_ns);
    program.modules.push_back(module);
  }
  task.rate_pkts_per_ns = (is_saturated ? 1 : 0.1 + 0.8 * rng.uniform()) / work_ns;
  program.tasks.push_back(task);
  // Delays with all triggers at half the maximum, as a scale for budgets.
  Evaluation half;
  evaluate(program, std::vector<double>(n_modules, 1 + 0.5 * max_pkts), half);
  const uint32_t n_flows = 1 + rng.below(4);
  for (uint32_t f = 0; f < n_flows; ++f) {
    std::vector<uint32_t> path;
    double delay_ns = half.turnaround_ns[0];
    for (uint32_t v = 0; v < n_modules; ++v) {
      if (rng.below(3) == 0 && (v + 1 < n_modules || !path.empty())) continue;
      path.push_back(v);
      delay_ns += half.fill_ns[v] + half.service_ns[v];
    }
    add_flow(program, delay_ns * log_uniform(rng, 0.4, 2.5), path);
  }
  return program;
}

// 1 to 3 modules, triggers up to 10.
inline Program random_program(Rng& rng, bool is_saturated) {
  const uint32_t n_modules = 1 + rng.below(3);
  return random_program_of(rng, is_saturated, n_modules, 10);
}

// Eight look-ups, each followed by eight branches, with a flow through each branch; triggers up to
// 32.
inline Program grouped_program(Rng& rng, bool is_saturated) {
  Program program;
  program.tasks.push_back({.rate_pkts_per_ns = 4e-3,
                           .is_saturated = is_saturated,
                           .run_pkts = is_saturated ? 32.0 : 8.0,
                           .other_run_ns = 300,
                           .runs_waited = is_saturated ? 3.0 : 2.0});
  std::vector<std::vector<uint32_t>> paths;
  for (uint32_t g = 0; g < 8; ++g) {
    const auto lookup = static_cast<uint32_t>(program.modules.size());
    program.modules.push_back({log_uniform(rng, 20, 300), 8, 0.125, 1 + 4 * rng.uniform(), 0, 32});
    for (uint32_t b = 0; b < 8; ++b) {
      paths.push_back({lookup, static_cast<uint32_t>(program.modules.size())});
      program.modules.push_back({log_uniform(rng, 30, 600), log_uniform(rng, 5, 60), 0.125 / 8,
                                 1 + rng.uniform(), 0, 32});
    }
  }
  for (const auto& path : paths) add_flow(program, log_uniform(rng, 15e3, 500e3), path);
  return program;
}

struct Best {
  double load = kNoBudgetNs;
  std::vector<double> triggers;
};

// Tries every trigger of every module: bypassed, or above the arriving batch.
inline Best brute_force(const Program& program) {
  Best best;
  Evaluation at;
  std::vector<double> q(program.modules.size(), 0);
  for (;;) {
    evaluate(program, q, at);
    bool fits = true;
    for (size_t f = 0; f < program.flows.size(); ++f) {
      fits &= at.delay_ns[f] <= program.flows[f].budget_ns;
    }
    if (fits && at.load < best.load) best = {at.load, q};
    size_t v = 0;
    for (; v < q.size(); ++v) {
      const ProgramModule& module = program.modules[v];
      q[v] = std::max(q[v], std::floor(module.arriving_pkts)) + 1;
      if (q[v] <= module.max_pkts && module.share > 0) break;
      q[v] = 0;
    }
    if (v == q.size()) return best;
  }
}

}  // namespace batchplane::slo
