// SPDX-License-Identifier: BSD-3-Clause
// budget.h - the delay and load model as pure functions: what a vector of triggers costs, and how
// long every flow then waits. docs/model.md derives each term.
//
// Plain arrays, no names, no history: the same instance can be given to another solver. Times are
// ns, rates packets per ns. A trigger is a number of packets; 0 means bypassed, and a trigger equal
// to the arriving batch is the same thing where arriving batches are never cut.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace batchplane::slo {

inline constexpr double kNoBudgetNs = std::numeric_limits<double>::infinity();

inline constexpr uint32_t kNoModule = ~0U;

// What a batch of n packets costs beside the line A + M n, where that is no line: lanes that work side
// by side make stairs of it.
struct Stair {
  std::vector<double> extra_ns;   // by n, from 0 to the largest batch
  std::vector<uint8_t> is_worth;  // by n: no smaller batch that holds has as cheap packets

  [[nodiscard]] double extra_at(double batch_pkts) const {
    const double last = static_cast<double>(extra_ns.size()) - 1;
    const double at = std::clamp(batch_pkts, 0.0, last);
    const auto below = static_cast<size_t>(at);
    const size_t above = std::min(below + 1, extra_ns.size() - 1);
    return extra_ns[below] +
           (at - static_cast<double>(below)) * (extra_ns[above] - extra_ns[below]);
  }
};

// A controlled module with what follows it up to the next one (its segment).
struct ProgramModule {
  double cost_per_batch_ns = 0;  // A: of the whole segment
  double cost_per_pkt_ns = 0;    // M
  double share = 0;              // g: packets here per packet that the task polls
  double arriving_pkts = 1;      // a: mean batch that reaches the buffer
  uint32_t task = 0;
  uint32_t max_pkts = 0;  // no trigger above; 0 = stays bypassed
  // s: of the packets that arrive with a batch's first one, so many are sure to be in its batch.
  // 1: triggers cut arriving batches anywhere; 0: nowhere (s = a).
  double sure_pkts = 0;
  // Whose batches arrive here, in the same run; kNoModule: not of one module alone.
  uint32_t before = kNoModule;
  const Stair* stair = nullptr;  // none: the costs are a line

  // What a packet saves beside the line in batches of another size.
  [[nodiscard]] double stair_gain_ns(double from_pkts, double to_pkts) const {
    if (stair == nullptr) return 0;
    return stair->extra_at(from_pkts) / from_pkts - stair->extra_at(to_pkts) / to_pkts;
  }
  [[nodiscard]] double service_ns(double batch_pkts) const {
    const double line_ns = cost_per_batch_ns + cost_per_pkt_ns * batch_pkts;
    return stair == nullptr ? line_ns : std::max(0.0, line_ns + stair->extra_at(batch_pkts));
  }
};

struct ProgramTask {
  double rate_pkts_per_ns = 0;  // offered; of a saturated task, measured, and only a weight
  double weight = 1;            // of its load in the objective
  bool is_saturated = false;    // the rate follows from the triggers
  double run_pkts = 1;          // n: packets of one run
  double other_run_ns = 0;      // of a run, outside all segments
  double beside_run_ns = 0;  // and of other tasks of its worker: waited for, but no load of its own
  double queue_ns = 0;       // that age limits leave time for, whatever the promises; 0: none
  double runs_waited = 2;    // K: runs between arrival and the end of one's own
  double spread_scale = 1;   // measured over modelled spread of run times
  double aged_share = 1;     // of releases: how often age limits come before triggers
};

struct ProgramFlow {
  double budget_ns = kNoBudgetNs;  // what turnaround, fills and services may take together
  double holding_ns = 0;           // turnaround counts as this at least while the flow is held
  uint32_t modules_begin = 0;      // into Program::flow_modules
  uint32_t modules_end = 0;
  uint32_t tasks_begin = 0;  // into Program::flow_tasks
  uint32_t tasks_end = 0;
};

struct Program {
  double hold_ns = 1.5;   // what holding costs a packet
  double release_ns = 0;  // and each batch that was held
  double fill_share = 1;  // of the fill time that counts: 1 = a batch's first packet
  double sigmas = 1.645;  // standard deviations of the work of K runs that count
  // A packet's place in its batch is taken as chance, like the work of its K runs: the percentile
  // is that of their sum. Else percentiles add up, which none exceeds.
  bool mixes_fills = false;
  // Firings of a module are as irregular as one that happens or not in each run, and as arrivals;
  // else as chance (Poisson), which is more.
  bool counts_firings = false;
  std::vector<ProgramModule> modules;
  std::vector<ProgramTask> tasks;
  std::vector<ProgramFlow> flows;
  std::vector<uint32_t> flow_modules;
  std::vector<uint32_t> flow_tasks;
};

// The model at one vector of triggers.
struct Evaluation {
  double load = 0;                     // objective: busy share, summed over tasks
  std::vector<double> task_pkt_ns;     // time of a packet: 1 / highest rate
  std::vector<double> task_spread_ns;  // standard deviation of the work of K runs
  std::vector<double> turnaround_ns;   // by task
  std::vector<double> fill_ns;         // by module
  std::vector<double> batch_pkts;      // by module, that is executed
  std::vector<double> service_ns;      // by module
  std::vector<double> with_next_ns;  // by module: what follows of a firing, up to the next buffers
  std::vector<double> delay_ns;      // by flow
  std::vector<double> mixing_ns;     // by flow: what fills count less than their sum
  std::vector<double> firing_variance;  // by module: of its firings, per packet polled
  std::vector<double> fill_variance;  // by module: where in the batch, how regularly the rest comes
};

// Variance over mean of the number of firings, at so many packets a batch.
[[nodiscard]] inline double irregularity_of(const Program& program, const ProgramModule& module,
                                            double batch_pkts) {
  if (!program.counts_firings) return 1;
  const double per_batch = 1 / batch_pkts;
  const double in_run = program.tasks[module.task].run_pkts * module.share * per_batch;
  return std::min(1.0, std::max(0.0, 1 - in_run) + per_batch);
}
// Batch that a module executes with this trigger.
[[nodiscard]] inline double batch_pkts(const ProgramModule& module, double trigger_pkts) {
  return trigger_pkts > 0 ? trigger_pkts : module.arriving_pkts;
}
// What a packet saves when its batch is collected: of its share of the batch's costs.
[[nodiscard]] double gain_of_holding_ns(const Program& program, const ProgramModule& module,
                                        double batch_pkts);
// Whether packets are held.
[[nodiscard]] inline bool is_holding(const ProgramModule& module, double trigger_pkts) {
  return trigger_pkts > module.arriving_pkts;
}
// Finds what is worth it in `stair`, that of the module, at the batches that arrive.
void mark_worth(const ProgramModule& module, Stair& stair);
// Where costs make stairs: the largest trigger up to this one that is worth it, or 0.
[[nodiscard]] double worth_down(const ProgramModule& module, double trigger_pkts);
// Next larger trigger that holds and is worth it, 0 when there is none; next smaller one, or 0.
[[nodiscard]] double next_up(const ProgramModule& module, double trigger_pkts);
[[nodiscard]] double next_down(const ProgramModule& module, double trigger_pkts);
// Rate at which packets reach a module, at a task's time per packet.
[[nodiscard]] inline double rate_of(const Program& program, const ProgramModule& module,
                                    double task_pkt_ns) {
  const ProgramTask& task = program.tasks[module.task];
  if (!task.is_saturated) return module.share * task.rate_pkts_per_ns;
  return task_pkt_ns > 0 ? module.share / task_pkt_ns : 0;
}
// Longest (share) that a packet waits for the trigger; 0 while bypassed.
[[nodiscard]] inline double fill_ns(const Program& program, const ProgramModule& module,
                                    double trigger_pkts, double rate_pkts_per_ns) {
  if (!is_holding(module, trigger_pkts) || rate_pkts_per_ns <= 0) return 0;
  const double sure_pkts = module.sure_pkts > 0 ? module.sure_pkts : module.arriving_pkts;
  return program.fill_share * (trigger_pkts - sure_pkts) / rate_pkts_per_ns;
}
// That of the smallest trigger that holds: what bypassing saves at once.
[[nodiscard]] inline double min_fill_ns(const Program& program, const ProgramModule& module,
                                        double rate_pkts_per_ns) {
  if (module.sure_pkts <= 0 || rate_pkts_per_ns <= 0) return 0;
  return program.fill_share * (module.arriving_pkts - module.sure_pkts) / rate_pkts_per_ns;
}

// What the fills of a flow's path add to the percentile of its delay.
struct FillSum {
  bool mixes = false;    // else they add up
  double sigmas = 0;     // Program::sigmas
  double spread_ns = 0;  // of the flow's turnaround
  double sum_ns = 0;
  double variance = 0;  // turnaround's included

  [[nodiscard]] double delay_ns() const {
    // A packet's place in a batch is uniform, so it waits for half of the fill in the mean.
    if (!mixes || sum_ns <= 0) return sum_ns;
    const double over_ns = std::sqrt(std::max(0.0, variance)) - spread_ns;
    return std::min(sum_ns, sum_ns / 2 + sigmas * std::max(0.0, over_ns));
  }
  // A fill of a batch of so many packets joins, or leaves with sign -1.
  void add(double fill_ns, double trigger_pkts, double sign = 1) {
    if (fill_ns <= 0) return;
    sum_ns += sign * fill_ns;
    variance += sign * variance_of(fill_ns, trigger_pkts);
  }
  // A packet's place in the batch, and how regularly the rest of it comes.
  [[nodiscard]] static double variance_of(double fill_ns, double trigger_pkts) {
    return fill_ns * fill_ns * (1.0 / 12 + 0.5 / trigger_pkts);
  }
};
[[nodiscard]] FillSum fills_of(const Program& program, const Evaluation& at,
                               const ProgramFlow& flow);
// Allocates only when `out` has never been used for as large a program.
void evaluate(const Program& program, const std::vector<double>& triggers_pkts, Evaluation& out);
// The flows' part of it alone, where nothing but their holding_ns has changed since.
void evaluate_delays(const Program& program, Evaluation& out);

// First derivatives at a point, such that, to first order and with the tasks' rates as they are
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

// E[min(q, 1 + N)], N Poisson: the batch under trigger q when the age limit leaves the first packet
// the time for `arrivals` more.
[[nodiscard]] double expected_batch_pkts(uint32_t trigger_pkts, double arrivals);
// Mean size of the part of a batch that takes a branch of the given share, when any of it does.
[[nodiscard]] double branch_batch_pkts(double batch_pkts, double share);
// Standard deviations above the mean below which a share p of a normal distribution lies; 0 for
// p = 0 (the mean), and 3.1 for p = 1 (the largest that is seen).
[[nodiscard]] double sigmas_of(double percentile);

}  // namespace batchplane::slo
