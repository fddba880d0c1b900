// SPDX-License-Identifier: BSD-3-Clause
// joint_rate_test.cc - programs of several tasks against all triggers, tried one by one.
#include "slo/solver/joint_rate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "slo/solver/program_test_util.h"

namespace batchplane::slo {
namespace {

constexpr uint32_t kMostPkts = 8;

struct Case {
  Program program;
  Joint joint;
};

double between(Rng& rng, double least, double most) {
  return least * std::pow(most / least, static_cast<double>(rng.below(1'000'000)) / 1e6);
}

// Two tasks, each on its own worker; every task splits its packets over two modules, and each flow
// takes one of them in every task.
Case random_case(Rng& rng) {
  Case made;
  const uint32_t n_tasks = 2;
  for (uint32_t t = 0; t < n_tasks; ++t) {
    made.program.tasks.push_back({.run_pkts = 8, .other_run_ns = between(rng, 20, 200)});
    made.joint.worker_of_task.push_back(t);
    made.joint.visits.push_back(1);
    made.joint.spared_ns.push_back(0);
    for (int i = 0; i < 2; ++i) {
      made.program.modules.push_back({.cost_per_batch_ns = between(rng, 50, 1500),
                                      .cost_per_pkt_ns = between(rng, 5, 60),
                                      .share = 0.5,
                                      .arriving_pkts = 1 + static_cast<double>(rng.below(3)),
                                      .task = t,
                                      .max_pkts = kMostPkts,
                                      .sure_pkts = 1});
    }
  }
  for (uint32_t f = 0; f < 2; ++f) {
    ProgramFlow flow{.budget_ns = between(rng, 3'000, 40'000)};
    flow.modules_begin = static_cast<uint32_t>(made.program.flow_modules.size());
    flow.tasks_begin = static_cast<uint32_t>(made.program.flow_tasks.size());
    for (uint32_t t = 0; t < n_tasks; ++t) {
      made.program.flow_modules.push_back(2 * t + f);
      made.program.flow_tasks.push_back(t);
    }
    flow.modules_end = static_cast<uint32_t>(made.program.flow_modules.size());
    flow.tasks_end = static_cast<uint32_t>(made.program.flow_tasks.size());
    made.program.flows.push_back(flow);
  }
  return made;
}

// The rate at these triggers; 0 when a flow is late at that rate.
double rate_at(Case& of, const std::vector<double>& triggers, Evaluation& at) {
  set_rate(of.joint, 1, of.program);
  evaluate(of.program, triggers, at);
  const double rate = 1 / bottleneck_ns(of.joint, at);
  set_rate(of.joint, rate, of.program);
  evaluate(of.program, triggers, at);
  for (size_t f = 0; f < of.program.flows.size(); ++f) {
    if (at.delay_ns[f] > of.program.flows[f].budget_ns * (1 + 1e-9)) return 0;
  }
  return rate;
}

// The rate and weights that come with a solution are those of its load.
TEST(JointRate, LoadIsThatOfTheRateAndWeightsFound) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    Case made = random_case(rng);
    Solver solver;
    solver.prepare(made.program);
    const JointSolution found = solve_joint(made.joint, 0.01, made.program, solver);
    ASSERT_EQ(found.weights.size(), made.program.tasks.size());
    Program again = random_case(rng = Rng(seed)).program;
    set_weights(found.weights, again);
    set_rate(made.joint, found.rate_pkts_per_ns, again);
    Evaluation at;
    evaluate(again, found.solution.triggers_pkts, at);
    EXPECT_DOUBLE_EQ(at.load, found.solution.model.load) << seed;
  }
}

double best_of_all(Case& of) {
  Evaluation at;
  double best = 0;
  std::vector<double> triggers(of.program.modules.size());
  const auto n_all = static_cast<uint32_t>(std::pow(kMostPkts + 1, triggers.size()));
  for (uint32_t i = 0; i < n_all; ++i) {
    uint32_t rest = i;
    for (double& trigger : triggers) {
      trigger = rest % (kMostPkts + 1);
      rest /= kMostPkts + 1;
    }
    bool is_plain = true;  // a trigger below the arriving batch cuts batches: no solution has one
    for (size_t v = 0; v < triggers.size(); ++v) {
      const double trigger = triggers[v];
      is_plain &= trigger == 0 || trigger > of.program.modules[v].arriving_pkts;
    }
    if (is_plain) best = std::max(best, rate_at(of, triggers, at));
  }
  return best;
}

// The highest rate of any triggers, from which solutions start.
double highest_rate(Case& of) {
  Evaluation at;
  set_rate(of.joint, 1, of.program);
  evaluate(of.program, std::vector<double>(of.program.modules.size(), kMostPkts), at);
  return 1 / bottleneck_ns(of.joint, at);
}

TEST(JointRate, IsThatOfTheBestTriggersOfAll) {
  Rng rng(5);
  double sum = 0;
  double worst = 1;
  int n = 0;
  int n_late = 0;  // by less than a packet's time, where rate and triggers alternate for ever
  for (int i = 0; i < 1000; ++i) {
    Case of = random_case(rng);
    const double best = best_of_all(of);
    if (best <= 0) continue;
    Solver solver;
    solver.prepare(of.program);
    Evaluation at;
    double rate = highest_rate(of);
    JointSolution found;
    for (int round = 0; round < 5; ++round) {
      found = solve_joint(of.joint, rate, of.program, solver);
      rate = found.rate_pkts_per_ns;
    }
    const Triggers& triggers = found.solution.triggers_pkts;
    const double mine = rate_at(of, triggers, at);
    ++n;
    if (mine <= 0) {
      ++n_late;
      continue;
    }
    sum += mine / best;
    worst = std::min(worst, mine / best);
  }
  EXPECT_GT(n, 300);
  EXPECT_LE(n_late, n / 100);
  EXPECT_GT(sum / (n - n_late), 0.999);
  EXPECT_GT(worst, 0.9);
}

// A worker that is not the slowest gets no budget that the slowest could use.
TEST(JointRate, BudgetGoesToTheWorkerThatSetsThePace) {
  Rng rng(3);
  int n_bound = 0;
  for (double budget_ns = 6'000; budget_ns <= 40'000; budget_ns += 500) {
    Case of = random_case(rng);
    for (uint32_t v = 0; v < 4; ++v) {
      of.program.modules[v].arriving_pkts = 1;
      of.program.modules[v].max_pkts = 32;
      of.program.modules[v].cost_per_batch_ns = v < 2 ? 100 : 1000;
      of.program.modules[v].cost_per_pkt_ns = 10;
    }
    for (ProgramTask& task : of.program.tasks) task.other_run_ns = 50;
    for (ProgramFlow& flow : of.program.flows) flow.budget_ns = budget_ns;
    Solver solver;
    solver.prepare(of.program);
    const JointSolution found = solve_joint(of.joint, highest_rate(of), of.program, solver);
    const Triggers& q = found.solution.triggers_pkts;
    const bool is_met = std::ranges::count(found.solution.is_infeasible, true) == 0;
    if (!is_met || std::max(q[2], q[3]) == 0 || std::min(q[2], q[3]) == 32) continue;
    ++n_bound;
    EXPECT_GE(std::min(q[2], q[3]), std::max(q[0], q[1])) << budget_ns;
  }
  EXPECT_GE(n_bound, 2);
}

// One task, as much as is carried: prices are those of the rate found, wherever the search began.
TEST(JointRate, PricesAreThoseOfTheRateFound) {
  Rng rng(4);
  int n_priced = 0;
  for (int i = 0; i < 400; ++i) {
    Program program = random_program(rng, true);
    const Joint joint{.worker_of_task = {0}, .visits = {1}, .spared_ns = {0}};
    std::vector<JointSolution> found;
    for (const double first_rate : {1e-3, 4e-3}) {
      Solver solver;
      solver.prepare(program);
      found.push_back(solve_joint(joint, first_rate, program, solver));
      EXPECT_DOUBLE_EQ(program.tasks[0].rate_pkts_per_ns, found.back().rate_pkts_per_ns);
      EXPECT_NEAR(found.back().solution.model.load, 1, 1e-9);
    }
    if (found[0].solution.triggers_pkts != found[1].solution.triggers_pkts) continue;
    for (size_t f = 0; f < program.flows.size(); ++f) {
      const double price = found[0].solution.prices[f];
      EXPECT_NEAR(found[1].solution.prices[f], price, 0.01 * price + 1e-9);
      n_priced += price > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(n_priced, 50);
}

TEST(JointRate, AllThatIsOfferedIsCarriedAtTheLeastLoad) {
  Rng rng(9);
  Case of = random_case(rng);
  for (ProgramFlow& flow : of.program.flows) flow.budget_ns = kNoBudgetNs;
  Solver solver;
  solver.prepare(of.program);
  of.joint.offered_pkts_per_ns = 1e-5;
  const JointSolution found = solve_joint(of.joint, 1e-5, of.program, solver);
  EXPECT_DOUBLE_EQ(found.rate_pkts_per_ns, 1e-5);
}

}  // namespace
}  // namespace batchplane::slo
