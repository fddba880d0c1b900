// SPDX-License-Identifier: BSD-3-Clause
// composition.h - of what batches are made when the input is never empty: packets in the order of
// their traffic, cut into polls, split, merged and collected; counted and priced, without a clock.
//
// What a period at saturation would count, as far as it follows from the pipeline, its traffic and
// its triggers alone. Nothing here knows when a packet came: no delays, no age limits.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "exec/control.h"
#include "exec/loop_times.h"
#include "sim/graph.h"

namespace batchplane::sim {

// Not thread-safe. The same specification and the same calls give the same counts.
class Composition {
 public:
  // Throws ConfigError.
  explicit Composition(const Spec& spec);

  [[nodiscard]] const exec::ControlModel& model() const { return graph_->model; }
  [[nodiscard]] const Graph& graph() const { return *graph_; }
  // By module. A buffer whose trigger changes begins empty; those of equal triggers release for the
  // first time at different fills, as in the engine.
  void set_triggers(const std::vector<uint32_t>& triggers_pkts);
  // Packets that would take this gate go to its siblings in turn.
  void merge_branch(uint32_t module, uint32_t gate) { merged_ = {module, gate}; }
  // So many polls of every input, as a period that begins with what the last one left in buffers.
  exec::PeriodSnapshot walk(uint32_t polls);
  // Busy time of each worker in the last walk.
  [[nodiscard]] const std::vector<double>& worker_ns() const { return worker_ns_; }
  [[nodiscard]] uint64_t in_pkts() const { return in_pkts_; }

 private:
  using Flows = std::vector<uint32_t>;  // packets: their traffic flows
  static constexpr uint32_t kNowhere = ~0U;
  struct Node {
    Module* module = nullptr;
    uint32_t rank = 0;
    uint32_t n_inputs = 0;
    uint32_t release_at_pkts = 0;
    uint32_t drop_to = kNowhere;
    uint32_t turn = 0;         // where merged packets go next
    std::vector<uint32_t> to;  // by gate
    Flows held;
    Flows ring;  // of a queue: what the next task has not polled yet
    exec::ModulePeriod count;
  };
  struct Input {
    uint32_t module = 0;
    uint32_t first = 0;
    Source* source = nullptr;
    double poll_pkts = 0;    // of a source: brought by a poll, in the mean
    double credit_pkts = 0;  // and left over from those before
  };
  void lay_out();
  void share_polls();
  void begin();
  void poll_source(uint32_t task, Input& input);
  bool poll_queue(uint32_t task, Input& input);
  void run(uint32_t task, const Input& input, const Flows& flows);
  void run_ready(uint32_t module);
  void fire(Node& node, size_t n_pkts);
  void deliver(uint32_t to, const Flows& flows, bool may_run);
  void execute(Node& node, Flows flows);
  void split(Node& node, const Flows& flows);
  void pass_on(Node& node, Flows flows);
  uint32_t gate_of(Node& node, uint32_t flow);
  uint32_t sibling_of(Node& node, uint32_t gate);
  void drop_ended(Node& node, Flows& flows);
  void read_clock_if_due();
  void charge(Node& node, size_t n_pkts);
  [[nodiscard]] bool is_direct(const Node& node) const {
    return node.n_inputs <= 1 && node.count.trigger_pkts == 0;
  }
  exec::PeriodSnapshot collect();

  struct Merged {
    uint32_t module = kNowhere;
    uint32_t gate = 0;
  };

  Spec spec_;
  PacketPool pool_;
  Recorder recorder_;
  std::unique_ptr<Graph> graph_;
  std::vector<Node> nodes_;                        // by module
  std::vector<std::vector<Input>> inputs_;         // by task
  std::set<std::pair<uint32_t, uint32_t>> ready_;  // rank and module: who waits for its turn
  std::vector<exec::TaskPeriod> tasks_;
  std::vector<exec::LoopTimes> run_times_;  // by worker
  std::vector<double> worker_ns_;
  Merged merged_;
  double run_ns_ = 0;     // of the present run
  double unread_ns_ = 0;  // work since the last reading of the clock
  uint64_t in_pkts_ = 0;
};

}  // namespace batchplane::sim
