// SPDX-License-Identifier: BSD-3-Clause
// two_models_test.cc - the papers write the program twice: over the rates y at which modules are
// executed, equations (8) to (10), and over the triggers q, (11) to (13). With y = rate / q both
// have the same feasible points and the same cost; ours is the second one.
#include <gtest/gtest.h>

#include <cmath>

#include "slo/solver/program_test_util.h"

namespace batchplane::slo {
namespace two_models_test {

constexpr double kMaxPkts = 32;

// (8) to (10), over execution rates: load, delay of each flow, bounds.
struct Explicit {
  const Program& program;
  std::vector<double> executions;  // y, per ns

  [[nodiscard]] double rate(uint32_t v) const {
    return program.modules[v].share * program.tasks[0].rate_pkts_per_ns;
  }
  [[nodiscard]] double service_ns(uint32_t v) const {
    const ProgramModule& module = program.modules[v];
    return module.cost_per_batch_ns + module.cost_per_pkt_ns * rate(v) / executions[v];
  }
  [[nodiscard]] double load() const {
    double sum = 0;
    for (uint32_t v = 0; v < executions.size(); ++v) sum += executions[v] * service_ns(v);
    return sum;
  }
  [[nodiscard]] double delay_ns(const ProgramFlow& flow) const {
    double sum = 0;
    for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
      const uint32_t v = program.flow_modules[i];
      sum += 1 / executions[v] + service_ns(v);
    }
    return sum;
  }
  [[nodiscard]] bool is_within_bounds() const {
    for (uint32_t v = 0; v < executions.size(); ++v) {
      if (executions[v] < rate(v) / kMaxPkts || executions[v] > rate(v)) return false;
    }
    return true;
  }
};

// The papers' assumptions: single packets arrive, turnaround is separate, holding costs nothing.
Program papers_program(Rng& rng) {
  Program program{.hold_ns = 0, .sigmas = 0};
  program.tasks = {{.rate_pkts_per_ns = 1e-3, .run_pkts = 1, .runs_waited = 0}};
  const uint32_t n = 1 + rng.below(6);
  for (uint32_t v = 0; v < n; ++v) {
    program.modules.push_back({log_uniform(rng, 10, 4000), log_uniform(rng, 1, 200),
                               0.05 + 0.95 * rng.uniform(), 1, 0, static_cast<uint32_t>(kMaxPkts)});
  }
  for (uint32_t f = 0; f < 3; ++f) {
    std::vector<uint32_t> path;
    for (uint32_t v = 0; v < n; ++v) {
      if (path.empty() || rng.below(2) == 0) path.push_back(v);
    }
    add_flow(program, log_uniform(rng, 5e3, 3e5), path);
  }
  return program;
}

TEST(TwoModels, AllowTheSameAndCostTheSame) {
  Rng rng(4);
  uint32_t n_feasible = 0;
  uint32_t n_infeasible = 0;
  Evaluation ours;
  for (int i = 0; i < 5000; ++i) {
    const Program program = papers_program(rng);
    Explicit theirs{program, {}};
    std::vector<double> triggers;
    for (uint32_t v = 0; v < program.modules.size(); ++v) {
      triggers.push_back(log_uniform(rng, 1.01, 40));
      theirs.executions.push_back(theirs.rate(v) / triggers.back());
    }
    evaluate(program, triggers, ours);
    EXPECT_NEAR(ours.load, theirs.load(), 1e-9 * theirs.load());
    bool fits_ours = true;
    bool fits_theirs = theirs.is_within_bounds();
    for (size_t v = 0; v < triggers.size(); ++v) {
      fits_ours &= triggers[v] >= 1 && triggers[v] <= program.modules[v].max_pkts;
    }
    for (size_t f = 0; f < program.flows.size(); ++f) {
      const ProgramFlow& flow = program.flows[f];
      // The papers count from the previous batch, ours from the batch's own first packet.
      double first_ns = 0;
      for (uint32_t k = flow.modules_begin; k < flow.modules_end; ++k) {
        first_ns += 1 / theirs.rate(program.flow_modules[k]);
      }
      EXPECT_NEAR(ours.delay_ns[f] + first_ns, theirs.delay_ns(flow), 1e-6 * ours.delay_ns[f]);
      fits_ours &= ours.delay_ns[f] <= flow.budget_ns;
      fits_theirs &= theirs.delay_ns(flow) <= flow.budget_ns + first_ns;
    }
    EXPECT_EQ(fits_ours, fits_theirs) << i;
    (fits_ours ? n_feasible : n_infeasible) += 1;
  }
  EXPECT_GT(n_feasible, 300U);
  EXPECT_GT(n_infeasible, 300U);
}

}  // namespace two_models_test
}  // namespace batchplane::slo
