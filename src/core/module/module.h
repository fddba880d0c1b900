// SPDX-License-Identifier: BSD-3-Clause
// module.h - base of network functions: one class, one file, one registration line.
//
// A module class is `final`, derives from Module and has exactly one of these members, which determines its
// shape:
//   void process(Context&, Batch&) noexcept     in-place: edits the batch, which moves on by pointer
//   void classify(Context&, Batch&) noexcept    splitter: fills ctx.gates[i] for each packet i
//   void consume(Context&, Batch&) noexcept     terminal: takes the packets (frees, sends)
//   uint32_t poll(Context&, Packet** pkts, uint32_t max) noexcept   input: fills up to max packets
// A class with consume and poll is a queue: terminal of one task and input of another.
//
// An input drops a packet that it has polled with ctx.drop_owned(pkt, kReason), and does not count it.
//
// Fate of a packet: it stays in the batch, or ctx.drop(batch, i, kReason), or ctx.keep(batch, i).
// New or kept packets leave with ctx.emit(gate, pkt). Packets removed in this call must not be
// touched again (their slot is null). process/classify/consume see batch.size_pkts in 1..B.
//
// On the data path: no throw, no allocation, no lock, no log, no system call, no clock
// (ctx.now_ns).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/module/context.h"
#include "core/module/environment.h"
#include "exec/demand.h"

namespace batchplane::exec {
struct EgressPromise;
struct StageChange;
}  // namespace batchplane::exec

namespace batchplane {

class Kernel;

// Control-side interface of every module. Control thread unless said otherwise.
class Module {
 public:
  virtual ~Module() = default;
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Called once, before the module runs: gates 0..connected-1 are connected in the pipeline (some of them may
  // not be). Returns the number of gates that it may write to ctx.gates: the engine links each to a module
  // or, if unconnected, to a dead end (drop reason unconnected_gate). In-place modules: 1.
  virtual uint32_t link(uint32_t connected) { return connected; }

  // Live commands ("add", "delete", "replace", ...) on tables; throws ConfigError, also for unknown commands.
  // `args` are not checked yet.
  virtual Value command(const std::string& verb, const Value& args);
  // For splitters that choose without looking at the packet: each gate's share of the packets. Empty: the
  // packet's contents decide.
  [[nodiscard]] virtual std::vector<double> blind_weights() const { return {}; }
  // The part of its work that a device with its own memory can do; null: none (core/module/kernel.h).
  [[nodiscard]] virtual Kernel* kernel() { return nullptr; }
  // State worth showing (table sizes, counters); a dict.
  [[nodiscard]] virtual Value show() const { return Dict{}; }
  // Current parameters, including live edits, in the form the constructor takes; `save` merges them over the
  // original ones.
  [[nodiscard]] virtual Dict saved_params() const { return {}; }

  // Copies state that may take long to copy, such as live routes, from the same-named module of the running
  // graph. Control thread, before adopt(); `old` keeps working. `old` is of the same class.
  virtual void inherit(Module& old) { (void)old; }
  // Takes over the state of the same-named module of the replaced graph. Runs on the worker between two runs:
  // O(1) moves only. `old` is of the same class.
  virtual void adopt(Module& old) noexcept { (void)old; }

  // Packets kept inside (ctx.keep), and their maximum; sizes pool and queues.
  [[nodiscard]] virtual uint64_t held_pkts() const { return 0; }
  [[nodiscard]] virtual uint32_t max_held_pkts() const { return 0; }
  // For a queue to another task: packets that a worker has ever put in (call on that worker), and packets
  // ever taken out (call on the polling worker); the queue holds the difference of their sums.
  [[nodiscard]] virtual uint64_t put_pkts(uint32_t worker) const { return (void)worker, 0; }
  [[nodiscard]] virtual uint64_t taken_pkts() const { return 0; }
  // Whether it may emit packets that it makes itself; sizes queues.
  [[nodiscard]] virtual bool may_emit() const { return max_held_pkts() != 0; }
  // For terminals that can be full: packets that they would take now from `worker`. The worker asks before it
  // polls the task's inputs, and polls nothing while there is no room for a batch. Worker.
  [[nodiscard]] virtual bool wants_backpressure() const { return false; }
  [[nodiscard]] virtual uint32_t room_pkts(uint32_t worker) const noexcept {
    return (void)worker, ~0U;
  }
  // Packets that it could take at worst, since packets in upstream buffers have been polled already.
  [[nodiscard]] virtual uint32_t space_pkts(uint32_t worker) const noexcept {
    return (void)worker, ~0U;
  }
  // Queues that still take in packets while the task behind them is held back: they are polled for 0 packets.
  [[nodiscard]] virtual bool absorbs() const { return false; }
  // For packet schedulers: the scheduler's flow of a packet, and everything that a simulation needs to do the
  // same; null for other modules. Modules that tell such flows apart without a queue for each also have the
  // flow. Control thread.
  [[nodiscard]] virtual bool is_scheduler() const { return false; }
  static constexpr uint32_t kNotScheduled = ~0U;
  [[nodiscard]] virtual uint32_t scheduled_flow(Packet& pkt) const {
    return (void)pkt, kNotScheduled;
  }
  [[nodiscard]] virtual Value for_simulation() const { return {}; }
  // For packet schedulers: guarantees for the flows that had packets since the last call, by the packets'
  // path state; bounds leave out rounds of the polling worker. Control thread.
  virtual void take_promises(
      const std::function<void(uint16_t state, const exec::EgressPromise&)>& use) {
    (void)use;
  }
  // Timers. Worker, between runs, about every housekeep_interval_ns(); may emit() and drop_owned(). 0 = never
  // called. `budget_ns` is the time it may take.
  [[nodiscard]] virtual uint64_t housekeep_interval_ns() const { return 0; }
  virtual void housekeep(Context& ctx, uint64_t budget_ns) noexcept { (void)ctx, (void)budget_ns; }
  // At a stop, when workers no longer run and inputs are about to be polled for the last time: modules that
  // wait for more packets, or for others, stop waiting.
  virtual void begin_drain() {}
  // At the end, or when an older graph is discarded: hands out kept packets, for the engine to count. Worker
  // or, when workers no longer run, control thread.
  virtual void give_up_held(const std::function<void(Packet*)>& take) { (void)take; }

  // For queues: the workers that put packets in, by index; no others will. Called once, before the module
  // runs and before its contents are asked for.
  virtual void set_feeders(const std::vector<uint32_t>& workers) { (void)workers; }
  // For queues: changes the workers that put packets in. First prepare_feeders(), on the control thread while
  // everything runs: allocates; throws ConfigError when the change is impossible. Then switch_feeders(),
  // while neither those workers nor the polling worker run: makes the change and hands out waiting packets.
  virtual void prepare_feeders(const std::vector<uint32_t>& workers);
  virtual void switch_feeders(const std::function<void(Packet*)>& take) noexcept { (void)take; }
  // For queues: packets that this worker puts in have reached the end of this leg (exec/legs.h). On that
  // worker, or while it does not run.
  virtual void set_leg(uint32_t worker, uint32_t leg) { (void)worker, (void)leg; }

  // For queues: how many packets each feeder may have waiting there. Control thread, also while workers run;
  // throws ConfigError. 0: not a queue.
  [[nodiscard]] virtual uint32_t credit_pkts() const { return 0; }
  [[nodiscard]] virtual uint32_t ring_pkts() const { return 0; }  // the highest credit
  virtual void set_credit(uint32_t credit_pkts) { (void)credit_pkts; }

  // For stages: what they tell controllers, with totals since the start; and their batches from the next one
  // on, cut to the largest that they allow. Control thread, also while workers run.
  [[nodiscard]] virtual bool is_stage() const { return false; }
  [[nodiscard]] virtual exec::StagePeriod stage_period() const { return {}; }
  [[nodiscard]] virtual uint32_t max_job_pkts() const { return 0; }
  virtual void set_stage(const exec::StageChange& change) { (void)change; }

  // For inputs: packets that wait to be polled (polling worker, between two runs), and arrivals that were not
  // taken (any thread).
  [[nodiscard]] virtual exec::RingCounts ring_counts() const noexcept { return {}; }
  virtual void begin_fill_period() noexcept {}  // the maximum fill restarts here
  // Whether what a poll takes is the module's own work, which sampled polls measure. Rings in memory belong to
  // the loop: there a poll mostly waits for cache lines of another core.
  [[nodiscard]] virtual bool times_polls() const { return true; }
  [[nodiscard]] virtual exec::ArrivalCounts arrival_counts() const { return {}; }

  [[nodiscard]] const std::string& name() const { return *name_; }
  void set_name(const std::string& name) { *name_ = name; }

  // For egress modules: the flow of packets that leave here. Set by the graph builder.
  void set_flows(uint16_t static_flow, const uint16_t* flow_of_state) {
    static_flow_ = static_flow;
    flow_of_state_ = flow_of_state;
  }
  [[nodiscard]] bool has_static_flow() const { return flow_of_state_ == nullptr; }
  [[nodiscard]] uint16_t static_flow() const { return static_flow_; }
  [[nodiscard]] uint16_t flow_of(uint16_t path_state) const { return flow_of_state_[path_state]; }

 private:
  // Kept small: with hundreds of modules, what each run touches decides whether all of it stays in L1.
  std::unique_ptr<std::string> name_ = std::make_unique<std::string>();
  const uint16_t* flow_of_state_ = nullptr;
  uint16_t static_flow_ = 0;
};

}  // namespace batchplane
