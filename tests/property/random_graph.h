// SPDX-License-Identifier: BSD-3-Clause
// random_graph.h - random pipelines that build: tasks joined by queues, each an acyclic graph.
//
// Modules are added one by one behind gates that lead nowhere yet, so every module is reached and
// nothing leads back. Names come from a small set: two graphs of one seed share some.
#pragma once

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "spec/pipeline_spec.h"

namespace batchplane::property {

class RandomGraph {
 public:
  RandomGraph(Rng& rng, uint32_t batch_pkts) : rng_(rng), batch_pkts_(batch_pkts) {}

  PipelineSpec make() {
    spec_ = {};
    spec_.engine.batch_pkts = batch_pkts_;
    spec_.engine.is_idle_hold = rng_.below(2) == 0;
    spec_.engine.sample_one_run_in = 1 + rng_.below(20);
    spec_.workers = {{"w0", -1}, {"w1", -1}};
    const uint32_t n_tasks = 1 + rng_.below(5);
    for (uint32_t t = 0; t < n_tasks; ++t) add_task(t + 1 == n_tasks);
    for (uint32_t tries = rng_.below(12); tries > 0; --tries) add_flow();
    return spec_;
  }

 private:
  struct Gate {
    std::string module;
    std::string gate;
  };

  bool one_in(uint32_t n) { return rng_.below(n) == 0; }

  std::string add_module(const std::string& kind, Dict params, const std::string& worker = "") {
    // A name that says nothing of the kind may stand for another one in the next graph.
    const std::string stem = one_in(5) ? "x" : kind;
    uint32_t i = rng_.below(8);
    while (!names_.insert(stem + std::to_string(i)).second) ++i;
    ModuleSpec module{stem + std::to_string(i), kind, std::move(params), 0, 0, worker};
    if (worker.empty() && one_in(2)) module.trigger_pkts = rng_.below(batch_pkts_ + 1);
    if (worker.empty() && one_in(2)) module.age_limit_ns = 1 + rng_.below(20'000);
    spec_.modules.push_back(std::move(module));
    return spec_.modules.back().name;
  }

  void add_source(const std::string& worker) {
    const Dict dying{{"ttl", 1 + rng_.below(3)}, {"count", 3}};
    const std::string name = add_module("source",
                                        {{"limit_pkts", 1 + rng_.below(3000)},
                                         {"burst_pkts", rng_.below(batch_pkts_ + 1)},
                                         {"flows", List{dying, Dict{{"count", 5}}}}},
                                        worker);
    open_.push_back({name, "0"});
  }

  void read_queue(const std::string& worker) {
    const std::string name = pending_.back();
    pending_.pop_back();
    std::ranges::find(spec_.modules, name, &ModuleSpec::name)->worker = worker;
    open_.push_back({name, "0"});
  }

  void add_task(bool is_last) {
    open_.clear();
    ends_.clear();
    const std::string worker = one_in(2) ? "w0" : "w1";
    if (pending_.empty()) add_source(worker);
    while (!pending_.empty() && (is_last || open_.empty() || one_in(2))) read_queue(worker);
    while (one_in(3)) add_source(worker);
    for (uint32_t n = 1 + rng_.below(8); n > 0 && !open_.empty(); --n) add_node(is_last);
    close();
  }

  void add_node(bool is_last) {
    static constexpr const char* kKinds[] = {"null",  "counter", "merge", "ttl",
                                             "split", "split",   "split", "test_hold",
                                             "queue", "drop",    "sink"};
    const std::string kind = kKinds[rng_.below(std::size(kKinds))];
    if (kind == "queue" && is_last) return;
    Dict params;
    const uint32_t n_gates = 2 + rng_.below(one_in(6) ? 80 : 4);
    if (kind == "split") {
      params = {{"gates", n_gates},
                {"mode", one_in(3)   ? "round_robin"
                         : one_in(2) ? "hash"
                                     : "random"},
                {"seed", rng_.below(100)}};
    }
    const bool has_backpressure = one_in(4);
    if (kind == "queue") {
      params = {{"size_pkts", has_backpressure ? 2 * batch_pkts_ : 1 + rng_.below(80)},
                {"backpressure", has_backpressure}};
    }
    const std::string name = add_module(kind, std::move(params));
    for (uint32_t n = 1 + rng_.below(4); n > 0 && !open_.empty(); --n) connect(take_open(), name);
    const bool is_end = kind == "queue" || kind == "drop" || kind == "sink";
    if (kind == "queue") pending_.push_back(name);
    for (uint32_t g = 0; g < (is_end ? 0 : kind == "split" ? n_gates : 1); ++g) {
      open_.push_back({name, std::to_string(g)});
    }
    if (one_in(3)) {
      open_.push_back({name, "drop"});
    } else if (is_end) {
      ends_.push_back(name);
    }
  }

  Gate take_open() {
    std::swap(open_[rng_.below(static_cast<uint32_t>(open_.size()))], open_.back());
    const Gate gate = open_.back();
    open_.pop_back();
    return gate;
  }

  void connect(const Gate& gate, const std::string& to) {
    spec_.edges.push_back({gate.module, gate.gate, to});
    if (gate.gate != "drop") leads_on_.insert(gate.module);
  }

  // Gates that are still open: those that must lead somewhere end here, others may lead nowhere.
  void close() {
    while (!open_.empty()) {
      const Gate gate = take_open();
      if ((gate.gate == "drop" || leads_on_.contains(gate.module)) && one_in(2)) continue;
      if (!ends_.empty() && !one_in(4)) {
        connect(gate, ends_[rng_.below(static_cast<uint32_t>(ends_.size()))]);
        continue;
      }
      ends_.push_back(add_module(one_in(3) ? "drop" : "sink", {}));
      connect(gate, ends_.back());
    }
  }

  // A random walk from a source; a flow when it ends where packets leave, and is new.
  void add_flow() {
    const ModuleSpec* at = &spec_.modules[rng_.below(static_cast<uint32_t>(spec_.modules.size()))];
    if (at->kind != "source") return;
    std::vector<std::string> path;
    for (;;) {
      std::vector<const EdgeSpec*> ways;
      for (const EdgeSpec& edge : spec_.edges) {
        if (edge.from == at->name && edge.gate != "drop") ways.push_back(&edge);
      }
      if (ways.empty()) break;
      const EdgeSpec& way = *ways[rng_.below(static_cast<uint32_t>(ways.size()))];
      path.push_back(at->kind == "source" ? way.from : way.from + ":" + way.gate);
      at = &*std::ranges::find(spec_.modules, way.to, &ModuleSpec::name);
    }
    path.push_back(at->name);
    if (at->kind != "sink" || std::ranges::count(spec_.flows, path, &FlowSpec::path) != 0) return;
    const uint64_t slo_ns = one_in(3) ? 0 : 1 + rng_.below(20'000);
    spec_.flows.push_back({"f" + std::to_string(spec_.flows.size()), std::move(path), slo_ns});
  }

  Rng& rng_;
  const uint32_t batch_pkts_;
  PipelineSpec spec_;
  std::set<std::string> names_;
  std::set<std::string> leads_on_;
  std::vector<Gate> open_;            // of the task under way, connected to nothing yet
  std::vector<std::string> ends_;     // of the task under way: nothing leads on from them
  std::vector<std::string> pending_;  // queues that no task reads yet
};

}  // namespace batchplane::property
