// SPDX-License-Identifier: BSD-3-Clause
#include "slo/model/budget.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {
constexpr double kManyArrivals = 600;  // beyond, their number hardly varies
constexpr double kNoChance = 1e-12;
}  // namespace

bool holding_pays(const Program& program, const ProgramModule& module, double trigger_pkts) {
  if (!is_holding(module, trigger_pkts)) return false;
  const double saved_ns = module.cost_per_batch_ns * (1 / module.arriving_pkts - 1 / trigger_pkts);
  const double gain_ns = saved_ns + module.stair_gain_ns(module.arriving_pkts, trigger_pkts) -
                         program.release_ns / trigger_pkts - program.hold_ns;
  return gain_ns > 0;
}

namespace {

bool is_worth(const ProgramModule& module, double trigger_pkts) {
  if (module.stair == nullptr) return true;
  const auto n = static_cast<size_t>(trigger_pkts);
  return n >= module.stair->is_worth.size() || module.stair->is_worth[n] != 0;
}

}  // namespace

void mark_worth(ProgramModule& module) {
  if (module.stair == nullptr) return;
  Stair& stair = *module.stair;
  const size_t n_sizes = stair.extra_ns.size();
  stair.is_worth.assign(n_sizes, 0);
  double least_ns = kNoBudgetNs;  // for a packet
  for (auto n = static_cast<size_t>(module.arriving_pkts) + 1; n < n_sizes; ++n) {
    const auto size_pkts = static_cast<double>(n);
    const double pkt_ns = module.service_ns(size_pkts) / size_pkts;
    if (pkt_ns >= least_ns) continue;
    least_ns = pkt_ns;
    stair.is_worth[n] = 1;
  }
}

double worth_down(const ProgramModule& module, double trigger_pkts) {
  while (is_holding(module, trigger_pkts) && !is_worth(module, trigger_pkts)) --trigger_pkts;
  return is_holding(module, trigger_pkts) ? trigger_pkts : 0;
}

double next_up(const ProgramModule& module, double trigger_pkts) {
  double next = std::max(trigger_pkts, std::floor(module.arriving_pkts)) + 1;
  while (next <= module.max_pkts && !is_worth(module, next)) ++next;
  return next <= module.max_pkts ? next : 0;
}

namespace {

// Whether a module without a buffer runs exactly when the module before it releases a batch, and
// not independently.
bool rides_along(const Program& program, const Triggers& triggers_pkts, size_t v) {
  const uint32_t before = program.modules[v].before;
  return before != kNoModule && !is_holding(program.modules[v], triggers_pkts[v]) &&
         is_holding(program.modules[before], triggers_pkts[before]) &&
         program.modules[before].share > 0;
}

// Sets each module's service time per batch and its share of each packet's time. True when any
// module has another one before it.
bool evaluate_modules(const Program& program, const Triggers& triggers_pkts, Evaluation& out) {
  bool any_before = false;
  for (size_t v = 0; v < program.modules.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    const double batch = batch_pkts(module, triggers_pkts[v]);
    const double firings = module.share / batch;  // per packet polled
    const double service_ns = module.service_ns(batch);
    const bool is_held = is_holding(module, triggers_pkts[v]);
    const double hold_ns = is_held ? holding_ns(program, module, firings) : 0;
    out.service_ns[v] = service_ns + module.away_ns(batch);
    out.with_next_ns[v] = service_ns;
    out.batch_pkts[v] = batch;
    out.firings[v] = firings;
    out.task_pkt_ns[module.task] += firings * service_ns + hold_ns;
    any_before |= module.before != kNoModule;
  }
  return any_before;
}

double variance_of_work(const Program& program, const Evaluation& at, size_t v, double runs) {
  return variance_of_work(program, program.modules[v], at.batch_pkts[v], at.firings[v],
                          at.with_next_ns[v], runs);
}

void evaluate_spread(const Program& program, const Triggers& triggers_pkts, bool any_before,
                     Evaluation& out) {
  for (size_t v = 0; any_before && v < program.modules.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    if (!rides_along(program, triggers_pkts, v)) continue;
    const ProgramModule& before = program.modules[module.before];
    const double firings = module.share / module.arriving_pkts;
    out.with_next_ns[module.before] +=
        firings * out.service_ns[v] * triggers_pkts[module.before] / before.share;
    out.firings[v] = 0;
  }
  for (size_t v = 0; v < program.modules.size(); ++v) {
    const uint32_t t = program.modules[v].task;
    out.task_spread_ns[t] += variance_of_work(program, out, v, program.tasks[t].runs_waited);
  }
}

// Full runs without buffers hardly differ, as measured. Where buffers may hold as much as arrives, as while
// the solver looks for triggers, their runs vary like those of larger triggers.
bool is_bare(const Program& program, const Triggers& triggers_pkts, size_t t) {
  if (!program.tasks[t].is_saturated) return false;
  for (size_t v = 0; v < program.modules.size(); ++v) {
    if (program.modules[v].task == t && triggers_pkts[v] > 0) return false;
  }
  return true;
}

double spread_scale(const Program& program, const Evaluation& at, size_t t) {
  return at.is_bare[t] != 0 ? program.tasks[t].bare_scale : program.tasks[t].spread_scale;
}

void evaluate_tasks(const Program& program, const Triggers& triggers_pkts, Evaluation& out) {
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    const ProgramTask& task = program.tasks[t];
    out.task_pkt_ns[t] = task.other_run_ns / task.run_pkts;
    out.task_spread_ns[t] = 0;
    out.is_bare[t] = is_bare(program, triggers_pkts, t) ? 1 : 0;
  }
  const bool any_before = evaluate_modules(program, triggers_pkts, out);
  evaluate_spread(program, triggers_pkts, any_before, out);
  out.load = 0;
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    const ProgramTask& task = program.tasks[t];
    const double runs_pkts = task.runs_waited * task.run_pkts;
    out.load += task.weight * out.task_pkt_ns[t] * task.rate_pkts_per_ns;
    out.task_spread_ns[t] =
        spread_scale(program, out, t) * std::sqrt(runs_pkts * out.task_spread_ns[t]);
    out.turnaround_ns[t] = runs_pkts * out.task_pkt_ns[t] + task.runs_waited * task.beside_run_ns +
                           program.sigmas * out.task_spread_ns[t];
  }
}

// What packets do not wait for of their own run, in the last of their tasks.
double early_ns(const Program& program, const Evaluation& at, const ProgramFlow& flow) {
  if (flow.runs_early == 0) return 0;
  const uint32_t last = program.flow_tasks[flow.tasks_end - 1];
  if (!program.tasks[last].is_saturated) return 0;
  return flow.runs_early * program.tasks[last].run_pkts * at.task_pkt_ns[last];
}

// What the first modules of a path, and its tasks, add to a flow's delay.
struct PathSum {
  double turnaround_ns = 0;
  double services_ns = 0;
  FillSum fills;
};

PathSum sum_of_tasks(const Program& program, const Evaluation& at, const ProgramFlow& flow) {
  PathSum sum{.fills = {.mixes = program.mixes_fills, .sigmas = program.sigmas}};
  for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
    const uint32_t t = program.flow_tasks[i];
    sum.turnaround_ns += at.turnaround_ns[t];
    // Below saturation age limits cut late batches, so the oldest packet counts.
    sum.fills.mixes &= program.tasks[t].is_saturated;
    sum.fills.spread_ns += at.task_spread_ns[t];
  }
  sum.fills.variance = sum.fills.spread_ns * sum.fills.spread_ns;
  return sum;
}

void add_modules(const Program& program, const Evaluation& at, uint32_t begin, uint32_t end,
                 PathSum& sum) {
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t v = program.flow_modules[i];
    sum.services_ns += at.service_ns[v];
    sum.fills.sum_ns += at.fill_ns[v];
    if (sum.fills.mixes) sum.fills.variance += at.fill_variance[v];
  }
}

}  // namespace

double run_spread_ns(const Program& program, const Evaluation& at, uint32_t task) {
  double variance = 0;
  for (size_t v = 0; v < program.modules.size(); ++v) {
    if (program.modules[v].task == task) variance += variance_of_work(program, at, v, 1);
  }
  return spread_scale(program, at, task) * std::sqrt(program.tasks[task].run_pkts * variance);
}

void evaluate(const Program& program, const Triggers& triggers_pkts, Evaluation& out) {
  out.task_pkt_ns.resize(program.tasks.size());
  out.task_spread_ns.resize(program.tasks.size());
  out.turnaround_ns.resize(program.tasks.size());
  out.is_bare.resize(program.tasks.size());
  out.fill_ns.resize(program.modules.size());
  out.service_ns.resize(program.modules.size());
  out.with_next_ns.resize(program.modules.size());
  out.batch_pkts.resize(program.modules.size());
  out.delay_ns.resize(program.flows.size());
  out.mixing_ns.resize(program.flows.size());
  out.fills.resize(program.flows.size());
  out.firings.resize(program.modules.size());
  out.fill_variance.resize(program.modules.size());
  evaluate_tasks(program, triggers_pkts, out);
  for (size_t v = 0; v < program.modules.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    out.fill_ns[v] = 0;
    out.fill_variance[v] = 0;
    if (!is_holding(module, triggers_pkts[v]) && module.least_pkts <= 1) continue;
    const double rate = rate_of(program, module, out.task_pkt_ns[module.task]);
    const Fill fill = fill_of(program, module, triggers_pkts[v], rate);
    out.fill_ns[v] = fill.ns;
    if (program.mixes_fills) out.fill_variance[v] = FillSum::variance_of(fill);
  }
  evaluate_delays(program, out);
}

namespace {

// How many modules two paths have in common at their start, if they pass the same tasks.
uint32_t shared_modules(const Program& program, const ProgramFlow& a, const ProgramFlow& b) {
  const auto tasks = program.flow_tasks.begin();
  const auto modules = program.flow_modules.begin();
  if (!std::equal(tasks + a.tasks_begin, tasks + a.tasks_end, tasks + b.tasks_begin,
                  tasks + b.tasks_end)) {
    return 0;
  }
  const auto ends = std::mismatch(modules + a.modules_begin, modules + a.modules_end,
                                  modules + b.modules_begin, modules + b.modules_end);
  return static_cast<uint32_t>(ends.first - modules) - a.modules_begin;
}

}  // namespace

void share_paths(Program& program) {
  for (size_t f = 1; f < program.flows.size(); ++f) {
    program.flows[f].shared_modules =
        shared_modules(program, program.flows[f - 1], program.flows[f]);
  }
}

double turnaround_of(const Program& program, const Evaluation& at, const ProgramFlow& flow) {
  double turnaround_ns = 0;
  for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
    turnaround_ns += at.turnaround_ns[program.flow_tasks[i]];
  }
  return turnaround_ns - early_ns(program, at, flow);
}

void evaluate_delays(const Program& program, Evaluation& out) {
  PathSum shared;         // of the first modules, as far as the next flow shares them
  uint32_t n_summed = 0;  // modules in it
  for (size_t f = 0; f < program.flows.size(); ++f) {
    const ProgramFlow& flow = program.flows[f];
    const uint32_t n_next = f + 1 < program.flows.size() ? program.flows[f + 1].shared_modules : 0;
    if (flow.shared_modules == 0 || flow.shared_modules < n_summed) {
      shared = sum_of_tasks(program, out, flow);
      n_summed = 0;
    }
    const uint32_t until = std::max(n_summed, n_next);
    add_modules(program, out, flow.modules_begin + n_summed, flow.modules_begin + until, shared);
    n_summed = until;
    PathSum sum = shared;
    add_modules(program, out, flow.modules_begin + until, flow.modules_end, sum);
    const double fills_ns = sum.fills.delay_ns();
    sum.turnaround_ns -= early_ns(program, out, flow);
    if (sum.fills.sum_ns > 0)
      sum.turnaround_ns = std::max(sum.turnaround_ns, flow.least_turnaround_ns);
    out.fills[f] = sum.fills;
    out.mixing_ns[f] = sum.fills.sum_ns - fills_ns;
    out.delay_ns[f] = fills_ns + sum.services_ns + sum.turnaround_ns;
  }
}

void slopes_at(const Program& program, const Evaluation& at, Slopes& out) {
  const size_t n = program.modules.size();
  out.load_weight.resize(n);
  out.turnaround_weight.resize(n);
  out.turnaround_slope.resize(n);
  out.delay_slope.resize(n);
  for (size_t v = 0; v < n; ++v) {
    const ProgramModule& module = program.modules[v];
    const ProgramTask& task = program.tasks[module.task];
    const double a_ns = module.cost_per_batch_ns;
    const double m_ns = module.cost_per_pkt_ns;
    const double rate = rate_of(program, module, at.task_pkt_ns[module.task]);
    const double spread_ns = at.task_spread_ns[module.task];
    // sqrt(x) lies below its tangent, and the variance is a sum over modules of (A^2 / q + 2 A M +
    // M^2 q): so the tangent is a separable and convex upper bound.
    const double scale = task.spread_scale;
    const double scale_here = spread_scale(program, at, module.task);
    double per_variance = spread_ns > 0 ? program.sigmas * scale * scale_here / (2 * spread_ns) : 0;
    if (at.batch_pkts[v] > 0) {
      const double batch = at.batch_pkts[v];
      const bool is_held = batch > module.arriving_pkts;
      per_variance *= irregularity_of(program, module, batch, task.runs_waited, is_held);
    }
    const double pkts = task.runs_waited * task.run_pkts * module.share;
    const double batch_ns = a_ns + program.release_ns;
    out.load_weight[v] = task.weight * module.share * task.rate_pkts_per_ns * batch_ns;
    out.turnaround_weight[v] = pkts * (batch_ns + per_variance * a_ns * a_ns);
    out.turnaround_slope[v] = pkts * per_variance * m_ns * m_ns;
    out.delay_slope[v] = m_ns + module.away_pkt_ns + (rate > 0 ? program.fill_share / rate : 0);
  }
}

double load_saved(const Program& program, const Slopes& slopes, uint32_t v, double from_pkts,
                  double to_pkts) {
  const ProgramModule& module = program.modules[v];
  const ProgramTask& task = program.tasks[module.task];
  const double by_stair =
      task.weight * module.share * task.rate_pkts_per_ns * module.stair_gain_ns(from_pkts, to_pkts);
  return slopes.load_weight[v] * (1 / from_pkts - 1 / to_pkts) + by_stair;
}

double expected_batch_pkts(uint32_t trigger_pkts, double arrivals) {
  if (trigger_pkts <= 1) return trigger_pkts;
  if (!(arrivals > 0)) return 1;
  if (arrivals > kManyArrivals) return std::min<double>(trigger_pkts, 1 + arrivals);
  // sum over k = 0..q-1 of P(1 + N > k) = 1 + sum over j = 0..q-2 of P(N > j).
  double batch = 1;
  double term = std::exp(-arrivals);  // P(N = j)
  double more = 1 - term;             // P(N > j)
  for (uint32_t j = 0; j + 2 <= trigger_pkts && more > kNoChance; ++j) {
    batch += more;
    term *= arrivals / (j + 1);
    more -= term;
  }
  return batch;
}

double branch_batch_pkts(double batch_pkts, double share) {
  if (share <= 0) return 1;
  if (share >= 1) return batch_pkts;
  const double taken = -std::expm1(batch_pkts * std::log1p(-share));
  return std::max(1.0, batch_pkts * share / taken);
}

double sigmas_of(double percentile) {
  if (!(percentile > 0.5)) return 0;
  constexpr double kMost = 3.1;
  double low = 0;
  double high = kMost;
  if (percentile >= 0.999) return kMost;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    const bool is_below = 0.5 * std::erfc(-middle / std::sqrt(2.0)) < percentile;
    (is_below ? low : high) = middle;
  }
  return high;
}

}  // namespace batchplane::slo
