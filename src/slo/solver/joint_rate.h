// SPDX-License-Identifier: BSD-3-Clause
// joint_rate.h - solves a program of several tasks at the highest rate that all workers carry. What
// passes one task passes the next, so the slowest worker sets the pace of all.
#pragma once

#include <cstdint>
#include <vector>

#include "slo/solver/program.h"

namespace batchplane::slo {

// How the tasks of a Program are coupled.
struct Joint {
  std::vector<uint32_t> worker_of_task;
  std::vector<double> visits;  // by task: packets it polls per packet that enters the pipeline
  // By task: time that a packet takes less once runs are full. A worker that polls whatever there
  // is is always busy, and yet can carry more in larger runs.
  std::vector<double> spared_ns;
  double offered_pkts_per_ns = 0;  // entering rate; 0: as much as is carried
};

// Time per entering packet on the busiest worker, in full runs, at a point of the program.
[[nodiscard]] double bottleneck_ns(const Joint& joint, const Evaluation& at);

// Sets the tasks' rates from the pipeline's. A single task whose offered rate is unknown is
// saturated: its rate follows from its triggers.
void set_rate(const Joint& joint, double rate_pkts_per_ns, Program& program);

// Sets the weights of the tasks' loads in the objective.
void set_weights(const std::vector<double>& weights, Program& program);

// Triggers with the highest rate, or with the least load if the whole offered load is carried, with
// every flow within its budget and no worker loaded beyond 1: a fixed point of rate and weights
// over Solver::solve(). `program` is left at the rates of the solution.
struct JointSolution {
  Solution solution;
  double rate_pkts_per_ns = 0;
  std::vector<double> weights;  // by task: ProgramTask::weight
};
JointSolution solve_joint(const Joint& joint, double first_rate_pkts_per_ns, Program& program,
                          Solver& solver);

}  // namespace batchplane::slo
