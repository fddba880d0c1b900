// SPDX-License-Identifier: BSD-3-Clause
// graph.h - builds running tasks from a pipeline as data: modules, edges, ranks, queues, flow paths.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/task.h"
#include "core/module/environment.h"
#include "core/module/kind.h"
#include "exec/legs.h"
#include "exec/path_automaton.h"
#include "exec/task_layout.h"
#include "spec/pipeline_spec.h"

namespace batchplane {

// All mistakes found; build_graph throws them together.
struct ConfigErrors : std::runtime_error {
  explicit ConfigErrors(std::vector<ConfigError> all)
      : std::runtime_error(all.empty() ? "" : all.front().line()), errors(std::move(all)) {}
  std::vector<ConfigError> errors;
};

// One module instance and where it runs.
struct Instance {
  std::string name;
  const ModuleInfo* info = nullptr;
  std::shared_ptr<Module> module;
  bool is_kept = false;      // taken from the previous graph, which may still run
  uint32_t n_gates = 0;      // as linked
  uint32_t task = 0;         // the task it runs in; for a queue: the one that fills it
  ExecNode* node = nullptr;  // null for pure inputs; for a queue: in the task that fills it
  // The module that its node works on: its own, or that of the queue of which it is a door (spec/doors.h).
  Module* works_on = nullptr;
  uint32_t door_of = kNoDoor;  // instance
  [[nodiscard]] bool is_door() const { return door_of != kNoDoor; }
  static constexpr uint32_t kNoDoor = ~0U;
};

using exec::PathAutomaton;
using exec::PathEdge;

struct LinkedEdge {
  uint32_t from;  // instance
  uint32_t gate;  // kDropGate for the drop gate
  uint32_t to;
};
using exec::kDropGate;

// What kept modules are told when this graph is swapped in: until then they serve the older one.
struct Rewiring {
  struct Flows {
    Module* module;
    uint16_t static_flow;
    const uint16_t* of_state;
  };
  struct LegEnd {
    Module* queue;
    uint32_t leg;
  };
  struct Feeders {
    Module* queue;
    std::vector<uint32_t> workers;
  };
  std::vector<std::vector<Flows>> flows;  // by task
  std::vector<std::vector<LegEnd>> legs;  // by task: queues that it fills
  std::vector<Feeders> feeders;           // of queues whose feeders change
};

// Immutable after build, except for what workers count. Control thread.
struct Graph {
  PipelineSpec spec;
  std::shared_ptr<Environment> env;
  std::vector<Instance> instances;
  std::map<std::string, uint32_t> index;  // name -> instance
  std::vector<LinkedEdge> edges;
  std::vector<std::unique_ptr<Task>> tasks;
  std::unique_ptr<PathAutomaton> paths;
  std::vector<std::vector<std::string>> flow_paths;  // each flow's full path, module names
  std::vector<std::string> flow_names;               // declared ones, then "other"
  exec::Legs legs;
  Rewiring rewiring;

  // Upper bound of the packets that buffers and modules can hold, to size the pool.
  [[nodiscard]] uint64_t max_held_pkts() const;
  [[nodiscard]] const Instance& at(const std::string& name) const;  // throws ConfigError
  // Whether its node works on a module of the previous graph.
  [[nodiscard]] bool works_on_kept(const Instance& instance) const {
    return instance.is_door() ? instances[instance.door_of].is_kept : instance.is_kept;
  }
  // Index of the worker that runs its node; a queue identifies its feeders by it.
  [[nodiscard]] uint16_t worker_index_of(const Instance& instance) const;
};

// Builds everything, or throws ConfigErrors with all mistakes. `env` has ports and interfaces. `running`:
// modules of the same name and kind are taken from this graph, even if their specification differs, and learn
// of the change only when the engine swaps the graph in; flows and environment must be the same.
std::unique_ptr<Graph> build_graph(const PipelineSpec& spec, std::shared_ptr<Environment> env,
                                   const Graph* running = nullptr);

using exec::stagger;

}  // namespace batchplane
