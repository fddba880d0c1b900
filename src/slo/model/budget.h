// SPDX-License-Identifier: BSD-3-Clause
// budget.h - the load and delay model as pure functions of a vector of triggers. docs/model.md
// derives each term.
//
// Plain arrays without names or history, so the same instance can be given to another solver. Times
// are in ns, rates in packets per ns. A trigger is a number of packets; 0 means bypassed. Where
// arriving batches are never cut, a trigger equal to the arriving batch has the same effect.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace batchplane::slo {

inline constexpr double kNoBudgetNs = std::numeric_limits<double>::infinity();
inline constexpr double kBudgetSlack = 1e-9;  // relative, for rounding errors

inline constexpr uint32_t kNoModule = ~0U;

// Correction to the line A + M n where the cost of a batch of n packets is not linear: lanes that
// work side by side turn it into a staircase.
struct Stair {
  std::vector<double> extra_ns;   // by n, from 0 to the largest batch
  std::vector<uint8_t> is_worth;  // by n: no smaller batch that holds is as cheap per packet

  [[nodiscard]] double extra_at(double batch_pkts) const {
    const double last = static_cast<double>(extra_ns.size()) - 1;
    const double at = std::clamp(batch_pkts, 0.0, last);
    const auto below = static_cast<size_t>(at);
    const size_t above = std::min(below + 1, extra_ns.size() - 1);
    return extra_ns[below] +
           (at - static_cast<double>(below)) * (extra_ns[above] - extra_ns[below]);
  }
};

// A controlled module and everything after it up to the next controlled one (its segment).
struct ProgramModule {
  double cost_per_batch_ns = 0;  // A: of the whole segment
  double cost_per_pkt_ns = 0;    // M
  double share = 0;              // g: packets here per packet that the task polls
  double arriving_pkts = 1;      // a: mean batch that reaches the buffer
  uint32_t task = 0;
  uint32_t max_pkts = 0;  // largest trigger allowed; 0 = always bypassed
  // s: how many of the packets that arrive together with the first packet of a batch are sure to be
  // in that batch. 1: triggers may cut arriving batches anywhere; 0: nowhere (s = a).
  double sure_pkts = 0;
  // The module whose batches arrive here in the same run; kNoModule if there is no single one.
  uint32_t before = kNoModule;
  // The first of the modules that differ from this one by no more than chance: they should have the
  // same trigger. kNoModule, or itself: there is none.
  uint32_t alike = kNoModule;
  Stair* stair = nullptr;  // null: the costs are linear
  // Of a stage: batches of so many are collected although it is bypassed, or its device would not keep up;
  // and what a batch takes on the device, which is no work of the task.
  double least_pkts = 1;
  double away_batch_ns = 0;
  double away_pkt_ns = 0;
  double aged_share = 0;  // share of its releases caused by age limits

  // Saving per packet, on top of what the line says, when batches change from one size to the
  // other.
  [[nodiscard]] double stair_gain_ns(double from_pkts, double to_pkts) const {
    if (stair == nullptr) return 0;
    return stair->extra_at(from_pkts) / from_pkts - stair->extra_at(to_pkts) / to_pkts;
  }
  [[nodiscard]] double service_ns(double batch_pkts) const {
    const double line_ns = cost_per_batch_ns + cost_per_pkt_ns * batch_pkts;
    return stair == nullptr ? line_ns : std::max(0.0, line_ns + stair->extra_at(batch_pkts));
  }
  [[nodiscard]] double away_ns(double batch_pkts) const {
    return away_batch_ns + away_pkt_ns * batch_pkts;
  }
};

struct ProgramTask {
  // offered; if the task is saturated, the one last solved for, and only a weight
  double rate_pkts_per_ns = 0;
  double weight = 1;          // of its load in the objective
  bool is_saturated = false;  // the rate follows from the triggers
  double run_pkts = 1;        // n: packets of one run
  double other_run_ns = 0;    // time of a run outside all segments
  double beside_run_ns = 0;   // runs of other tasks on its worker: they add waiting but no load
  double queue_ns = 0;        // extra time in age limits for packets that queue; 0: none
  double runs_waited = 2;     // K: runs between arrival and the end of one's own
  double spread_scale = 1;    // measured over modelled spread of run times
  double bare_scale = 1;      // the same, of runs that hold nothing
};

struct ProgramFlow {
  double budget_ns = kNoBudgetNs;  // for turnaround, fills and services together
  double least_turnaround_ns = 0;  // to assume while the flow is held
  double runs_early = 0;           // its packets leave their own run so much of it before its end
  uint32_t modules_begin = 0;      // into Program::flow_modules
  uint32_t modules_end = 0;
  uint32_t tasks_begin = 0;  // into Program::flow_tasks
  uint32_t tasks_end = 0;
  // This many modules at the start of its path, and all of its tasks, are those of the flow before
  // it: their sums are taken over from there. 0 is always right.
  uint32_t shared_modules = 0;
};

// One for each module of a program, in packets; 0: bypassed. Only the relaxed problem has other numbers than
// whole ones.
using Triggers = std::vector<double>;

struct Program {
  double hold_ns = 1.5;   // cost of holding, per packet
  double release_ns = 0;  // and per batch that was held
  double fill_share = 1;  // share of the fill time that counts: 1 = wait of a batch's first packet
  double sigmas = 1.645;  // standard deviations of the work of K runs that are added to its mean
  // If true, a packet's place in its batch is random, like the work of its K runs, and the
  // percentile is taken of the sum. If false, the percentiles are added, which is an upper bound.
  bool mixes_fills = false;
  // Always true for controllers: firings are only as irregular as arrivals and what buffers happen
  // to hold. If false, they are Poisson, which overestimates the variance, but is a form that other
  // solvers can be given.
  bool counts_firings = false;
  std::vector<ProgramModule> modules;
  std::vector<ProgramTask> tasks;
  std::vector<ProgramFlow> flows;
  std::vector<uint32_t> flow_modules;
  std::vector<uint32_t> flow_tasks;
};

// What a packet waits for the batch that it becomes part of, and how many packets that batch has.
struct Fill {
  double ns = 0;
  double pkts = 1;
};

// What the fills on a flow's path add to the percentile of its delay.
struct FillSum {
  bool mixes = false;    // false: fills are simply added
  double sigmas = 0;     // Program::sigmas
  double spread_ns = 0;  // of the flow's turnaround
  double sum_ns = 0;
  double variance = 0;  // including the turnaround's

  [[nodiscard]] double delay_ns() const {
    // A packet's place in a batch is uniform, so on average it waits for half of the fill.
    if (!mixes || sum_ns <= 0) return sum_ns;
    const double over_ns = std::sqrt(std::max(0.0, variance)) - spread_ns;
    return std::min(sum_ns, sum_ns / 2 + sigmas * std::max(0.0, over_ns));
  }
  // Adds a fill, or removes it with sign -1.
  void add(const Fill& fill, double sign = 1) {
    sum_ns += sign * fill.ns;
    variance += sign * variance_of(fill);
  }
  // Variance from the packet's place in its batch and from irregular arrivals.
  [[nodiscard]] static double variance_of(const Fill& fill) {
    return fill.ns <= 0 ? 0 : fill.ns * fill.ns * (1.0 / 12 + 0.5 / fill.pkts);
  }
};

// Sets ProgramFlow::shared_modules of all flows: branches behind one path sum it up only once.
void share_paths(Program& program);

// The model at one vector of triggers.
struct Evaluation {
  double load = 0;                     // objective: busy share times weight, summed over tasks
  std::vector<double> task_pkt_ns;     // time of a packet: 1 / highest rate
  std::vector<double> task_spread_ns;  // standard deviation of the work of K runs
  std::vector<double> turnaround_ns;   // by task
  std::vector<double> fill_ns;         // by module
  std::vector<double> batch_pkts;      // by module, as executed
  std::vector<double> service_ns;      // by module, with what a device takes
  // by module: services that follow a firing, up to the next buffers
  std::vector<double> with_next_ns;
  std::vector<double> delay_ns;   // by flow
  std::vector<uint8_t> is_bare;   // by task: saturated, and nothing is held
  std::vector<FillSum> fills;     // by flow
  std::vector<double> mixing_ns;  // by flow: how much less than their sum the fills add
  // by module: firings that come by themselves, per packet polled
  std::vector<double> firings;
  // by module: from the place in the batch and irregular arrivals
  std::vector<double> fill_variance;
};

// Variance over mean of the number of firings in so many runs, for batches of this size. Without a buffer
// each run is for itself. With one, what was held before these runs is anything up to a batch: the number
// is one of two, by chance, and this has a variance of 1/6 on average where several firings are due.
[[nodiscard]] inline double irregularity_of(const Program& program, const ProgramModule& module,
                                            double batch_pkts, double runs, bool is_held) {
  if (!program.counts_firings) return 1;
  const double per_batch = 1 / batch_pkts;
  const double in_run = program.tasks[module.task].run_pkts * module.share * per_batch;
  const double mean = is_held ? runs * in_run : in_run;
  double irregular = std::max(0.0, 1 - mean);
  if (is_held && mean > 0.5) irregular = std::max(irregular, 1 / (6 * mean));
  return std::min(1.0, irregular + per_batch);
}
// Variance of a module's work in so many runs, per packet: n g / b firings per run, as irregular as
// irregularity_of() has it (docs/model.md). `firing_ns`: the work of one firing.
[[nodiscard]] inline double variance_of_work(const Program& program, const ProgramModule& module,
                                             double batch_pkts, double firings, double firing_ns,
                                             double runs) {
  const bool is_held = batch_pkts > module.arriving_pkts;
  return firings * firing_ns * firing_ns *
         irregularity_of(program, module, batch_pkts, runs, is_held);
}
// What holding adds to the time of a packet that the task polls, at so many firings per such packet.
[[nodiscard]] inline double holding_ns(const Program& program, const ProgramModule& module,
                                       double firings) {
  return module.share * program.hold_ns + firings * program.release_ns;
}
// Size of the batches that a module executes with this trigger.
[[nodiscard]] inline double batch_pkts(const ProgramModule& module, double trigger_pkts) {
  return trigger_pkts > 0 ? trigger_pkts : module.arriving_pkts;
}
// Whether packets are held.
[[nodiscard]] inline bool is_holding(const ProgramModule& module, double trigger_pkts) {
  return trigger_pkts > module.arriving_pkts;
}
// Whether batches of this size are held and save more of their fixed costs than holding costs.
[[nodiscard]] bool holding_pays(const Program& program, const ProgramModule& module,
                                double trigger_pkts);
// Marks the sizes that are worth using in the module's stair, given the batches that arrive.
void mark_worth(ProgramModule& module);
// For a staircase of costs: the largest trigger up to this one that is worth using, or 0.
[[nodiscard]] double worth_down(const ProgramModule& module, double trigger_pkts);
// Next larger trigger that holds and is worth using, or 0 if there is none.
[[nodiscard]] double next_up(const ProgramModule& module, double trigger_pkts);
// Rate at which packets reach a module, at a task's time per packet.
[[nodiscard]] inline double rate_of(const Program& program, const ProgramModule& module,
                                    double task_pkt_ns) {
  const ProgramTask& task = program.tasks[module.task];
  if (!task.is_saturated) return module.share * task.rate_pkts_per_ns;
  return task_pkt_ns > 0 ? module.share / task_pkt_ns : 0;
}
// Time that a packet waits for the trigger, times fill_share; 0 while bypassed. What is left of a
// batch that was cut waits for the next one to arrive, however few packets are missing.
[[nodiscard]] inline double fill_ns(const Program& program, const ProgramModule& module,
                                    double trigger_pkts, double rate_pkts_per_ns) {
  if (!is_holding(module, trigger_pkts) || rate_pkts_per_ns <= 0) return 0;
  const double more_pkts = module.sure_pkts > 0
                               ? std::max(trigger_pkts - module.sure_pkts, module.arriving_pkts)
                               : trigger_pkts - module.arriving_pkts;
  return program.fill_share * more_pkts / rate_pkts_per_ns;
}
// Fill time of the batches that are collected anyway.
[[nodiscard]] inline double least_fill_ns(const Program& program, const ProgramModule& module,
                                          double rate_pkts_per_ns) {
  if (module.least_pkts <= 1 || rate_pkts_per_ns <= 0) return 0;
  return program.fill_share * (module.least_pkts - 1) / rate_pkts_per_ns;
}
// Both together, and the size of that batch.
[[nodiscard]] inline Fill fill_of(const Program& program, const ProgramModule& module,
                                  double trigger_pkts, double rate_pkts_per_ns) {
  return {fill_ns(program, module, trigger_pkts, rate_pkts_per_ns) +
              least_fill_ns(program, module, rate_pkts_per_ns),
          is_holding(module, trigger_pkts) ? trigger_pkts : module.least_pkts};
}
// Fill time of holding at all, by the line that larger triggers are on: bypassing saves at least this
// much delay.
[[nodiscard]] inline double min_fill_ns(const Program& program, const ProgramModule& module,
                                        double rate_pkts_per_ns) {
  if (module.sure_pkts <= 0 || rate_pkts_per_ns <= 0) return 0;
  return program.fill_share * (module.arriving_pkts - module.sure_pkts) / rate_pkts_per_ns;
}

// Allocates only if `out` was never used for a program this large.
void evaluate(const Program& program, const Triggers& triggers_pkts, Evaluation& out);
// Standard deviation of the work of one run of a task, `at` these triggers.
[[nodiscard]] double run_spread_ns(const Program& program, const Evaluation& at, uint32_t task);
// Turnaround of the tasks on a flow's path, as far as its packets wait for it.
[[nodiscard]] double turnaround_of(const Program& program, const Evaluation& at,
                                   const ProgramFlow& flow);
// Updates only the flows' part, when nothing but values of flows has changed since evaluate().
void evaluate_delays(const Program& program, Evaluation& out);

// First derivatives at a point: to first order, and with the tasks' rates fixed at their values
// there,
//   load       = const + sum load_weight / q
//   turnaround = const + sum (turnaround_weight / q + turnaround_slope * q)
//   fill + service of one module = const + delay_slope * q.
struct Slopes {
  std::vector<double> load_weight;
  std::vector<double> turnaround_weight;
  std::vector<double> turnaround_slope;
  std::vector<double> delay_slope;
};
void slopes_at(const Program& program, const Evaluation& at, Slopes& out);
// Load saved, at these slopes, when a module's batches change from one size to the other.
[[nodiscard]] double load_saved(const Program& program, const Slopes& slopes, uint32_t module,
                                double from_pkts, double to_pkts);

// E[min(q, 1 + N)], N Poisson: mean batch with trigger q if the age limit leaves the first packet
// time for `arrivals` more on average.
[[nodiscard]] double expected_batch_pkts(uint32_t trigger_pkts, double arrivals);
// Mean number of packets that a batch sends into a branch with this share, given that it sends any.
[[nodiscard]] double branch_batch_pkts(double batch_pkts, double share);
// The normal quantile of `percentile`; 0 for 0 (the mean), and 3.1 for 1 (the maximum observed).
[[nodiscard]] double sigmas_of(double percentile);

}  // namespace batchplane::slo
