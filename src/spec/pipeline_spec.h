// SPDX-License-Identifier: BSD-3-Clause
// pipeline_spec.h - a pipeline as plain data: read from JSON by src/app, input of the graph builder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/value.h"
#include "exec/scheduling.h"

namespace batchplane {

struct ModuleSpec {
  std::string name;
  std::string kind;
  Dict params;
  uint32_t trigger_pkts = 0;
  uint64_t age_limit_ns = 0;  // 0 = the stranding limit
  std::string worker;         // inputs: the polling worker; others: where they run (parts.h)
  uint32_t weight = 0;        // explicit scheduling; 0 = not given
  uint32_t queue_pkts = 0;    // explicit scheduling; 0 = the task's setting
  uint32_t poll_pkts = 0;     // of a polled module: most packets of a poll; 0 = not given
  std::string door_of;        // the queue to which this is another worker's entry (doors.h)
  Value device;               // where it runs (stages.h); null: on a worker
  Value in_queue;             // parameters of the queue before it, if one is needed (parts.h)
  std::string leads_to;       // of such a queue: the module behind it
};

inline constexpr const char* kDropGateName = "drop";

struct EdgeSpec {
  std::string from;
  std::string gate;  // a number, a gate name of the module, or "drop"
  std::string to;
};

struct FlowSpec {
  std::string name;
  std::vector<std::string> path;  // "module" or "module:gate"
  uint64_t delay_slo_ns = 0;      // 0 = none
};

struct PortSpec {
  std::string name;
  std::string kind;
  Dict params;
};

// A device that can process batches.
struct DeviceSpec {
  std::string name;
  std::string kind;
  Dict params;
  bool operator==(const DeviceSpec&) const = default;
};

struct InterfaceSpec {
  std::string name;
  std::string port;
  std::string mac;  // empty = the port's
  uint32_t mtu_bytes = 1500;
  std::vector<std::string> addresses;
};

struct WorkerSpec {
  std::string name;
  int core = -1;                              // -1 = not pinned
  std::optional<exec::Scheduling> execution;  // else the engine's
  bool is_shared = false;                     // no thread: the other workers run its tasks in turn
};

struct GeneratorSpec {
  std::string name;
  std::string port;
  int core = -1;
  Dict params;
};

struct EngineSpec {
  uint32_t batch_pkts = 32;
  uint32_t pool_pkts = 0;  // 0 = computed
  bool is_idle_hold = false;
  uint64_t stranding_limit_ns = 1'000'000'000;
  uint32_t sample_one_run_in = 256;
  bool runs_by_deadline = false;  // else by depth
  uint64_t heavy_ns = 1000;       // by deadline: the input is polled before a batch of this length
  uint64_t seed = 1;
  exec::Scheduling execution;
};

struct PipelineSpec {
  std::string name;
  EngineSpec engine;
  std::vector<WorkerSpec> workers;
  std::vector<PortSpec> ports;
  std::vector<DeviceSpec> devices;
  std::vector<InterfaceSpec> interfaces;
  std::vector<ModuleSpec> modules;
  std::vector<EdgeSpec> edges;
  std::vector<FlowSpec> flows;
  std::vector<GeneratorSpec> generators;
  // The controller to start with: name, period_ns, settings, costs, hop_costs, costs_origin,
  // costs_file. Null: none.
  Value controller;
  // Placement of modules with devices: policy, watt_cap, period_ns, apps. Null: none.
  Value placement;
  std::map<std::string, std::string> source_map;  // dotted key -> file:line

  // The worker of everything that names none.
  [[nodiscard]] std::string first_worker() const {
    return workers.empty() ? "w0" : workers.front().name;
  }
  // How tasks of a worker execute: by its own setting, otherwise by the engine's.
  [[nodiscard]] const exec::Scheduling& scheduling_of(const std::string& worker) const {
    for (const WorkerSpec& spec : workers) {
      if (spec.execution && spec.name == worker) return *spec.execution;
    }
    return engine.execution;
  }
  [[nodiscard]] bool has_weighted_fair() const {
    bool any = engine.execution.is_weighted_fair();
    for (const WorkerSpec& spec : workers)
      any |= spec.execution && spec.execution->is_weighted_fair();
    return any;
  }
  // Whether the pipeline makes a module a scheduling unit that its position in the graph would not.
  [[nodiscard]] static bool asks_for_unit(const ModuleSpec& module) {
    return module.trigger_pkts != 0 || module.weight != 0 || module.queue_pkts != 0;
  }

  // Most packets of a poll of a task with these inputs: the least that any of them is given.
  [[nodiscard]] uint32_t poll_pkts_of(const std::vector<uint32_t>& inputs) const {
    uint32_t least_pkts = engine.batch_pkts;
    for (const uint32_t input : inputs) {
      const uint32_t own_pkts = modules[input].poll_pkts;
      if (own_pkts != 0) least_pkts = std::min(least_pkts, own_pkts);
    }
    return least_pkts;
  }
  // Writes a running task's limit down, unless that is what its inputs are given anyway.
  void note_poll_pkts(const std::vector<uint32_t>& inputs, uint32_t poll_pkts) {
    if (poll_pkts_of(inputs) == poll_pkts) return;
    for (const uint32_t input : inputs) modules[input].poll_pkts = poll_pkts;
  }

  // "key" or "key (file:line)": for messages.
  [[nodiscard]] std::string where(const std::string& key) const {
    const auto it = source_map.find(key);
    return it == source_map.end() ? key : key + " (" + it->second + ")";
  }
};

}  // namespace batchplane
