// SPDX-License-Identifier: BSD-3-Clause
// graph.cc - makes the instances, links their gates, finds tasks and worker of each.
#include "core/graph.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/graph_internal.h"
#include "exec/depth.h"

namespace batchplane {
namespace {

std::optional<uint32_t> parse_number(const std::string& text) {
  uint32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

bool has_outputs(const ModuleInfo& info) { return info.shape != Shape::kTerminal; }
bool has_inputs(const ModuleInfo& info) { return info.shape != Shape::kInput; }
bool is_input(const ModuleInfo& info) {
  return info.shape == Shape::kInput || info.shape == Shape::kQueue;
}

void make_instances(GraphBuild& build) {
  const PipelineSpec& spec = build.graph.spec;
  for (const ModuleSpec& module : spec.modules) {
    const std::string where = spec.where("modules." + module.name);
    const ModuleInfo* info = find_module_kind(module.kind);
    if (info == nullptr) {
      std::vector<std::string> kinds;
      for (const ModuleInfo* known : all_module_kinds()) kinds.push_back(known->kind);
      const std::string near = nearest_word(module.kind, kinds);
      build.errors.emplace_back(
          "unknown kind '" + module.kind + "'", where,
          near.empty() ? "batchplane modules lists them" : "did you mean '" + near + "'?");
      continue;
    }
    if (build.graph.index.contains(module.name)) {
      build.errors.emplace_back("there are two modules of this name", where, "rename one");
      continue;
    }
    const uint32_t batch_pkts = spec.engine.batch_pkts;
    if (module.trigger_pkts > batch_pkts) {
      build.errors.emplace_back("trigger " + std::to_string(module.trigger_pkts) +
                                    " is larger than the batch size " + std::to_string(batch_pkts),
                                where, "0 (no buffer) to " + std::to_string(batch_pkts));
    }
    if (module.trigger_pkts > 0 && !has_inputs(*info)) {
      build.errors.emplace_back("an input has no buffer in front of it", where, "remove 'trigger'");
    }
    std::vector<ConfigError> mistakes;
    Args args(info->params, module.params, where, mistakes);
    args.set_env(build.graph.env.get());
    args.set_name(module.name);
    Instance instance{module.name, info, nullptr};
    if (mistakes.empty()) {
      try {
        instance.module = info->make(args);
        instance.module->set_name(module.name);
      } catch (const ConfigError& e) {
        mistakes.emplace_back(e.what(), e.where().empty() ? where : e.where(), e.fix());
      }
    }
    build.errors.insert(build.errors.end(), mistakes.begin(), mistakes.end());
    build.graph.index[module.name] = static_cast<uint32_t>(build.graph.instances.size());
    build.graph.instances.push_back(std::move(instance));
  }
}

// The gate that `text` names at a module, or nothing after noting why not.
std::optional<uint32_t> resolve_gate(GraphBuild& build, const Instance& from,
                                     const std::string& text, const std::string& where) {
  const ModuleInfo& info = *from.info;
  if (text == "drop") return kDropGate;
  if (const auto number = parse_number(text)) {
    if (info.shape != Shape::kSplitter && *number != 0) {
      build.errors.emplace_back("'" + from.name + "' (" + info.kind + ") has only gate 0", where);
      return std::nullopt;
    }
    if (*number >= kDropGate) {
      build.errors.emplace_back("gate " + text + " is out of range 0 .. 65534", where);
      return std::nullopt;
    }
    return number;
  }
  const auto it = std::ranges::find(info.gate_names, text);
  if (it == info.gate_names.end()) {
    std::string known;
    for (const std::string& name : info.gate_names) known += (known.empty() ? "" : ", ") + name;
    build.errors.emplace_back("'" + from.name + "' (" + info.kind + ") has no gate '" + text + "'",
                              where, known.empty() ? "its gates are numbers" : "it has " + known);
    return std::nullopt;
  }
  return from.info->gate_number(static_cast<uint32_t>(it - info.gate_names.begin()));
}

void link_edges(GraphBuild& build) {
  const PipelineSpec& spec = build.graph.spec;
  std::set<std::pair<uint32_t, uint32_t>> taken;
  for (size_t i = 0; i < spec.edges.size(); ++i) {
    const EdgeSpec& edge = spec.edges[i];
    const std::string where = spec.where("edges[" + std::to_string(i) + "]");
    std::vector<std::string> names;
    for (const ModuleSpec& module : spec.modules) names.push_back(module.name);
    bool is_known = true;
    for (const std::string& end : {edge.from, edge.to}) {
      if (build.graph.index.contains(end)) continue;
      is_known = false;
      if (std::ranges::find(names, end) != names.end()) continue;  // its own mistake is noted
      const std::string near = nearest_word(end, names);
      build.errors.emplace_back("no module '" + end + "'", where,
                                near.empty() ? "" : "did you mean '" + near + "'?");
    }
    if (!is_known) continue;
    const uint32_t from = build.graph.index[edge.from];
    const uint32_t to = build.graph.index[edge.to];
    const Instance& source = build.graph.instances[from];
    const Instance& target = build.graph.instances[to];
    const auto gate = resolve_gate(build, source, edge.gate, where);
    if (!gate) continue;
    if (!has_inputs(*source.info) && *gate == kDropGate) {
      build.errors.emplace_back(
          "'" + edge.from + "' (" + source.info->kind + ") is an input: it drops nothing", where,
          "remove this edge");
    } else if (!has_outputs(*source.info) && *gate != kDropGate) {
      build.errors.emplace_back(
          "'" + edge.from + "' (" + source.info->kind + ") is an end: nothing can follow", where);
    } else if (!has_inputs(*target.info)) {
      build.errors.emplace_back(
          "'" + edge.to + "' (" + target.info->kind + ") is an input: nothing can lead to it",
          where);
    } else if (!taken.emplace(from, *gate).second) {
      build.errors.emplace_back("gate " + edge.gate + " of '" + edge.from + "' is connected twice",
                                where,
                                "a gate leads to one module; use another gate or a splitter");
    } else {
      build.graph.edges.push_back({from, *gate, to});
    }
  }
}

void check_ends(GraphBuild& build) {
  for (uint32_t i = 0; i < build.graph.instances.size(); ++i) {
    const Instance& instance = build.graph.instances[i];
    const std::string where = build.graph.spec.where("modules." + instance.name);
    const Shape shape = instance.info->shape;
    const bool leads_on = std::ranges::any_of(
        build.graph.edges, [&](const LinkedEdge& e) { return e.from == i && e.gate != kDropGate; });
    if (shape != Shape::kTerminal && !leads_on) {
      build.errors.emplace_back(
          "'" + instance.name + "' (" + instance.info->kind + ") leads nowhere", where,
          "connect its output, for example to a module of kind sink");
    }
  }
}

// Union of instances joined by edges; a queue belongs to the side that fills it, and what follows
// it to the other.
void find_tasks(GraphBuild& build) {
  const auto n = static_cast<uint32_t>(build.graph.instances.size());
  std::vector<std::pair<uint32_t, uint32_t>> joined;
  for (const LinkedEdge& edge : build.graph.edges) {
    if (build.graph.instances[edge.from].info->shape == Shape::kQueue && edge.gate != kDropGate)
      continue;
    joined.emplace_back(edge.from, edge.to);
  }
  const std::vector<uint32_t> groups = exec::groups_of(n, joined);
  for (uint32_t i = 0; i < n; ++i) {
    if (groups[i] == build.members.size()) build.members.emplace_back();
    build.members[groups[i]].push_back(i);
    build.graph.instances[i].task = groups[i];
  }
  build.inputs.resize(build.members.size());
  for (const LinkedEdge& edge : build.graph.edges) {
    const Instance& from = build.graph.instances[edge.from];
    if (!is_input(*from.info) || edge.gate == kDropGate) continue;
    build.inputs[build.graph.instances[edge.to].task].emplace_back(edge.from, edge.to);
  }
}

void check_workers(GraphBuild& build) {
  const PipelineSpec& spec = build.graph.spec;
  for (const ModuleSpec& module : spec.modules) {
    const ModuleInfo* info = find_module_kind(module.kind);
    if (module.worker.empty() || info == nullptr || is_input(*info)) continue;
    build.errors.emplace_back("'worker' stands on inputs only",
                              spec.where("modules." + module.name),
                              "give it to the port_in, source or queue where the task begins");
  }
  std::set<std::string> known;
  for (const WorkerSpec& worker : spec.workers) known.insert(worker.name);
  const std::string first = spec.workers.empty() ? "w0" : spec.workers.front().name;
  known.insert(first);
  build.worker_of_task.assign(build.members.size(), first);
  for (uint32_t t = 0; t < build.members.size(); ++t) {
    std::string chosen;
    for (const auto& [input, to] : build.inputs[t]) {
      const std::string& name = build.graph.instances[input].name;
      const auto it = std::ranges::find(spec.modules, name, &ModuleSpec::name);
      if (it->worker.empty()) continue;
      const std::string where = spec.where("modules." + name);
      if (!known.contains(it->worker)) {
        build.errors.emplace_back("no worker '" + it->worker + "'", where,
                                  "declare it under workers");
      } else if (!chosen.empty() && chosen != it->worker) {
        build.errors.emplace_back(
            "inputs of one task are given to workers '" + chosen + "' and '" + it->worker + "'",
            where, "put a queue between them, or use one worker");
      }
      chosen = it->worker;
    }
    if (!chosen.empty()) build.worker_of_task[t] = chosen;
    if (!build.inputs[t].empty()) continue;
    std::string names;
    for (const uint32_t i : build.members[t]) {
      if (build.graph.instances[i].info->shape != Shape::kInput) {
        names += (names.empty() ? "" : ", ") + build.graph.instances[i].name;
      }
    }
    if (!names.empty()) {
      build.errors.emplace_back("no input leads to " + names, "modules",
                                "connect them, or remove them");
    }
  }
}

}  // namespace

uint64_t Graph::max_held_pkts() const {
  uint64_t held = 0;
  for (const Instance& instance : instances) {
    held += instance.module->max_held_pkts();
    if (instance.node != nullptr) held += spec.engine.batch_pkts - 1;
  }
  for (const auto& task : tasks) {
    if (task == nullptr || task->unit_plan == nullptr) continue;
    for (const exec::UnitPlan::Unit& unit : task->unit_plan->units) held += unit.queue_pkts;
  }
  return held;
}

const Instance& Graph::at(const std::string& name) const {
  const auto it = index.find(name);
  if (it != index.end()) return instances[it->second];
  std::vector<std::string> names;
  for (const auto& [known, i] : index) names.push_back(known);
  const std::string near = nearest_word(name, names);
  throw ConfigError("no module '" + name + "'", "",
                    near.empty() ? "" : "did you mean '" + near + "'?");
}

std::unique_ptr<Graph> build_graph(const PipelineSpec& spec, std::unique_ptr<Environment> env) {
  auto graph = std::make_unique<Graph>();
  graph->spec = spec;
  graph->env = std::move(env);
  graph->env->batch_limit_pkts = spec.engine.batch_pkts;
  graph->env->n_workers = static_cast<uint32_t>(std::max<size_t>(1, spec.workers.size()));
  GraphBuild build{*graph};
  if (spec.engine.batch_pkts < 1 || spec.engine.batch_pkts > exec::kMaxBatchPkts) {
    build.errors.emplace_back(
        "batch size " + std::to_string(spec.engine.batch_pkts) + " is out of range",
        spec.where("engine.batch_pkts"), "1 to 256");
  }
  if (spec.engine.runs_by_deadline) {
    build.errors.emplace_back(
        "a daemon runs what is ready by depth; by deadline only simulations do",
        spec.where("engine.run_order"), "depth, or batchplane simulate");
  }
  if (spec.modules.empty())
    build.errors.emplace_back("there are no modules", spec.where("modules"));
  make_instances(build);
  link_edges(build);
  if (build.errors.empty()) check_ends(build);
  find_tasks(build);
  check_workers(build);
  if (build.errors.empty()) order_nodes(build);
  if (build.errors.empty()) resolve_flows(build);
  if (!build.errors.empty()) throw ConfigErrors(std::move(build.errors));
  make_tasks(build);
  return graph;
}

}  // namespace batchplane
