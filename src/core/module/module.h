// SPDX-License-Identifier: BSD-3-Clause
// module.h - what a network function is: one class, one file, one registration line.
//
// A module class is `final`, derives from Module and has exactly one of these members; the shape
// follows from it:
//   void process(Context&, Batch&) noexcept     in-place: edits the batch, which moves on by pointer
//   void classify(Context&, Batch&) noexcept    splitter: fills ctx.gates[i] for each packet i
//   void consume(Context&, Batch&) noexcept     terminal: takes the packets (frees, sends)
//   uint32_t poll(Context&, Packet** pkts, uint32_t max) noexcept   input: fills up to max packets
// A class with consume and poll is a queue: terminal of one task and input of another.
//
// An input drops what it polled with ctx.drop_owned(pkt, kReason), and leaves it out of its count.
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

namespace batchplane::exec {
struct EgressPromise;
}

namespace batchplane {

class Kernel;

// Control-side interface of every module. All of it runs on the control thread unless said
// otherwise.
class Module {
 public:
  virtual ~Module() = default;
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Told once, before it runs: gates 0..connected-1 are connected in the pipeline (some of them may
  // not be). Returns how many it has, all of which it may write to ctx.gates: the engine links each
  // to a module or, when nothing is connected, to a dead end (drop reason unconnected_gate).
  // In-place: 1.
  virtual uint32_t link(uint32_t connected) { return connected; }

  // Live commands ("add", "delete", "replace", ...) on tables; throws ConfigError. `args` was not
  // checked. Unknown commands throw.
  virtual Value command(const std::string& verb, const Value& args);
  // Splitters whose choice does not depend on the packet: each gate's share of the packets. Empty:
  // what is in the packet decides.
  [[nodiscard]] virtual std::vector<double> blind_weights() const { return {}; }
  // The part of its work that a device with memory of its own can do; null: none (core/module/kernel.h).
  [[nodiscard]] virtual Kernel* kernel() { return nullptr; }
  // State worth showing (table sizes, counters); a dict.
  [[nodiscard]] virtual Value show() const { return Dict{}; }
  // Parameters as they are now, live edits included, in the form the constructor takes; merged over
  // the original ones by `save`.
  [[nodiscard]] virtual Dict saved_params() const { return {}; }

  // Copies what may take long (live routes, say) from the same-named module of the running graph.
  // Control thread, before adopt(); `old` still works. `old` is of the same class.
  virtual void inherit(Module& old) { (void)old; }
  // Takes over the state of the same-named module of the graph that this one replaces. Runs on the
  // worker between two runs: O(1) moves only. `old` is of the same class.
  virtual void adopt(Module& old) noexcept { (void)old; }

  // Packets kept inside (ctx.keep), and the most there can ever be; sizes pool and queues.
  [[nodiscard]] virtual uint64_t held_pkts() const { return 0; }
  [[nodiscard]] virtual uint32_t max_held_pkts() const { return 0; }
  // A queue to another task: packets that a worker has ever put in (told on that worker), and packets
  // ever taken out (on the one that polls it); the difference of their sums is what it holds.
  [[nodiscard]] virtual uint64_t put_pkts(uint32_t worker) const { return (void)worker, 0; }
  [[nodiscard]] virtual uint64_t taken_pkts() const { return 0; }
  // Whether it may emit packets of its own making; sizes queues.
  [[nodiscard]] virtual bool may_emit() const { return max_held_pkts() != 0; }
  // Terminals that can be full: how many packets they would take now from `worker`. The worker asks
  // before it polls the task's inputs, and polls nothing while there is no room for a batch.
  // Worker.
  [[nodiscard]] virtual bool wants_backpressure() const { return false; }
  [[nodiscard]] virtual uint32_t room_pkts(uint32_t worker) const noexcept {
    return (void)worker, ~0U;
  }
  // How many it could take at worst: what buffers before it hold has been polled already.
  [[nodiscard]] virtual uint32_t space_pkts(uint32_t worker) const noexcept {
    return (void)worker, ~0U;
  }
  // Queues that take what was put in even while the task behind them is held back: polled for 0 packets.
  [[nodiscard]] virtual bool absorbs() const { return false; }
  // Packet schedulers: which of their flows a packet belongs to, and all that a simulation has to know to do
  // the same; null for other modules. Control thread.
  [[nodiscard]] virtual bool is_scheduler() const { return false; }
  static constexpr uint32_t kNotScheduled = ~0U;
  [[nodiscard]] virtual uint32_t scheduled_flow(Packet& pkt) const {
    return (void)pkt, kNotScheduled;
  }
  [[nodiscard]] virtual Value for_simulation() const { return {}; }
  // What they promise the flows of the pipeline that packets came of since the last call, by the state of the
  // paths in which they came; bounds without rounds of the worker that polls. Control thread.
  virtual void take_promises(
      const std::function<void(uint16_t state, const exec::EgressPromise&)>& use) {
    (void)use;
  }
  // Timers. Worker, between runs, about every housekeep_interval_ns(); may emit() and drop_owned().
  // 0 = never called. Budget is the time it may take.
  [[nodiscard]] virtual uint64_t housekeep_interval_ns() const { return 0; }
  virtual void housekeep(Context& ctx, uint64_t budget_ns) noexcept { (void)ctx, (void)budget_ns; }
  // At a stop, when no worker runs any more and inputs are about to be polled for the last time: what
  // waits for more, or for others, waits no longer.
  virtual void begin_drain() {}
  // At the end, or when an older graph is given up: hand out what is kept, for the engine to count.
  // Worker or, when no worker runs any more, control thread.
  virtual void give_up_held(const std::function<void(Packet*)>& take) { (void)take; }

  // Queues: which workers put packets in, by index; the others never will. Once, before the module runs
  // and before anybody asks what it holds.
  virtual void set_feeders(const std::vector<uint32_t>& workers) { (void)workers; }
  // Queues: other workers put packets in from now on. First, on the control thread while all runs, what
  // takes memory; throws ConfigError where that cannot be. Then, while neither those workers nor the one
  // that polls run, the change: what waits there is handed out.
  virtual void prepare_feeders(const std::vector<uint32_t>& workers);
  virtual void switch_feeders(const std::function<void(Packet*)>& take) noexcept { (void)take; }
  // Queues: what a worker puts in here has come to the end of this leg (exec/legs.h). On
  // that worker, or while it does not run.
  virtual void set_leg(uint32_t worker, uint32_t leg) { (void)worker, (void)leg; }

  // Queues: how many packets each feeder may have waiting there. Control thread, also while workers
  // run; throws ConfigError. 0: no queue.
  [[nodiscard]] virtual uint32_t credit_pkts() const { return 0; }
  [[nodiscard]] virtual uint32_t ring_pkts() const { return 0; }  // the highest credit
  virtual void set_credit(uint32_t credit_pkts) { (void)credit_pkts; }

  // Inputs: what waits to be polled (the polling worker, between two runs), and what has come
  // without being taken (any thread).
  [[nodiscard]] virtual exec::RingCounts ring_counts() const noexcept { return {}; }
  virtual void begin_fill_period() noexcept {}  // the highest fill is told anew from here on
  [[nodiscard]] virtual exec::ArrivalCounts arrival_counts() const { return {}; }

  [[nodiscard]] const std::string& name() const { return *name_; }
  void set_name(const std::string& name) { *name_ = name; }

  // Egress modules: which flow a packet that leaves here belongs to. Set by the graph builder.
  void set_flows(uint16_t static_flow, const uint16_t* flow_of_state) {
    static_flow_ = static_flow;
    flow_of_state_ = flow_of_state;
  }
  [[nodiscard]] bool has_static_flow() const { return flow_of_state_ == nullptr; }
  [[nodiscard]] uint16_t static_flow() const { return static_flow_; }
  [[nodiscard]] uint16_t flow_of(uint16_t path_state) const { return flow_of_state_[path_state]; }

 private:
  // Kept small: with hundreds of modules what each run touches decides whether all stay in L1.
  std::unique_ptr<std::string> name_ = std::make_unique<std::string>();
  const uint16_t* flow_of_state_ = nullptr;
  uint16_t static_flow_ = 0;
};

}  // namespace batchplane
