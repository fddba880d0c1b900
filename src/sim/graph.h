// SPDX-License-Identifier: BSD-3-Clause
// graph.h - a pipeline as simulated tasks: laid out as in the engine, with modules that have no
// function.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/control.h"
#include "exec/executor.h"
#include "exec/hold_back.h"
#include "exec/leftovers.h"
#include "exec/path_automaton.h"
#include "exec/task_layout.h"
#include "sim/device.h"
#include "sim/module.h"
#include "sim/queue.h"
#include "sim/source.h"
#include "sim/spec.h"
#include "telemetry/telemetry.h"

namespace batchplane::sim {

// Beyond this many full batches of ready packets, a task that runs by deadline does not poll its
// input.
inline constexpr uint32_t kBacklogBatches = 4;

using Executor = exec::Executor<Traits>;
using Node = exec::Node<Traits>;

struct TaskInput {
  Module* module = nullptr;
  Source* source = nullptr;  // or
  Queue* queue = nullptr;
  Node* first = nullptr;
  uint16_t entry_state = exec::PathOp::kKeep;
  bool is_open = true;  // as of the last open_inputs()
  uint64_t batches = 0;
  uint64_t pkts = 0;
  std::array<uint64_t, kReasons> drops = {};  // refused by its scheduler, or dropped later
  CostSamples cost;                           // of sampled polls; not of queues
};

// One task as exec::loop_task runs it.
struct Task : exec::TaskStorage<Traits> {
  uint32_t index = 0;
  uint32_t worker = 0;
  std::vector<TaskInput> inputs;
  std::vector<exec::HoldBack<Module>> hold_backs;  // ends that may hold back inputs
  std::vector<uint32_t> modules;                   // by rank; without the dead end
  std::unique_ptr<Module> dead_end;
  std::unique_ptr<Executor> executor;
  uint32_t next_input = 0;
  uint64_t polls = 0;                        // that found packets
  exec::Leftovers<Node, Packet*> leftovers;  // usually none

  void housekeep(Context& /*ctx*/) {}
  [[nodiscard]] bool has_room(const Node& first, uint32_t loose_rank, const Context& ctx);
  [[nodiscard]] bool has_space_for_held(const Context& ctx);
  [[nodiscard]] uint32_t open_inputs(Context& ctx);
  uint32_t poll_one(uint32_t input, Context& ctx, bool is_sampled);
  void flush(Context& /*ctx*/) {}
  // Polled packets, or leftovers of a move, at the node where they go on.
  void enter(Node& first, Packet** pkts, uint32_t n_pkts, Context& ctx, bool is_sampled);

 private:
  uint32_t absorb(Context& ctx);
  // Returns their number.
  uint32_t drop_refused(TaskInput& input, Context& ctx);
};

struct Edge {
  uint32_t from = 0;  // module
  uint32_t gate = 0;  // or exec::kDropGate
  uint32_t to = 0;
  std::string text;  // the gate as written in the pipeline
};

// Immutable once built, except for run-time state inside.
struct Graph {
  std::vector<std::unique_ptr<Module>> modules;  // in the order of the pipeline
  std::map<std::string, uint32_t> index;
  std::vector<Edge> edges;
  std::vector<std::shared_ptr<Source>> sources;
  std::map<std::string, std::shared_ptr<Device>> devices;
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<std::unique_ptr<Task>> tasks;
  std::vector<std::string> worker_names;
  std::vector<int> worker_cores;
  std::unique_ptr<exec::PathAutomaton> paths;
  std::vector<std::vector<std::string>> flow_paths;
  std::vector<std::string> flow_names;  // declared ones, then "other"
  exec::ControlModel model;

  [[nodiscard]] uint32_t at(const std::string& name) const;  // throws ConfigError
  [[nodiscard]] telemetry::GraphFacts facts() const;
};

// Packets for this gate of a splitter go to its siblings in turn, and so on wherever they arrive
// without a route of their own. Cannot be undone.
void merge_branch(Graph& graph, uint32_t module, uint32_t gate);

// Throws ConfigError: missing costs, unknown names, cycles, or flows whose route does not continue
// or never leaves. `running`: sources are taken from that graph, and path states of the same flows
// keep their numbers.
std::unique_ptr<Graph> build_graph(const Spec& spec, PacketPool& pool, Recorder& recorder,
                                   const Graph* running = nullptr);

}  // namespace batchplane::sim
