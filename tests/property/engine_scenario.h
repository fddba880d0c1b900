// SPDX-License-Identifier: BSD-3-Clause
// engine_scenario.h - random pipelines for engine and simulator alike. The engine runs for real: its tasks,
// loops and buffers on packets with bytes. Its modules are stand-ins that turn the virtual clock by what they
// are said to cost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/engine/engine.h"
#include "sim/simulation.h"

namespace batchplane::engine_scenario {

struct Arrival {
  uint64_t time_ns;
  uint32_t flow;
};

// What the stand-ins share: the clock, the costs, the arrivals, and what was executed.
struct World {
  uint64_t* now_ns = nullptr;
  std::map<std::string, std::pair<uint64_t, uint64_t>> costs_ns;  // per batch, per packet
  std::map<std::string, std::vector<uint16_t>> gates;             // per traffic flow
  std::vector<Arrival> arrivals;
  std::map<std::string, uint32_t> index;
  std::vector<sim::Execution> executed;
  uint64_t seen_ns = 0;  // until when arrivals are counted as waiting
};
extern World* world;

// A random acyclic graph behind one input, as a pipeline for both.
class Scenario {
 public:
  Scenario(uint64_t seed, bool is_scheduled) : rng_(seed) {
    pipeline_.engine.batch_pkts = kBatches[rng_.below(5)];
    pipeline_.engine.is_idle_hold = rng_.below(2) == 0;
    pipeline_.engine.sample_one_run_in = 1;  // every run tells why it came
    pipeline_.engine.stranding_limit_ns = 1'000'000;
    if (is_scheduled) schedule_randomly();
    add("in", "input");
    const uint32_t n = 2 + rng_.below(12);
    std::string last = "in";
    for (uint32_t i = 0; i < n; ++i) add_inner(i);
    close();
    make_arrivals();
  }

  PipelineSpec pipeline_;
  World world_;
  uint64_t empty_poll_ns_ = 20;
  uint32_t n_flows_ = 6;
  Rng rng_;

  [[nodiscard]] sim::Spec simulated() const {
    sim::Spec spec;
    spec.pipeline = pipeline_;
    spec.loop.empty_poll_ns = static_cast<double>(empty_poll_ns_);
    for (ModuleSpec& module : spec.pipeline.modules) {
      if (module.kind == "queue") {
        spec.costs[module.name] = {};
        continue;
      }
      if (module.kind == "stand_in_input") module.params = {{"port", Value("p")}};
      const auto cost = world_.costs_ns.find(module.name);
      if (cost == world_.costs_ns.end()) continue;
      spec.costs[module.name] = {static_cast<double>(cost->second.first),
                                 static_cast<double>(cost->second.second)};
    }
    sim::SourceSpec source;
    source.name = "load";
    source.port = "p";
    source.ring_pkts = 1U << 20;
    spec.routes.emplace_back();
    for (uint32_t f = 0; f < n_flows_; ++f) {
      source.flows.push_back({std::to_string(f), 1, 0, 64});
      sim::FlowRoute route;
      for (const auto& [module, gates] : world_.gates) route[module] = std::to_string(gates[f]);
      spec.routes.back().push_back(route);
    }
    for (const Arrival& arrival : world_.arrivals) {
      source.trace.time_ns.push_back(arrival.time_ns);
      source.trace.flow.push_back(arrival.flow);
      source.trace.size_bytes.push_back(64);
    }
    spec.sources.push_back(std::move(source));
    return spec;
  }

 private:
  void schedule_randomly() {
    exec::Scheduling& how = pipeline_.engine.execution;
    how.mode = exec::Execution::kWeightedFair;
    how.by = rng_.below(2) == 0 ? exec::ScheduleBy::kCycles : exec::ScheduleBy::kCount;
    constexpr exec::Backpressure kKinds[] = {exec::Backpressure::kOff, exec::Backpressure::kOn,
                                             exec::Backpressure::kEarlyDrop};
    how.backpressure = kKinds[rng_.below(3)];
    how.queue_pkts = rng_.below(300);  // raised to two batches
    how.high_watermark_percent = 40 + rng_.below(61);
    how.low_watermark_percent = rng_.below(how.high_watermark_percent);
    how.queueing_time_threshold_ns = rng_.below(2) * rng_.below(60'000);
    how.input_weight = 1 + rng_.below(20);
  }

  static constexpr uint32_t kBatches[] = {1, 4, 32, 32, 128};
  struct Gate {
    std::string module;
    std::string gate;
  };

  void add(const std::string& name, const std::string& what) {
    ModuleSpec module;
    module.name = name;
    module.kind = what == "queue" ? "queue" : "stand_in_" + what;
    if (what != "input" && what != "queue") {
      module.params = {{"self", Value(name)}};
      world_.costs_ns[name] = {rng_.below(300), rng_.below(30)};
      if (rng_.below(2) == 0) module.trigger_pkts = rng_.below(pipeline_.engine.batch_pkts + 1);
      if (rng_.below(2) == 0) module.age_limit_ns = 1 + rng_.below(30'000);
      if (pipeline_.engine.execution.is_weighted_fair() && rng_.below(3) == 0) {
        module.weight = 1 + rng_.below(exec::kMaxWeight);
        module.queue_pkts = 1 + rng_.below(400);
      }
    }
    if (what == "queue") {
      module.params = {{"size_pkts", Value(8 << rng_.below(8))}};  // small ones lose packets
    }
    pipeline_.modules.push_back(module);
    if (what == "input" || what == "pass" || what == "queue") open_.push_back({name, "0"});
  }

  // Behind one gate that leads nowhere yet, or, where it joins, behind several.
  void connect_to(const std::string& name) {
    const uint32_t n_joined = rng_.below(4) == 0 ? 2 : 1;
    for (uint32_t j = 0; j < n_joined && !open_.empty(); ++j) {
      const uint32_t at = rng_.below(static_cast<uint32_t>(open_.size()));
      pipeline_.edges.push_back({open_[at].module, open_[at].gate, name});
      open_.erase(open_.begin() + at);
    }
  }

  void add_inner(uint32_t i) {
    if (open_.empty()) return;
    const std::string name = "m" + std::string(i < 10 ? "0" : "") + std::to_string(i);
    const uint32_t what = rng_.below(6);
    std::vector<Gate> before = open_;
    if (what == 0 && i > 1) {
      connect_to(name);
      add(name, "queue");
    } else if (what <= 2) {
      connect_to(name);
      add(name, "pass");
    } else {
      connect_to(name);
      add(name, "route");
      const uint32_t n_gates = 2 + rng_.below(rng_.below(8) == 0 ? 80 : 5);
      for (uint32_t g = 0; g < n_gates; ++g) open_.push_back({name, std::to_string(g)});
      std::vector<uint16_t>& gates = world_.gates[name];
      for (uint32_t f = 0; f < n_flows_; ++f) {
        gates.push_back(static_cast<uint16_t>(rng_.below(n_gates)));
      }
    }
  }

  void close() {
    for (uint32_t i = 0; !open_.empty(); ++i) {
      const std::string name = "z" + std::string(i < 10 ? "0" : "") + std::to_string(i);
      connect_to(name);
      add(name, "end");
    }
    std::ranges::sort(pipeline_.modules, {}, &ModuleSpec::name);
    for (const ModuleSpec& module : pipeline_.modules) {
      const auto i = static_cast<uint32_t>(world_.index.size());
      world_.index[module.name] = i;
    }
  }

  void make_arrivals() {
    uint64_t now_ns = 1000;
    for (uint32_t i = 0; i < 3000; ++i) {
      static constexpr uint32_t kGapsNs[] = {0, 0, 50, 300, 2000};
      now_ns += rng_.below(kGapsNs[rng_.below(5)] + 1);
      if (rng_.below(500) == 0) now_ns += 100'000 + rng_.below(2'000'000);  // all is quiet
      world_.arrivals.push_back({now_ns, rng_.below(n_flows_)});
    }
  }

  std::vector<Gate> open_;
};

// The same batches of the same modules, at the same time and for the same reason.
void expect_same_executions(const Scenario& scenario, sim::Simulation& simulation);

// The engine's estimates of work as the simulator has them.
void set_work_estimates(Engine& engine, const World& costs);

}  // namespace batchplane::engine_scenario
