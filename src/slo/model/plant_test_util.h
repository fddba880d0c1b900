// SPDX-License-Identifier: BSD-3-Clause
// plant_test_util.h - small graphs, hand-made periods, and a plant that follows the cost law: rates
// are given, a buffer waits q / rate, and a batch takes cost_per_batch + cost_per_pkt * n.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "slo/model/controller.h"
#include "slo/model/model.h"

namespace batchplane::slo {

// in -> split -> nf_i -> out_i, one flow per branch.
inline Model tree_model(uint32_t n_branches) {
  Model model;
  model.modules = {{.name = "in"}, {.name = "split", .has_buffer = true}};
  model.edges = {{0, 0, 1}};
  for (uint32_t i = 0; i < n_branches; ++i) {
    const auto nf = static_cast<uint32_t>(model.modules.size());
    model.modules.push_back({.name = "nf_" + std::to_string(i), .has_buffer = true});
    model.modules.push_back(
        {.name = "out_" + std::to_string(i), .has_buffer = true, .is_egress = true});
    model.edges.push_back({1, i, nf});
    model.edges.push_back({nf, 0, nf + 1});
    model.flows.push_back({"flow_" + std::to_string(i), {0, 1, nf, nf + 1}});
  }
  model.tasks = {{.inputs = {0}}};
  for (uint32_t m = 1; m < model.modules.size(); ++m) model.tasks[0].modules.push_back(m);
  mark_controlled(model);
  return model;
}

// in -> first -> {second_0 .. second_3} -> out_i: two levels of buffers, four flows.
inline Model two_level_model() {
  Model model;
  model.modules = {{.name = "in"}, {.name = "first", .has_buffer = true, .is_controlled = true}};
  model.edges = {{0, 0, 1}};
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t second = 2 + 2 * i;
    const std::string number = std::to_string(i);
    model.modules.push_back(
        {.name = "second_" + number, .has_buffer = true, .is_controlled = true});
    model.modules.push_back({.name = "out_" + number, .has_buffer = true, .is_egress = true});
    model.edges.push_back({1, i, second});
    model.edges.push_back({second, 0, second + 1});
    model.flows.push_back({"flow_" + number, {0, 1, second, second + 1}});
  }
  model.tasks = {{.inputs = {0}, .modules = {1, 2, 3, 4, 5, 6, 7, 8, 9}}};
  return model;
}

// A period in which nothing happened.
inline Snapshot empty_period(const Model& model) {
  Snapshot snapshot;
  snapshot.modules.resize(model.modules.size());
  snapshot.flows.resize(model.flows.size());
  snapshot.tasks.resize(model.tasks.size());
  return snapshot;
}

// Counts of a module in 100 ms; its buffer holds `trigger_pkts`.
inline exec::ModulePeriod module_period(double rate_pps, double arriving_pkts,
                                        uint32_t trigger_pkts, CostLaw cost) {
  exec::ModulePeriod period;
  period.trigger_pkts = trigger_pkts;
  period.cost = std::move(cost);
  const double pkts = rate_pps * 0.1;
  period.pkts = static_cast<uint64_t>(std::llround(pkts));
  period.arrived_pkts = period.pkts;
  if (period.pkts == 0) return period;
  period.arrived_batches = static_cast<uint64_t>(std::llround(pkts / arriving_pkts));
  const double batch_pkts = trigger_pkts > 0 ? trigger_pkts : arriving_pkts;
  period.batches = static_cast<uint64_t>(std::llround(pkts / batch_pkts));
  return period;
}

inline exec::FlowPeriod flow_period(uint64_t slo_ns, double delay_ns, uint64_t pkts = 100'000) {
  exec::FlowPeriod period;
  period.slo_ns = slo_ns;
  period.pkts = pkts;
  period.delay_ns = static_cast<uint64_t>(std::llround(delay_ns));
  period.delay_max_ns = period.delay_ns;
  period.delay_sum_ns = period.delay_ns * pkts;
  period.late_pkts = slo_ns != 0 && period.delay_ns > slo_ns ? pkts : 0;
  return period;
}

// A tree with identical branches: each gets 1 M packets/s in batches of 5 and takes 1000 + 50 n ns
// per batch. One more packet in a trigger adds 1000 + 50 ns of delay.
inline Snapshot even_tree_period(const Model& model, uint64_t slo_ns, double delay_ns,
                                 uint32_t trigger_pkts) {
  Snapshot snapshot;
  snapshot.period_ns = 100'000'000;
  const auto n = static_cast<double>(model.flows.size());
  for (const exec::ControlModule& module : model.modules) {
    const bool is_branch = module.is_controlled || module.is_egress;
    snapshot.modules.push_back(module_period(is_branch ? 1e6 : n * 1e6, is_branch ? 5 : 5 * n,
                                             module.is_controlled ? trigger_pkts : 0,
                                             module.is_controlled ? CostLaw{1000, 50} : CostLaw{}));
  }
  for (size_t f = 0; f < model.flows.size(); ++f) {
    snapshot.flows.push_back(flow_period(slo_ns, delay_ns));
  }
  snapshot.tasks.push_back({.busy_ns = 50'000'000, .idle_ns = 50'000'000, .run_p99_ns = 4000});
  return snapshot;
}

struct Plant {
  explicit Plant(Model of) : model(std::move(of)) {
    costs.resize(model.modules.size());
    triggers.assign(model.modules.size(), 0);
    flow_pps.assign(model.flows.size(), 1e6);
    slo_ns.assign(model.flows.size(), 0);
  }

  Model model;
  std::vector<CostLaw> costs;
  std::vector<double> flow_pps;
  std::vector<uint64_t> slo_ns;
  std::vector<uint32_t> triggers;
  double input_batch_pkts = 16;
  double turnaround_ns = 2000;

  [[nodiscard]] std::vector<double> rates_pps() const {
    std::vector<double> rates(model.modules.size(), 0.0);
    for (size_t f = 0; f < model.flows.size(); ++f) {
      for (const uint32_t m : model.flows[f].path) rates[m] += flow_pps[f];
    }
    return rates;
  }
  // Mean batch that reaches each module. Modules are listed after those that feed them.
  [[nodiscard]] std::vector<double> arriving_pkts() const {
    const std::vector<double> rates = rates_pps();
    std::vector<double> arriving(model.modules.size(), 1.0);
    arriving[0] = input_batch_pkts;
    for (const exec::ControlEdge& edge : model.edges) {
      const double of = triggers[edge.from] > 0 ? triggers[edge.from] : arriving[edge.from];
      const double share = rates[edge.to] / std::max(1e-9, rates[edge.from]);
      arriving[edge.to] = std::max(1.0, of * std::min(1.0, share));
    }
    return arriving;
  }
  [[nodiscard]] std::vector<double> batches_pkts() const {
    std::vector<double> batches = arriving_pkts();
    for (size_t m = 0; m < batches.size(); ++m) {
      if (triggers[m] > 0) batches[m] = triggers[m];
    }
    return batches;
  }
  [[nodiscard]] double delay_ns(uint32_t flow) const {
    const std::vector<double> rates = rates_pps();
    const std::vector<double> batches = batches_pkts();
    double sum_ns = turnaround_ns;
    for (const uint32_t m : model.flows[flow].path) {
      if (triggers[m] > 0) sum_ns += triggers[m] / rates[m] * 1e9;
      sum_ns += costs[m].ns(batches[m]);
    }
    return sum_ns;
  }
  // Busy share of the core.
  [[nodiscard]] double load() const {
    const std::vector<double> rates = rates_pps();
    const std::vector<double> batches = batches_pkts();
    double sum = 0;
    for (uint32_t m = 0; m < model.modules.size(); ++m) {
      sum += rates[m] * 1e-9 * costs[m].line().work_ns(1 / batches[m], 1);
    }
    return sum;
  }
  [[nodiscard]] Snapshot period() const {
    Snapshot snapshot;
    snapshot.period_ns = 100'000'000;
    const std::vector<double> rates = rates_pps();
    const std::vector<double> arriving = arriving_pkts();
    for (uint32_t m = 0; m < model.modules.size(); ++m) {
      snapshot.modules.push_back(module_period(rates[m], arriving[m], triggers[m], costs[m]));
    }
    for (uint32_t f = 0; f < model.flows.size(); ++f) {
      snapshot.flows.push_back(
          flow_period(slo_ns[f], delay_ns(f), static_cast<uint64_t>(flow_pps[f] * 0.1)));
    }
    const auto busy_ns = static_cast<uint64_t>(std::min(1.0, load()) * 1e8);
    snapshot.tasks.push_back({.busy_ns = busy_ns,
                              .idle_ns = 100'000'000 - busy_ns,
                              .run_p99_ns = static_cast<uint64_t>(turnaround_ns)});
    return snapshot;
  }
  // Runs one period under a controller; true if the controller changed anything.
  bool step(Controller& controller) {
    const Decision decision = controller.step(period());
    for (const exec::BufferChange& change : decision.changes) {
      triggers[change.module] = change.trigger_pkts;
    }
    return !decision.changes.empty();
  }
};

// A tree in which the cost per batch of every branch is high enough for a buffer to pay off.
inline Plant tree_plant(uint32_t n_branches) {
  Plant plant(tree_model(n_branches));
  for (uint32_t m = 0; m < plant.model.modules.size(); ++m) {
    if (plant.model.modules[m].is_controlled) plant.costs[m] = {1000, 50};
  }
  return plant;
}

}  // namespace batchplane::slo
