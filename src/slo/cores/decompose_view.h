// SPDX-License-Identifier: BSD-3-Clause
// decompose_view.h - one period as the decomposer sees it: loads, SLOs and parts.
#pragma once

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "exec/promise.h"
#include "slo/cores/decompose.h"

namespace batchplane::slo {

// Loads and SLOs of one period, by module, task and worker of one model.
struct Decomposer::View {
  View(const Model& a_model, const Snapshot& a_period, double a_percentile, const HopCosts& a_hop)
      : model(a_model),
        period(a_period),
        percentile(a_percentile),
        hop(a_hop),
        length_ns(std::max(1.0, static_cast<double>(period.period_ns))) {
    load.resize(model.workers.size(), 0.0);
    feeds.resize(model.modules.size());
    flows_of.resize(model.tasks.size());
    for (uint32_t m = 0; m < model.modules.size(); ++m) {
      const exec::ModulePeriod& module = period.modules[m];
      const auto pkts = static_cast<double>(module.pkts);
      pkts_per_ns.push_back(pkts / length_ns);
      load_of.push_back(cost_line(module).work_ns(static_cast<double>(module.batches), pkts) /
                        length_ns);
      if (model.modules[m].has_buffer) load[worker_of(m)] += load_of[m];
    }
    ends_task.resize(model.modules.size(), false);
    for (const exec::ControlEdge& edge : model.edges) {
      feeds[edge.to].push_back(edge.from);
      const bool has_buffer = model.modules[edge.from].has_buffer;
      const bool leaves = model.modules[edge.from].task != model.modules[edge.to].task;
      if (has_buffer && leaves) ends_task[edge.from] = true;
    }
    for (uint32_t f = 0; f < model.flows.size(); ++f) {
      for (const uint32_t m : model.flows[f].path) {
        std::vector<uint32_t>& flows = flows_of[model.modules[m].task];
        if (flows.empty() || flows.back() != f) flows.push_back(f);
      }
    }
  }

  [[nodiscard]] double entered_pkts_per_ns() const {
    return static_cast<double>(exec::entered_pkts(model, period)) / length_ns;
  }
  [[nodiscard]] uint32_t worker_of(uint32_t module) const {
    return model.tasks[model.modules[module].task].worker;
  }
  // By name; the number of all where there is none.
  [[nodiscard]] uint32_t module_named(const std::string& name) const {
    const auto at = std::ranges::find(model.modules, name, &exec::ControlModule::name);
    return static_cast<uint32_t>(at - model.modules.begin());
  }
  [[nodiscard]] uint32_t worker_named(const std::string& name) const {
    return static_cast<uint32_t>(std::ranges::find(model.workers, name) - model.workers.begin());
  }
  [[nodiscard]] double slo_ns(uint32_t flow) const {
    const uint64_t slo_ns = period.flows[flow].slo_ns;
    return slo_ns == 0 ? kNoSlo : static_cast<double>(slo_ns);
  }
  [[nodiscard]] double tightest_slo_ns(uint32_t task) const {
    double tightest_ns = kNoSlo;
    for (const uint32_t f : flows_of[task]) tightest_ns = std::min(tightest_ns, slo_ns(f));
    return tightest_ns;
  }
  [[nodiscard]] bool is_late(uint32_t flow) const {
    return exec::is_slo_broken(period.flows[flow], percentile);
  }
  // Run time of a batch; inputs take none.
  [[nodiscard]] double run_ns(uint32_t module, double pkts) const {
    return model.modules[module].has_buffer ? cost_line(period.modules[module]).ns(pkts) : 0;
  }
  // Run time of a full batch of each.
  [[nodiscard]] double full_run_ns(const auto& modules) const {
    double sum_ns = 0;
    for (const uint32_t m : modules) sum_ns += run_ns(m, model.batch_limit_pkts);
    return sum_ns;
  }
  // A flow's modules in one task, without inputs.
  [[nodiscard]] std::vector<uint32_t> path_in(uint32_t flow, uint32_t task) const {
    std::vector<uint32_t> path;
    for (const uint32_t m : model.flows[flow].path) {
      if (model.modules[m].task == task && model.modules[m].has_buffer) path.push_back(m);
    }
    return path;
  }
  // A module and everything in its task that only it feeds.
  [[nodiscard]] std::set<uint32_t> part_of(uint32_t head) const {
    std::set<uint32_t> part{head};
    for (const uint32_t m : model.tasks[model.modules[head].task].modules) {
      const bool is_fed = !feeds[m].empty();
      const auto is_in = [&](uint32_t from) { return part.contains(from); };
      if (m != head && is_fed && std::ranges::all_of(feeds[m], is_in)) part.insert(m);
    }
    return part;
  }
  [[nodiscard]] double load_of_part(uint32_t head) const {
    double sum = 0;
    for (const uint32_t m : part_of(head)) sum += load_of[m];
    return sum;
  }
  // Whether a full batch keeps the part busy for longer than the hop takes.
  [[nodiscard]] bool is_worth_a_hop(uint32_t head) const {
    double run = 0;
    for (const uint32_t m : part_of(head)) run = std::max(run, run_ns(m, model.batch_limit_pkts));
    return run > (hop.send_per_pkt_ns + hop.take_per_pkt_ns) * model.batch_limit_pkts;
  }
  // Load that handing over a part's packets adds to one of the two workers, at `ns` per packet.
  [[nodiscard]] double hop_load(uint32_t head, double ns) const { return pkts_per_ns[head] * ns; }
  // Whether full batches of all modules on the worker, and of the part, would leave some flow there
  // too little time.
  [[nodiscard]] bool breaks_promises(const std::set<uint32_t>& part, uint32_t worker) const {
    std::vector<uint32_t> together(part.begin(), part.end());
    double tightest_ns = kNoSlo;
    for (uint32_t t = 0; t < model.tasks.size(); ++t) {
      const exec::ControlTask& task = model.tasks[t];
      if (task.worker != worker) continue;
      together.insert(together.end(), task.modules.begin(), task.modules.end());
      tightest_ns = std::min(tightest_ns, tightest_slo_ns(t));
    }
    return full_run_ns(together) > kPartDelay * tightest_ns;
  }
  [[nodiscard]] uint32_t least_loaded(uint32_t but, const std::vector<double>& loads) const {
    uint32_t best = but == 0 && loads.size() > 1 ? 1 : 0;
    for (uint32_t w = 0; w < loads.size(); ++w) {
      if (w != but && loads[w] < loads[best]) best = w;
    }
    return best;
  }
  // Whether inputs lose packets or keep some waiting in front of the ring, or polls always return
  // full batches.
  [[nodiscard]] bool has_too_much(uint32_t worker) const {
    for (size_t i = 0; i < model.inputs.size(); ++i) {
      const exec::InputPeriod& input = period.inputs[i];
      if (model.tasks[model.inputs[i].task].worker != worker) continue;
      if (input.lost_pkts != 0 || input.backlog_pkts != 0) return true;
    }
    for (uint32_t t = 0; t < model.tasks.size(); ++t) {
      if (model.tasks[t].worker != worker) continue;
      const exec::TaskPeriod& task = period.tasks[t];
      const bool is_busy = static_cast<double>(task.idle_ns) <=
                           (1 - kFullLoad) * static_cast<double>(task.busy_ns + task.idle_ns);
      if (is_busy && exec::are_polls_full(model, task, kFullPolls)) return true;
    }
    return false;
  }

  static constexpr double kNoSlo = std::numeric_limits<double>::infinity();
  static constexpr double kFullPolls = 0.9;  // of what a poll may take

  const Model& model;
  const Snapshot& period;
  const double percentile;
  const HopCosts hop;
  const double length_ns;                    // of the period
  std::vector<double> load;                  // by worker: share of its time
  std::vector<double> load_of;               // by module
  std::vector<double> pkts_per_ns;           // by module
  std::vector<std::vector<uint32_t>> feeds;  // by module: modules that feed it
  std::vector<bool> ends_task;               // by module: a queue or its entry belongs to no part
  std::vector<std::vector<uint32_t>> flows_of;  // by task
};

}  // namespace batchplane::slo
