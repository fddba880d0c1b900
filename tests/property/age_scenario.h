// SPDX-License-Identifier: BSD-3-Clause
// age_scenario.h - random simulated pipelines, and the run allowance of docs/age-limits.md computed
// from their costs.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"
#include "sim/sim_test_util.h"
#include "sim/simulation.h"

namespace batchplane::sim {

// Triggers and limits between which a segment of the run may have changed.
struct BufferRange {
  uint32_t low_pkts = 0;
  uint32_t high_pkts = 0;
  uint64_t limit_ns = 0;  // the larger one
};

// Layers of modules behind one input, or two such halves with a queue in between.
class AgeScenario {
 public:
  explicit AgeScenario(uint64_t seed) : rng_(seed) {
    const uint32_t batches[] = {4, 16, 32, 64};
    batch_pkts = batches[rng_.below(4)];
    maker_ = SpecMaker(batch_pkts);
    Spec& spec = maker_.spec();
    spec.seed = seed;
    make_flows();
    std::vector<std::string> ends = make_half("a", "in");
    if (rng_.below(3) == 0) {
      maker_.module("ring", "queue", cost_ns(50), cost_ns(5));
      spec.pipeline.modules.back().params["size_pkts"] = Value(64);
      for (const std::string& end : ends) maker_.edge(end, "ring");
      spec.pipeline.workers = {{"w0", -1}};
      if (rng_.below(2) == 0) {
        spec.pipeline.workers.push_back({"w1", -1});
        spec.pipeline.modules.back().worker = "w1";
      }
      ends = make_half("b", "ring");
    }
    for (const std::string& end : ends) {
      maker_.module("out_" + end, "sink", cost_ns(100), cost_ns(5)).edge(end, "out_" + end);
    }
    for (FlowRoute& route : spec.routes[0]) {
      for (const auto& [module, n_gates] : splitters_) {
        route[module] = std::to_string(rng_.below(n_gates));
      }
    }
    EngineCosts& loop = spec.loop;
    for (double* ns : {&loop.poll_per_batch_ns, &loop.firing_ns, &loop.scatter_per_branch_ns})
      *ns = cost_ns(100);
    for (double* ns : {&loop.poll_per_pkt_ns, &loop.buffered_per_pkt_ns, &loop.scatter_per_pkt_ns,
                       &loop.ring_take_per_pkt_ns, &loop.egress_per_pkt_ns, &loop.clock_read_ns}) {
      *ns = cost_ns(8);
    }
    SourceSpec& source = maker_.source();
    const exec::ArrivalKind kinds[] = {exec::ArrivalKind::kConstant, exec::ArrivalKind::kPoisson,
                                       exec::ArrivalKind::kOnOff};
    source.arrivals = kinds[rng_.below(3)];
    source.order = rng_.below(2) == 0 ? exec::Order::kRandom : exec::Order::kRoundRobin;
    source.on_ns = 20'000;
    source.off_ns = 30'000;
    source.burst_pkts = 1 + rng_.below(40);
    source.seed = seed;
    source.rate_pps = rate_pps();
  }

  [[nodiscard]] const Spec& spec() { return maker_.spec(); }
  Rng& rng() { return rng_; }
  double rate_pps() { return 2e5 * std::pow(100, rng_.uniform()); }
  uint32_t trigger_pkts() { return rng_.below(3) == 0 ? 0 : 1 + rng_.below(batch_pkts); }
  uint64_t limit_ns() { return static_cast<uint64_t>(3'000 * std::pow(200, rng_.uniform())); }
  uint32_t batch_pkts = 32;

 private:
  // Mostly small, sometimes up to `most`.
  double cost_ns(double most) { return most * rng_.uniform() * rng_.uniform() * rng_.uniform(); }

  void make_flows() {
    const uint32_t n_flows = 1 + rng_.below(12);
    for (uint32_t f = 0; f < n_flows; ++f) {
      maker_.source().flows.push_back({"f" + std::to_string(f), 0.1 + rng_.uniform(), 0, 64});
      maker_.spec().routes[0].emplace_back();
    }
  }

  std::string add(const std::string& name, uint32_t n_gates) {
    std::string kind = "cost";
    if (n_gates > 1) kind = rng_.below(3) == 0 ? "split" : "l2_table";
    maker_.module(name, kind, cost_ns(4000), cost_ns(60), trigger_pkts(), limit_ns());
    if (kind == "split") maker_.spec().pipeline.modules.back().params["mode"] = Value("random");
    if (kind == "l2_table") splitters_.emplace_back(name, n_gates);
    return name;
  }

  // Every module of a layer leads to some of the next, and none of those is left out.
  std::vector<std::string> make_half(const std::string& prefix, const std::string& input) {
    const uint32_t n_layers = 2 + rng_.below(3);
    std::vector<uint32_t> widths = {1};
    for (uint32_t l = 1; l < n_layers; ++l) widths.push_back(1 + rng_.below(6));
    std::vector<std::string> layer;
    std::vector<std::vector<uint32_t>> into;
    for (uint32_t l = 0; l < n_layers; ++l) {
      const uint32_t n_next = l + 1 < n_layers ? widths[l + 1] : 0;
      std::vector<std::vector<uint32_t>> targets(widths[l]);
      for (uint32_t to = 0; to < n_next; ++to) targets[rng_.below(widths[l])].push_back(to);
      for (auto& list : targets) {
        if (n_next != 0 && (list.empty() || rng_.below(3) == 0)) {
          const uint32_t more = rng_.below(n_next);
          if (std::ranges::find(list, more) == list.end()) list.push_back(more);
        }
      }
      std::vector<std::string> made;
      for (uint32_t i = 0; i < widths[l]; ++i) {
        made.push_back(add(prefix + std::to_string(l) + "_" + std::to_string(i),
                           static_cast<uint32_t>(targets[i].size())));
      }
      if (l == 0) maker_.edge(input, made[0]);
      for (uint32_t from = 0; from < layer.size(); ++from) {
        for (uint32_t g = 0; g < into[from].size(); ++g) {
          maker_.edge(layer[from], made[into[from][g]], std::to_string(g));
        }
      }
      layer = std::move(made);
      into = std::move(targets);
    }
    return layer;
  }

  Rng rng_;
  SpecMaker maker_;
  std::vector<std::pair<std::string, uint32_t>> splitters_;
};

// What docs/age-limits.md derives, for the modules of one task: the work between an age check and
// the end of the next.
class AllowanceBound {
 public:
  AllowanceBound(const Graph& graph, const Spec& spec, const std::vector<BufferRange>& buffers)
      : graph_(graph), spec_(spec), buffers_(buffers) {}

  [[nodiscard]] double window_ns(const Task& task) const {
    const EngineCosts& loop = spec_.loop;
    const double batch_pkts = spec_.pipeline.engine.batch_pkts;
    double ns = loop.poll_per_batch_ns + loop.poll_per_pkt_ns * batch_pkts + loop.empty_poll_ns;
    for (const TaskInput& input : task.inputs) ns += run_ns(input.module->index, 1, batch_pkts);
    double reads = 4;
    std::vector<double> batches(graph_.modules.size(), 0);  // executed in the window, at most
    for (const uint32_t m : task.modules) {
      const double pkts = pkts_at(task, m);
      double arrivals = 0;
      for (const TaskInput& input : task.inputs)
        arrivals += is_edge(input.module->index, m) ? 1 : 0;
      double branches = 0;
      for (const Edge& edge : graph_.edges) {
        if (edge.to == m) arrivals += batches[edge.from];
        branches += edge.from == m ? 1 : 0;
      }
      const BufferRange& buffer = buffers_[m];
      batches[m] = std::min(pkts, arrivals);
      if (buffer.high_pkts > 0) {
        const double least = std::max(1U, buffer.low_pkts);
        batches[m] = std::min(pkts, std::floor(pkts / least) + arrivals + 2);
      }
      reads += batches[m];
      ns += run_ns(m, batches[m], pkts) + loop.firing_ns * batches[m] +
            loop.buffered_per_pkt_ns * pkts +
            loop.scatter_per_branch_ns * batches[m] * std::max(0.0, branches - 1) +
            (loop.scatter_per_pkt_ns + loop.egress_per_pkt_ns + loop.ring_take_per_pkt_ns) * pkts;
    }
    return ns + reads * loop.clock_read_ns;
  }

  // The longest limit under which a packet may be when module m releases it.
  [[nodiscard]] uint64_t limit_ns(const Task& task, uint32_t m) const {
    uint64_t limit = buffers_[m].limit_ns;
    for (const uint32_t up : above(task, m)) {
      if (buffers_[up].high_pkts > 0) limit = std::max(limit, buffers_[up].limit_ns);
    }
    return limit;
  }

 private:
  [[nodiscard]] double run_ns(uint32_t module, double batches, double pkts) const {
    return graph_.modules[module]->cost.line().work_ns(batches, pkts);
  }
  [[nodiscard]] bool is_edge(uint32_t from, uint32_t to) const {
    return std::ranges::any_of(graph_.edges,
                               [&](const Edge& e) { return e.from == from && e.to == to; });
  }
  // m and what leads to it within the task.
  [[nodiscard]] std::vector<uint32_t> above(const Task& task, uint32_t m) const {
    std::vector<uint32_t> found = {m};
    for (size_t i = 0; i < found.size(); ++i) {
      for (const uint32_t up : task.modules) {
        const bool is_new = std::ranges::find(found, up) == found.end();
        if (is_new && is_edge(up, found[i])) found.push_back(up);
      }
    }
    return found;
  }
  [[nodiscard]] double pkts_at(const Task& task, uint32_t m) const {
    double pkts = spec_.pipeline.engine.batch_pkts;
    for (const uint32_t up : above(task, m)) pkts += std::max(1U, buffers_[up].high_pkts) - 1;
    return pkts;
  }

  const Graph& graph_;
  const Spec& spec_;
  const std::vector<BufferRange>& buffers_;
};

}  // namespace batchplane::sim
