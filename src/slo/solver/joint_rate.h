// SPDX-License-Identifier: BSD-3-Clause
// joint_rate.h - a program of several tasks at the highest rate that all its workers carry: what
// passes one task passes the next, so the slowest worker sets the pace of all.
#pragma once

#include <cstdint>
#include <vector>

#include "slo/solver/program.h"

namespace batchplane::slo {

// What joins the tasks of a Program.
struct Joint {
  std::vector<uint32_t> worker_of_task;
  std::vector<double> visits;  // by task: packets it polls per packet that enters the pipeline
  // By task: what a packet takes less once runs are full; where it is empty, nothing. A worker that
  // takes whatever is there is always busy, and still carries more at a time.
  std::vector<double> spared_ns;
  double offered_pkts_per_ns = 0;  // that enter; 0: as many as are carried
};

// Time of a packet that enters, in full runs on the busiest worker, at a point of the program.
[[nodiscard]] double bottleneck_ns(const Joint& joint, const Evaluation& at);

// Sets the tasks' rates to those of the pipeline's. A single task of which nobody knows how much
// comes is saturated: its rate follows from its triggers.
void set_rate(const Joint& joint, double rate_pkts_per_ns, Program& program);

// Triggers of the highest rate, or of the least load where all that is offered is carried, with
// every flow within its budget and no worker loaded beyond 1: a fixed point of rate and weights
// over Solver::solve(). `program` is left at the rates of the solution.
struct JointSolution {
  Solution solution;
  double rate_pkts_per_ns = 0;
  bool is_saturated = false;
};
JointSolution solve_joint(const Joint& joint, double first_rate_pkts_per_ns, Program& program,
                          Solver& solver);

}  // namespace batchplane::slo
