// SPDX-License-Identifier: BSD-3-Clause
#include "slo/optimal/optimal_age.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {
// A delay is booked at the next reading of the clock.
constexpr double kClockNs = 1000;
// A limit of 0 would select the engine's own limit.
constexpr double kMinLimitNs = 1;
constexpr double kFillSigmas = 2;  // of the filling of regular batches
constexpr double kFewAged = 0.1;   // share of releases by age that is assumed at least

// What runs of a task take with these triggers. The triggers in force do not count: the way to new
// triggers may lead through longer runs, and limits based on those would never let batches grow.
struct RunTime {
  double mean_ns = 0;
  double spread_ns = 0;
  // May pass between a deadline and the start of the release: the current run, and other buffers that expire
  // together with it.
  double allowance_ns = 0;
  double often_ns = 0;  // the same, for buffers of which many batches leave by age

  [[nodiscard]] double long_ns(double sigmas) const { return mean_ns + sigmas * spread_ns; }
};

double run_allowance_ns(const ProgramView& view, const Evaluation& at, uint32_t task,
                        const Triggers& triggers_pkts, double sigmas, const RunTime& run) {
  const Program& program = view.program();
  const double run_ns = run.long_ns(sigmas);
  double together_ns = 0;
  double heaviest_ns = 0;
  for (size_t v = 0; v < program.modules.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    if (module.task != task || triggers_pkts[v] == 0 || module.share <= 0) continue;
    const double rate = rate_of(program, module, at.task_pkt_ns[task]);
    // A buffer empties once per q arriving packets, so it expires at most that often, and only
    // where age limits come before triggers.
    const double often = std::max(kFewAged, module.aged_share);
    const double in_run = often * std::min(1.0, run_ns * rate / triggers_pkts[v]);
    const double work_ns = module.service_ns(at.batch_pkts[v]);
    together_ns += in_run * work_ns;
    heaviest_ns = std::max(heaviest_ns, (1 - in_run) * work_ns);
  }
  return run_ns + together_ns + heaviest_ns * sigmas / kSigmasAt99 + kClockNs;
}

// By task.
std::vector<RunTime> run_times(const ProgramView& view, const Evaluation& at,
                               const Triggers& triggers_pkts, bool is_saturated) {
  const Program& program = view.program();
  std::vector<RunTime> runs(program.tasks.size());
  for (uint32_t t = 0; t < runs.size(); ++t) {
    const ProgramTask& law = program.tasks[t];
    runs[t].mean_ns = law.run_pkts * at.task_pkt_ns[t] + law.beside_run_ns;
    runs[t].spread_ns = run_spread_ns(program, at, t);
    runs[t].often_ns = run_allowance_ns(view, at, t, triggers_pkts, kSigmasAt99, runs[t]);
    // At saturation few batches leave by age, and only one packet of each is late. The target allows
    // a share of late packets, so for usual targets a mean run is enough.
    runs[t].allowance_ns =
        is_saturated ? run_allowance_ns(view, at, t, triggers_pkts, view.age_sigmas(), runs[t])
                     : runs[t].often_ns;
  }
  return runs;
}

}  // namespace

void reserve_for_ages(ProgramView& view, const Evaluation& at, const std::vector<double>& bound_ns,
                      const Triggers& triggers_pkts) {
  Program& program = view.program();
  const std::vector<RunTime> runs = run_times(view, at, triggers_pkts, true);
  for (size_t f = 0; f < program.flows.size(); ++f) {
    ProgramFlow& flow = program.flows[f];
    flow.least_turnaround_ns = 0;
    if (bound_ns[f] == 0 || flow.budget_ns == kNoBudgetNs) continue;
    double turnaround_ns = 0;
    double max_ns = -kNoBudgetNs;  // largest allowance, less its task's turnaround
    for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
      const uint32_t t = program.flow_tasks[i];
      turnaround_ns += at.turnaround_ns[t];
      max_ns = std::max(max_ns, runs[t].allowance_ns - at.turnaround_ns[t]);
    }
    const double limited_ns = turnaround_ns + max_ns + flow.budget_ns - bound_ns[f];
    flow.least_turnaround_ns = std::max(0.0, limited_ns);
  }
}

namespace {

// Limits of one flow: the time needed behind each of its modules, up to the egress, is reserved.
// Other tasks on its path are reserved whole, because a limit counts from entry into its own task.
void limit_flow(const ProgramView& view, const Evaluation& at, const ProgramFlow& flow,
                double bound_ns, const Triggers& triggers_pkts, bool is_saturated,
                const std::vector<RunTime>& runs, std::vector<double>& limits) {
  const Program& program = view.program();
  for (uint32_t at_task = flow.tasks_begin; at_task < flow.tasks_end; ++at_task) {
    const uint32_t task = program.flow_tasks[at_task];
    double left_ns = bound_ns - runs[task].allowance_ns;
    for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
      if (i != at_task) left_ns -= at.turnaround_ns[program.flow_tasks[i]];
    }
    for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
      const uint32_t v = program.flow_modules[i];
      if (program.modules[v].task != task) left_ns -= at.fill_ns[v] + at.service_ns[v];
    }
    // Age that packets of regular batches reach up to here: the arrival time of q packets is known
    // to within a share of 1 / sqrt(q).
    const ProgramTask& law = program.tasks[task];
    double regular_ns =
        runs[task].long_ns(kSigmasAt99) + (law.runs_waited - 2) * runs[task].mean_ns;
    double variance = 0;
    double behind_ns = 0;
    for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
      const uint32_t v = program.flow_modules[i];
      if (program.modules[v].task != task) continue;
      left_ns -= at.service_ns[v];
      behind_ns += at.fill_ns[v];
    }
    // The latest time at which an otherwise idle task could still serve a released batch.
    double last_ns = left_ns + runs[task].allowance_ns - kClockNs;
    for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
      const uint32_t v = program.flow_modules[i];
      if (program.modules[v].task != task) continue;
      behind_ns -= at.fill_ns[v];
      regular_ns += at.fill_ns[v];
      if (triggers_pkts[v] > 0) variance += at.fill_ns[v] * at.fill_ns[v] / triggers_pkts[v];
      const double filled_ns = regular_ns + kFillSigmas * std::sqrt(variance);
      const double latest_ns = std::max(left_ns - behind_ns, filled_ns);
      if (law.queue_ns > 0) {
        // The queue may be gone before the limit is changed: only what regular batches need goes beyond.
        const double queued_ns =
            std::max(filled_ns + law.queue_ns, std::min(latest_ns + law.queue_ns, last_ns));
        limits[v] = std::min(limits[v], queued_ns);
      } else {
        // Of few packets chance decides when a batch is full. Many then leave by age and have to be in time,
        // as long as no batches are cut that are as regular as planned.
        const bool is_often = program.modules[v].aged_share > kFewAged;
        double most_ns = left_ns + runs[task].allowance_ns - runs[task].often_ns;
        if (is_saturated) most_ns = is_often ? std::clamp(regular_ns, most_ns, last_ns) : last_ns;
        limits[v] = std::min({limits[v], most_ns, latest_ns});
      }
      left_ns += at.service_ns[v];
      last_ns += at.service_ns[v];
      regular_ns += at.service_ns[v];
    }
  }
}

}  // namespace

void age_limits(const ProgramView& view, const Evaluation& at, const std::vector<double>& bound_ns,
                const Triggers& triggers_pkts, bool is_saturated,
                std::vector<uint64_t>& limits_ns) {
  const Program& program = view.program();
  const std::vector<RunTime> runs = run_times(view, at, triggers_pkts, is_saturated);
  std::vector<double> limits(program.modules.size(), kNoBudgetNs);
  for (size_t f = 0; f < program.flows.size(); ++f) {
    if (bound_ns[f] == 0) continue;
    limit_flow(view, at, program.flows[f], bound_ns[f], triggers_pkts, is_saturated, runs, limits);
  }
  limits_ns.resize(limits.size());
  for (size_t v = 0; v < limits.size(); ++v) {
    limits_ns[v] = limits[v] == kNoBudgetNs
                       ? exec::kStrandingAge
                       : static_cast<uint64_t>(std::max(kMinLimitNs, limits[v]));
  }
}

}  // namespace batchplane::slo
