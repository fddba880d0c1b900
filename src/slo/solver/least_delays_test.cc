// SPDX-License-Identifier: BSD-3-Clause
// least_delays_test.cc - bounds on delays against triggers at random and brute force.
#include "slo/solver/least_delays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "slo/solver/program_test_util.h"

namespace batchplane::slo {
namespace least_delays_test {

// Everything that may shorten a delay.
Program random_in_all(Rng& rng, bool is_saturated) {
  Program program = random_program_of(rng, is_saturated, 1 + rng.below(4), 4 + rng.below(8));
  program.mixes_fills = rng.below(2) == 0;
  program.counts_firings = rng.below(2) == 0;
  program.release_ns = 20 * rng.uniform();
  program.tasks[0].spread_scale = log_uniform(rng, 0.3, 2);
  program.tasks[0].bare_scale = log_uniform(rng, 0.3, 2);
  program.tasks[0].beside_run_ns = rng.below(2) * 300 * rng.uniform();
  for (uint32_t v = 0; v < program.modules.size(); ++v) {
    ProgramModule& module = program.modules[v];
    module.sure_pkts = rng.below(2);
    if (v > 0 && rng.below(2) == 0) module.before = v - 1;
    if (rng.below(5) != 0) continue;
    module.least_pkts = module.arriving_pkts;
    module.away_batch_ns = log_uniform(rng, 100, 20000);
    module.away_pkt_ns = log_uniform(rng, 1, 500);
  }
  for (ProgramFlow& flow : program.flows) {
    if (rng.below(2) == 0) flow.runs_early = rng.uniform();
    if (rng.below(3) == 0) flow.holding_ns = 2000 * rng.uniform();
  }
  return program;
}

// Costs that rise by steps of so many packets, at the same cost per packet of full ones.
Stair stair_of(ProgramModule module, uint32_t lanes) {
  Stair stair;
  for (uint32_t n = 0; n <= module.max_pkts; ++n) {
    const double full_pkts = std::ceil(static_cast<double>(n) / lanes) * lanes;
    stair.extra_ns.push_back((full_pkts - n) * module.cost_per_pkt_ns);
  }
  module.stair = &stair;
  mark_worth(module);
  return stair;
}

std::vector<double> random_triggers(Rng& rng, const Program& program,
                                    const std::vector<uint8_t>& is_pinned) {
  std::vector<double> triggers;
  for (size_t v = 0; v < program.modules.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    const double to = 1 + rng.below(module.max_pkts);
    const bool holds = is_pinned[v] == 0 && rng.below(3) != 0 && is_holding(module, to);
    triggers.push_back(holds ? to : 0);
  }
  return triggers;
}

TEST(LeastDelays, NoTriggersGoBelowThem) {
  Rng rng(11);
  LeastDelays least;
  for (uint32_t i = 0; i < 4000; ++i) {
    Program program = random_in_all(rng, rng.below(2) == 0);
    Stair stair = stair_of(program.modules[0], 4);
    if (rng.below(2) == 0) program.modules[0].stair = &stair;
    std::vector<uint8_t> is_pinned(program.modules.size());
    for (uint8_t& pinned : is_pinned) pinned = rng.below(4) == 0 ? 1 : 0;
    const std::vector<double>& least_ns = least.find(program, is_pinned);
    Evaluation at;
    for (uint32_t j = 0; j < 30; ++j) {
      evaluate(program, random_triggers(rng, program, is_pinned), at);
      for (size_t f = 0; f < program.flows.size(); ++f) {
        ASSERT_GE(at.delay_ns[f] * (1 + kBudgetSlack), least_ns[f]) << "program " << i;
      }
    }
  }
}

// Of programs that no triggers solve, by brute force, most are seen to have none.
TEST(LeastDelays, ShowWhatCannotBeKept) {
  Rng rng(12);
  LeastDelays least;
  uint32_t without = 0;
  uint32_t shown = 0;
  for (uint32_t i = 0; i < 2000; ++i) {
    const Program program = random_program(rng, rng.below(2) == 0);
    if (brute_force(program).load < kNoBudgetNs) continue;
    ++without;
    const std::vector<double>& least_ns =
        least.find(program, std::vector<uint8_t>(program.modules.size(), 0));
    bool is_shown = false;
    for (size_t f = 0; f < program.flows.size(); ++f) {
      is_shown |= least_ns[f] > program.flows[f].budget_ns;
    }
    shown += is_shown ? 1 : 0;
  }
  EXPECT_GT(without, 200U);
  EXPECT_GT(shown, without / 2);
  RecordProperty("shown", std::to_string(shown) + " of " + std::to_string(without));
}

}  // namespace least_delays_test
}  // namespace batchplane::slo
