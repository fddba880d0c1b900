// SPDX-License-Identifier: BSD-3-Clause
#include "slo/solver/least_delays.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {

constexpr double kMixedShare = 0.5;  // of fills that mix: the least that they add (FillSum)

// Calls `see` with every trigger that the module may have; 0 is bypassed.
template <typename See>
void for_each_trigger(const ProgramModule& module, bool is_pinned, See see) {
  see(0.0);
  if (is_pinned) return;
  for (double to = std::floor(module.arriving_pkts) + 1; to <= module.max_pkts; ++to) see(to);
}

// What the module adds to the time of a packet that the task polls.
double packet_time_ns(const Program& program, const ProgramModule& module, double trigger_pkts) {
  const double batch = batch_pkts(module, trigger_pkts);
  const double firings = module.share / batch;
  const double busy_ns = firings * module.service_ns(batch);
  return is_holding(module, trigger_pkts) ? busy_ns + holding_ns(program, module, firings)
                                          : busy_ns;
}

double variance_of(const Program& program, const ProgramModule& module, double trigger_pkts) {
  // Bypassed, it may ride along with the module before it, and vary no further.
  if (module.before != kNoModule) return 0;
  const double batch = batch_pkts(module, trigger_pkts);
  return variance_of_work(program, module, batch, module.share / batch, module.service_ns(batch),
                          program.tasks[module.task].runs_waited);
}

}  // namespace

void LeastDelays::find_packet_times(const Program& program, const std::vector<uint8_t>& is_pinned) {
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    tasks_[t] = {.pkt_ns = program.tasks[t].other_run_ns / program.tasks[t].run_pkts};
  }
  for (size_t v = 0; v < program.modules.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    modules_[v] = {kNoBudgetNs, kNoBudgetNs, kNoBudgetNs};
    for_each_trigger(module, is_pinned[v] != 0, [&](double trigger) {
      Least& least = modules_[v];
      least.pkt_ns = std::min(least.pkt_ns, packet_time_ns(program, module, trigger));
      least.variance = std::min(least.variance, variance_of(program, module, trigger));
    });
    tasks_[module.task].pkt_ns += modules_[v].pkt_ns;
    tasks_[module.task].variance += modules_[v].variance;
  }
}

// A task that is the last one of some flow counts as if all of its flows left it as early as that one.
void LeastDelays::find_waits(const Program& program) {
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    tasks_[t].waited_pkts = program.tasks[t].runs_waited * program.tasks[t].run_pkts;
  }
  for (const ProgramFlow& flow : program.flows) {
    if (flow.runs_early == 0) continue;
    const uint32_t last = program.flow_tasks[flow.tasks_end - 1];
    const ProgramTask& task = program.tasks[last];
    if (!task.is_saturated) continue;
    const double waited_pkts = (task.runs_waited - flow.runs_early) * task.run_pkts;
    tasks_[last].waited_pkts = std::min(tasks_[last].waited_pkts, waited_pkts);
  }
}

// At the highest rate, as fills are the shortest then.
void LeastDelays::find_paths(const Program& program, const std::vector<uint8_t>& is_pinned) {
  for (size_t v = 0; v < program.modules.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    const Task& task = tasks_[module.task];
    const double rate = rate_of(program, module, task.pkt_ns);
    const bool may_mix = program.mixes_fills && program.tasks[module.task].is_saturated;
    const double fill_share = may_mix ? kMixedShare : 1;
    Least& least = modules_[v];
    for_each_trigger(module, is_pinned[v] != 0, [&](double trigger) {
      const double more_ns = packet_time_ns(program, module, trigger) - least.pkt_ns;
      const double batch = batch_pkts(module, trigger);
      const double filling_ns =
          fill_ns(program, module, trigger, rate) + least_fill_ns(program, module, rate);
      least.path_ns =
          std::min(least.path_ns, task.waited_pkts * more_ns + module.service_ns(batch) +
                                      module.away_ns(batch) + fill_share * filling_ns);
    });
  }
}

void LeastDelays::find_turnarounds(const Program& program) {
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    const ProgramTask& task = program.tasks[t];
    const double scale =
        task.is_saturated ? std::min(task.spread_scale, task.bare_scale) : task.spread_scale;
    const double spread_ns =
        scale * std::sqrt(task.runs_waited * task.run_pkts * tasks_[t].variance);
    tasks_[t].turnaround_ns = tasks_[t].waited_pkts * tasks_[t].pkt_ns +
                              task.runs_waited * task.beside_run_ns + program.sigmas * spread_ns;
  }
}

const std::vector<double>& LeastDelays::find(const Program& program,
                                             const std::vector<uint8_t>& is_pinned) {
  modules_.resize(program.modules.size());
  tasks_.resize(program.tasks.size());
  delays_ns_.assign(program.flows.size(), 0);
  find_packet_times(program, is_pinned);
  find_waits(program);
  find_paths(program, is_pinned);
  find_turnarounds(program);
  for (size_t f = 0; f < program.flows.size(); ++f) {
    const ProgramFlow& flow = program.flows[f];
    for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
      delays_ns_[f] += tasks_[program.flow_tasks[i]].turnaround_ns;
    }
    for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
      delays_ns_[f] += modules_[program.flow_modules[i]].path_ns;
    }
  }
  return delays_ns_;
}

}  // namespace batchplane::slo
