// SPDX-License-Identifier: BSD-3-Clause
// task.h - a connected part of the pipeline that one worker runs to completion: inputs, nodes, executor.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/module/module.h"
#include "core/module/traits.h"
#include "exec/executor.h"
#include "exec/hold_back.h"
#include "exec/leftovers.h"
#include "exec/task_layout.h"

namespace batchplane {

using CoreExecutor = exec::Executor<CoreTraits>;
using CoreQueue = exec::Queue<Packet*>;

struct TaskInput {
  Module* module = nullptr;
  uint32_t (*poll)(Module&, Context&, Packet**, uint32_t) noexcept = nullptr;
  ExecNode* first = nullptr;
  uint16_t entry_state = exec::PathOp::kKeep;  // written into packets when first needs it
  bool is_queue = false;                       // another task fills it
  bool absorbs = false;      // is polled for 0 packets while the task is held back
  bool is_open = true;       // as of the last open_inputs()
  bool counts_as_in = true;  // its packets come from outside the pipeline
  uint64_t batches = 0;
  uint64_t pkts = 0;            // polled, including packets that the input dropped at once
  uint64_t dropped_pkts = 0;    // all reasons
  std::vector<uint64_t> drops;  // by reason; empty for module kinds without any
  bool is_timed = false;        // Module::times_polls; never a queue
  CostSamples cost;             // of sampled polls
  exec::UsualCost usual_cost;

  void add_sample(uint64_t n_pkts, uint64_t cycles, uint64_t clock_cost_cycles) {
    cycles -= std::min(cycles, clock_cost_cycles);
    if (usual_cost.believes(n_pkts, cycles)) cost.add(n_pkts, cycles);
  }
};

struct Housekeeper {
  Module* module = nullptr;
  ExecNode* node = nullptr;
  uint64_t interval_ns = 0;
  uint64_t due_ns = 0;
};

// Owner: the worker that runs it; built and destroyed by the control thread while no worker runs it.
class Task : public exec::TaskStorage<CoreTraits> {
 public:
  std::string worker;  // name
  uint16_t index = 0;  // in the graph
  std::vector<TaskInput> inputs;
  std::vector<std::string> node_names;           // of nodes, by rank
  exec::Leftovers<ExecNode, Packet*> leftovers;  // usually none
  std::vector<Housekeeper> housekeepers;
  std::vector<exec::HoldBack<Module>> hold_backs;  // terminals that may hold back inputs
  std::unique_ptr<CoreExecutor> executor;          // made by attach()

  std::unique_ptr<Module> dead_end;

  // Binds the task to its worker's context. Call before the first run.
  void attach(Context& ctx, CoreTraits::Clock& clock, exec::FlowMeter& meter);
  // At a stop, runs held packets to the end without polling inputs. False when nothing was held.
  bool flush_held(Context& ctx);
  // Runs one batch of each input that is a queue. False when all were empty.
  bool poll_queues(Context& ctx);
  // Polled packets, or leftovers of a move, at the node where they go on.
  void enter(ExecNode& first, Packet** pkts, uint32_t n_pkts, Context& ctx, bool is_sampled);
  // Whether a batch may enter at `first`.
  [[nodiscard]] bool has_room(const ExecNode& first, uint32_t loose_rank, const Context& ctx);
  [[nodiscard]] bool has_space_for_held(const Context& ctx);
  // Packets in buffers and in modules (queue modules count for the task that reads them).
  [[nodiscard]] uint64_t held_pkts() const;

  // Members that exec::loop_task requires.
  uint32_t next_input = 0;
  void housekeep(Context& ctx) {
    if (!housekeepers.empty()) [[unlikely]]
      run_housekeepers(ctx);
  }
  [[nodiscard]] uint32_t open_inputs(Context& ctx);
  uint32_t poll_one(uint32_t input, Context& ctx, bool is_sampled);
  void flush(Context& ctx) { ctx.flush_free(); }

 private:
  uint32_t absorb(Context& ctx);
  void settle_refused(TaskInput& input, Context& ctx);
  void run_housekeepers(Context& ctx);
};

}  // namespace batchplane
