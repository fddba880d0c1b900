// SPDX-License-Identifier: BSD-3-Clause
// worker.h - one core: polls its tasks' inputs, runs batches to completion, executes commands between runs.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/graph/task.h"
#include "core/module/live_table.h"
#include "exec/loop_times.h"
#include "exec/snapshot.h"
#include "exec/task_loop.h"

namespace batchplane {

using exec::LoopGap;
using exec::WorkerStats;

// Owner of all state while running: its thread. Other threads hand in work with execute(). A thread without
// tasks sleeps until then.
//
// A shared worker has no thread: other workers run its loops between their own, one at a time. Nobody waits
// for it: a worker that finds it taken moves on. A thread that is preempted in there delays the shared
// worker's tasks, but no others.
class Worker {
 public:
  struct Options {
    std::string name = "w0";
    uint16_t index = 0;
    int core = -1;  // -1 = wherever the kernel puts it
    uint32_t batch_limit_pkts = exec::kDefaultBatchPkts;
    uint32_t sample_one_run_in = 256;
    bool is_idle_hold = false;
    bool is_shared = false;
  };

  Worker(Options options, PacketPool* pool, Quiescence* quiescence);
  ~Worker();

  // Call before start(), or inside execute(). The graph owns the tasks.
  void set_tasks(std::vector<Task*> tasks, exec::FlowMeter* meter);

  // Shared workers whose loops this one also runs. Call before start().
  void set_hosted(std::vector<Worker*> shared) { hosted_ = std::move(shared); }

  // Starts the thread; throws ConfigError when it cannot run on the core.
  void start();
  // Ends the thread after the current run. Held packets stay held: see drain().
  void stop();
  [[nodiscard]] bool is_running() const { return is_running_; }

  // Control thread: runs `fn` on the worker between two runs and returns when it is done; runs it at once on
  // the calling thread when the worker is not running. fn must be short and must not allocate or block.
  void execute(const std::function<void()>& fn);
  // The same without waiting: the ticket is marked done. Used to stop all workers together.
  struct Ticket {
    std::function<void()> fn;
    std::atomic<bool> is_done{false};
  };
  void post(Ticket& ticket);

  // Holds a shared worker for the lifetime of the object; other workers are not held.
  class Hold {
   public:
    explicit Hold(Worker& worker);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Worker& worker_;
  };

  // One loop over all tasks, for tests and for the thread. Returns the packets polled.
  uint32_t loop_once();
  // Runs one loop of each hosted worker that nobody else is running; the time counts in the next loop here.
  uint32_t run_hosted();
  // After stop(): polls inputs until they are empty (at most `max_loops` loops), then releases held packets.
  // False when there was nothing.
  bool drain(uint32_t max_loops);

  void set_idle_hold(bool is_hold) { options_.is_idle_hold = is_hold; }  // via execute()
  void use_virtual_clock(const uint64_t* now_ns) { clock_.virtual_ns = now_ns; }

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] Context& context() { return *ctx_; }
  [[nodiscard]] CoreTraits::Clock& clock() { return clock_; }
  [[nodiscard]] const std::vector<Task*>& tasks() const { return tasks_; }
  [[nodiscard]] const WorkerStats& stats() const { return stats_; }
  // Times of busy loops, without commands, and the number of loops in which nothing ran. Via execute().
  [[nodiscard]] const exec::LoopTimes& loop_times() const { return loop_times_; }
  [[nodiscard]] uint64_t idle_loops() const { return idle_loops_; }
  [[nodiscard]] exec::FlowMeter* meter() { return ctx_->meter; }

 private:
  void thread_main();
  void rest();
  void ring_bell();
  bool try_take() {
    return !is_taken_.load(std::memory_order_relaxed) &&
           !is_taken_.exchange(true, std::memory_order_acquire);
  }
  void take();
  void release() { is_taken_.store(false, std::memory_order_release); }
  void obey();
  // Returns the length of the gap, 0 if there is none.
  uint64_t note_gap(uint64_t elapsed_ns, uint64_t worked_ns);
  [[nodiscard]] uint64_t work_ns() const;

  Options options_;
  Quiescence* quiescence_;
  std::unique_ptr<Context> ctx_;
  CoreTraits::Clock clock_;
  std::vector<Task*> tasks_;
  WorkerStats stats_;
  exec::LoopTimes loop_times_;
  uint64_t idle_loops_ = 0;
  exec::SampleTurn sample_;
  uint64_t last_loop_ns_ = 0;
  uint32_t previous_polled_ = 0;
  uint64_t control_in_loop_ns_ =
      0;  // command after the last loop: neither busy nor idle, and not a gap
  uint64_t last_work_ns_ = 0;
  std::vector<Worker*> hosted_;
  uint64_t hosted_ns_ = 0;  // loops of hosted workers within this one's
  std::thread thread_;
  std::atomic<bool> is_taken_{true};  // for a shared worker: false while it may be run
  bool is_running_ = false;
  std::atomic<bool> must_stop_{false};
  std::atomic<Ticket*> pending_{nullptr};
  std::atomic<uint32_t> bell_{0};  // rung for each command, and to end
};

// Cost of one clock reading in cycles: the minimum of many.
uint32_t measure_clock_cost_cycles();

}  // namespace batchplane
