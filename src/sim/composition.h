// SPDX-License-Identifier: BSD-3-Clause
// composition.h - periods of a saturated pipeline that follow from its traffic's order, its costs
// and its triggers alone: packets are cut into polls, split, merged and collected, and time is the
// work done.
//
// No arrival schedule, no generator, no idle time: inputs are never empty. For plans, which ask
// what a core can carry before anything runs.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "exec/flow_book.h"
#include "exec/loop_times.h"
#include "sim/graph.h"

namespace batchplane::sim {

// Not thread-safe. The same specification and the same calls give the same counts.
class Composition {
 public:
  // Throws ConfigError.
  explicit Composition(const Spec& spec);
  Composition(const Composition&) = delete;
  Composition& operator=(const Composition&) = delete;

  [[nodiscard]] const exec::ControlModel& model() const { return graph_->model; }
  [[nodiscard]] const Graph& graph() const { return *graph_; }
  // By declared flow; 0 = none.
  void set_slos(const std::vector<uint64_t>& slo_ns);
  // Throws nothing: triggers above the batch limit are lowered to it.
  void set_buffer(uint32_t module, uint32_t trigger_pkts, uint64_t age_limit_ns);
  // Packets that would take this gate go to its siblings in turn.
  void merge_branch(uint32_t module, uint32_t gate) { merged_ = {module, gate}; }
  // So many polls of every input; the period begins with what the last one left in buffers.
  exec::PeriodSnapshot period(uint32_t polls, double percentile);
  // Busy time of each worker in the last period, and packets that came in.
  [[nodiscard]] const std::vector<double>& busy_ns() const { return busy_ns_; }
  [[nodiscard]] uint64_t in_pkts() const { return in_pkts_; }

 private:
  static constexpr uint32_t kNowhere = ~0U;
  struct Pkt {
    uint32_t flow = 0;        // of the traffic
    uint16_t path_state = 0;  // which declared flows it may be
    double entry_ns = 0;      // into its ring; into the present task, by the present worker's clock
    double spent_ns = 0;      // in tasks before
  };
  using Pkts = std::vector<Pkt>;
  struct Node {
    Module* module = nullptr;
    uint32_t task = 0;
    uint32_t rank = 0;
    uint32_t n_inputs = 0;
    uint32_t release_at_pkts = 0;
    double age_limit_ns = 0;
    uint32_t drop_to = kNowhere;
    uint32_t turn = 0;         // where merged packets go next
    std::vector<uint32_t> to;  // by gate
    Pkts held;
    Pkts ring;  // of a queue: what the next task has not polled yet
    exec::ModulePeriod count;
  };
  struct Input {
    uint32_t module = 0;
    uint32_t first = 0;
    Source* source = nullptr;
    double poll_pkts = 0;        // of a source: brought by a poll, in the mean
    double credit_pkts = 0;      // and left over from those before
    std::deque<double> room_ns;  // when its ring got room for what it holds now
  };
  struct Worker {
    double clock_ns = 0;
    double read_ns = 0;    // the clock as last read
    double unread_ns = 0;  // work since then, by the cost law
    std::unique_ptr<exec::FlowMeter> meter;
    exec::LoopTimes loops;
  };
  struct Merged {
    uint32_t module = kNowhere;
    uint32_t gate = 0;
  };

  // composition.cc: inputs, time, counts.
  void lay_out();
  void share_polls();
  void begin();
  [[nodiscard]] double room_after_ns(const Input& input, uint32_t n) const;
  void poll_source(uint32_t task, Input& input);
  bool poll_queue(uint32_t task, Input& input);
  void start_loop(uint32_t task);
  void run(uint32_t task, const Input& input, Pkts pkts);
  void read_clock();
  void read_clock_if_due();
  exec::PeriodSnapshot collect(double percentile);
  // composition_run.cc: where packets go.
  void fire_expired(uint32_t task);
  void drain();
  void run_ready(uint32_t module);
  void fire(uint32_t module, size_t n_pkts, exec::Cause cause);
  void deliver(uint32_t from, uint32_t gate, Pkts pkts, bool may_run);
  void arrive(uint32_t to, Pkts pkts, bool may_run);
  void execute(uint32_t module, Pkts pkts);
  void leave(Node& node, const Pkts& pkts);
  void split(uint32_t module, Pkts pkts);
  void drop_ended(uint32_t module, Pkts& pkts);
  void charge(Node& node, size_t n_pkts);
  uint32_t gate_of(Node& node, uint32_t flow);
  uint32_t sibling_of(Node& node, uint32_t gate);
  [[nodiscard]] bool is_direct(const Node& node) const {
    return node.n_inputs <= 1 && node.count.trigger_pkts == 0;
  }

  Spec spec_;
  PacketPool pool_;
  Recorder recorder_;
  std::unique_ptr<Graph> graph_;
  std::vector<Node> nodes_;                 // by module
  std::vector<std::vector<Input>> inputs_;  // by task
  std::vector<Worker> workers_;
  Worker* worker_ = nullptr;                       // whose loop runs
  std::set<std::pair<uint32_t, uint32_t>> ready_;  // rank and module: who waits for its turn
  std::vector<exec::TaskPeriod> tasks_;
  exec::FlowBook book_;
  std::vector<uint64_t> slo_ns_;
  std::vector<double> began_ns_;  // by worker
  std::vector<double> busy_ns_;
  Merged merged_;
  uint64_t in_pkts_ = 0;
};

}  // namespace batchplane::sim
