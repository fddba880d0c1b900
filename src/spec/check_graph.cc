// SPDX-License-Identifier: BSD-3-Clause
// check_graph.cc - triggers and workers of modules, and the edges between them.
#include <algorithm>
#include <charconv>

#include "base/nearest_word.h"
#include "spec/graph_check.h"

namespace batchplane {
namespace {

void check_trigger(GraphCheck& graph, uint32_t m) {
  const ModuleSpec& module = graph.spec.modules[m];
  const uint32_t batch_pkts = graph.spec.engine.batch_pkts;
  const std::string key = "modules." + module.name + ".trigger_pkts";
  if (module.trigger_pkts == 0) return;
  if (graph.kinds[m] != nullptr && !graph.kinds[m]->has_inputs()) {
    graph.mistakes.add(key, "a " + module.kind + " has no buffer",
                       "set the trigger at a module after it");
  }
  if (module.trigger_pkts > batch_pkts) {
    graph.mistakes.add(key,
                       "trigger " + std::to_string(module.trigger_pkts) + " is more than a batch",
                       "at most engine.batch_pkts = " + std::to_string(batch_pkts));
  }
}

void check_poll(GraphCheck& graph, uint32_t m) {
  const ModuleSpec& module = graph.spec.modules[m];
  const uint32_t batch_pkts = graph.spec.engine.batch_pkts;
  const std::string key = "modules." +
                          (module.leads_to.empty() ? module.name : module.leads_to + ".in_queue") +
                          ".poll_pkts";
  if (module.poll_pkts == 0) return;
  if (graph.kinds[m] != nullptr && !graph.kinds[m]->begins_task()) {
    graph.mistakes.add(key, "a " + module.kind + " is not polled",
                       "set poll_pkts at the input or queue that brings its packets");
  }
  if (module.poll_pkts > batch_pkts) {
    graph.mistakes.add(key,
                       "a poll of " + std::to_string(module.poll_pkts) + " is more than a batch",
                       "at most engine.batch_pkts = " + std::to_string(batch_pkts));
  }
}

void check_worker(GraphCheck& graph, uint32_t m) {
  const ModuleSpec& module = graph.spec.modules[m];
  if (module.worker.empty()) return;
  const std::string key = "modules." + module.name + ".worker";
  std::vector<std::string> workers;
  for (const WorkerSpec& worker : graph.spec.workers) workers.push_back(worker.name);
  if (workers.empty()) workers.push_back(graph.spec.first_worker());
  if (std::ranges::find(workers, module.worker) == workers.end()) {
    graph.mistakes.add(key, "there is no worker '" + module.worker + "'",
                       did_you_mean(module.worker, workers, "add it under workers:"));
  }
}

void take_modules(GraphCheck& graph, const Kinds& kinds) {
  const std::vector<ModuleSpec>& modules = graph.spec.modules;
  if (modules.empty()) graph.mistakes.add("modules", "there are no modules", "add some");
  graph.leaving.resize(modules.size());
  for (uint32_t m = 0; m < modules.size(); ++m) {
    const auto kind = kinds.modules.find(modules[m].kind);
    graph.kinds.push_back(kind == kinds.modules.end() ? nullptr : &kind->second);
    graph.knows_all_kinds = graph.knows_all_kinds && graph.kinds.back() != nullptr;
    if (!graph.index.emplace(modules[m].name, m).second) {
      graph.mistakes.add("modules." + modules[m].name, "there are two modules of this name",
                         "rename one");
    }
  }
  for (uint32_t m = 0; m < modules.size(); ++m) {
    if (!modules[m].door_of.empty()) continue;
    check_trigger(graph, m);
    check_poll(graph, m);
    check_worker(graph, m);
  }
}

bool has_known_ends(GraphCheck& graph, const EdgeSpec& edge, const std::string& key) {
  bool is_known = true;
  for (const std::string& end : {edge.from, edge.to}) {
    if (graph.index.contains(end)) continue;
    is_known = false;
    graph.is_torn = true;
    graph.mistakes.add(key, "there is no module '" + end + "'",
                       did_you_mean(end, graph.names(), "add it under modules:"));
  }
  return is_known;
}

// False, with a mistake recorded, when no packet can go this way.
bool fits_shapes(GraphCheck& graph, uint32_t from, const std::string& gate, uint32_t to,
                 const std::string& key) {
  const KindFacts* const kind = graph.kinds[from];
  const KindFacts* const target = graph.kinds[to];
  if (target != nullptr && !target->has_inputs()) {
    graph.mistakes.add(key, graph.told(to) + " is an input: nothing can lead to it");
    return false;
  }
  const auto number = gate_number(kind, gate);
  if (gate != "drop" && number >= exec::kDropGate) {
    graph.mistakes.add(
        key, "gate " + gate + " is out of range 0 .. " + std::to_string(exec::kDropGate - 1));
    return false;
  }
  if (kind == nullptr) return true;
  if (gate == "drop") {
    if (kind->has_inputs()) return true;
    graph.mistakes.add(key, graph.told(from) + " is an input: it drops nothing",
                       "remove this edge");
    return false;
  }
  if (!kind->has_outputs()) {
    graph.mistakes.add(key, graph.told(from) + " ends the path: nothing comes after it");
    return false;
  }
  if (!number) {
    std::vector<std::string> words = kind->gate_names;
    words.emplace_back("drop");
    graph.mistakes.add(key, graph.told(from) + " has no gate '" + gate + "'",
                       did_you_mean(gate, words));
    return false;
  }
  if (kind->shape == Shape::kSplitter || *number == 0) return true;
  graph.mistakes.add(key, graph.told(from) + " has no gate " + gate,
                     "it has gate 0: " + graph.name(from) + " -> ...");
  return false;
}

void take_edge(GraphCheck& graph, size_t i) {
  const EdgeSpec& edge = graph.spec.edges[i];
  const std::string key = "edges[" + std::to_string(i) + "]";
  if (!has_known_ends(graph, edge, key)) return;
  const uint32_t from = graph.index[edge.from];
  const uint32_t to = graph.index[edge.to];
  if (!fits_shapes(graph, from, edge.gate, to, key)) return;
  // Gate names of an unknown kind get numbers of their own, beyond all valid ones.
  const uint32_t unknown_gate = exec::kDropGate + 1 + static_cast<uint32_t>(i);
  const uint32_t gate = gate_number(graph.kinds[from], edge.gate).value_or(unknown_gate);
  const auto [known, is_new] = graph.next.try_emplace({from, gate}, to);
  if (!is_new) {
    if (known->second == to) {
      graph.mistakes.add(key, "'" + edge.from + "' is joined to '" + edge.to + "' twice",
                         "remove one");
    } else {
      graph.mistakes.add(key,
                         "gate " + edge.gate + " of '" + edge.from + "' leads to both '" +
                             graph.name(known->second) + "' and '" + edge.to + "'",
                         "a packet goes one way: use another gate");
    }
    return;
  }
  graph.leaving[from].push_back({from, gate, to});
  graph.linked.edges.push_back({from, gate, to});
}

}  // namespace

std::optional<uint32_t> gate_number(const KindFacts* kind, const std::string& text) {
  if (text == "drop") return exec::kDropGate;
  uint32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && stop == text.data() + text.size()) return number;
  if (kind == nullptr) return std::nullopt;
  const auto name = std::ranges::find(kind->gate_names, text);
  if (name == kind->gate_names.end()) return std::nullopt;
  return kind->first_named_gate + static_cast<uint32_t>(name - kind->gate_names.begin());
}

std::string GraphCheck::gate_text(const SpecEdge& edge) const {
  if (edge.gate == exec::kDropGate) return "drop";
  const KindFacts* const kind = kinds[edge.from];
  if (kind != nullptr && edge.gate >= kind->first_named_gate &&
      edge.gate - kind->first_named_gate < kind->gate_names.size()) {
    return kind->gate_names[edge.gate - kind->first_named_gate];
  }
  return std::to_string(edge.gate);
}

LinkedSpec check_graph(const PipelineSpec& spec, const Kinds& kinds, Mistakes& mistakes) {
  GraphCheck graph{spec, mistakes};
  take_modules(graph, kinds);
  for (size_t i = 0; i < spec.edges.size(); ++i) take_edge(graph, i);
  check_reach(graph);
  check_workers(graph);
  check_flows(graph);
  return std::move(graph.linked);
}

void check_pipeline(const PipelineSpec& spec, const Kinds& kinds, Mistakes& mistakes) {
  for (const PortSpec& port : spec.ports) check_port(port, kinds, mistakes);
  check_port_users(spec, kinds, mistakes);
  const std::vector<std::string> ports = port_names(spec);
  for (const ModuleSpec& module : spec.modules) {
    // A door has the parameters of its queue, and the same mistakes.
    if (module.door_of.empty()) check_module(module, kinds, ports, mistakes);
  }
  check_graph(spec, kinds, mistakes);
}

}  // namespace batchplane
