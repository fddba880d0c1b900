// SPDX-License-Identifier: BSD-3-Clause
// job.h - one batch of a stage on its way through a device, and who may run it when.
//
// Only one thread at a time touches a packet. A thread that wants to run a job claims it first, with one
// compare-and-swap on the job's ticket. The ticket also holds the job's number, so a stale ring entry of
// an earlier job claims nothing. A job that nobody has claimed can be taken back and run elsewhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/module/kernel.h"
#include "core/module/kind.h"

namespace batchplane::offload {

inline constexpr uint32_t kMaxJobPkts = 16'384;
inline constexpr uint32_t kMaxDepth = 64;  // jobs of a stage in flight

// Between a module's function and the stage's output, a packet's drop_reason holds its gate, or a drop
// reason with this bit set.
inline constexpr uint16_t kDropFate = 0x8000;

// Runs a module's function on a stage's jobs. The module's state has one writer: jobs begin in the order
// in which they were made, each after the previous one has ended.
class Runner {
 public:
  Runner(const ModuleInfo& info, std::unique_ptr<Module> module)
      : info_(info), module_(std::move(module)) {}

  [[nodiscard]] Module& module() { return *module_; }
  [[nodiscard]] const ModuleInfo& info() const { return info_; }

  [[nodiscard]] bool is_turn_of(uint64_t job) const {
    return next_job_.load(std::memory_order_acquire) == job;
  }
  void end_turn_of(uint64_t job) { next_job_.store(job + 1, std::memory_order_release); }
  // Before the first job; after an apply the numbers continue.
  void begin_with(uint64_t job) { next_job_.store(job, std::memory_order_release); }

  // Runs the function on at most kMaxBatchPkts packets and stores each packet's gate or drop reason. Called
  // by the thread that has claimed the job.
  void run(Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept;
  // The same with the results that a device has computed. `rewritten` is for kernels that rewrite their
  // inputs; false if a packet was written with a wrong guess.
  bool apply(KernelTable* table, Context& ctx, Packet** pkts, uint32_t n_pkts,
             const uint8_t* results,
             const RewritingKernel::Rewritten* rewritten = nullptr) noexcept;

 private:
  template <class Function>
  void note_fates(Context& ctx, Packet** pkts, uint32_t n_pkts, Function function) noexcept;

  const ModuleInfo& info_;
  std::unique_ptr<Module> module_;
  alignas(64) std::atomic<uint64_t> next_job_{0};
};

// Owner: the stage's worker, except between claim() and end().
struct Job {
  enum class State : uint64_t { kIdle, kWaiting, kRunning, kDone };

  Job(uint32_t max_pkts, Runner* of) : pkts(new Packet*[max_pkts]), runner(of) {}

  void begin(uint64_t job_number) {
    number = job_number;
    set(State::kWaiting);
  }
  // By a thread that got this job as number `n`.
  [[nodiscard]] bool claim(uint64_t n) {
    uint64_t expected = ticket(n, State::kWaiting);
    return ticket_.load(std::memory_order_relaxed) == expected &&
           ticket_.compare_exchange_strong(expected, ticket(n, State::kRunning),
                                           std::memory_order_acq_rel);
  }
  [[nodiscard]] bool waits_as(uint64_t n) const {
    return ticket_.load(std::memory_order_acquire) == ticket(n, State::kWaiting);
  }
  // By the thread that claimed it, if it has changed nothing: the job waits again.
  void unclaim() { set(State::kWaiting); }
  void end() { set(State::kDone); }
  [[nodiscard]] State state() const {
    return static_cast<State>(ticket_.load(std::memory_order_acquire) & 3);
  }

  std::unique_ptr<Packet*[]> pkts;
  Runner* runner;
  uint64_t number = 0;
  uint32_t n_pkts = 0;
  uint32_t n_given = 0;  // packets handed out
  uint64_t n_bytes = 0;
  uint64_t submitted_ns = 0;  // set by the stage, before a device gets it
  uint64_t due_ns = 0;        // the earliest end that the device predicts
  uint64_t overdue_ns = 0;    // taken back if still unclaimed by then
  uint64_t run_ns = 0;        // time that the device, or the worker, spent on it
  bool is_inline = false;     // run by the stage's worker, a batch at a time, when handed out
  bool is_foreign = false;    // belongs to the stage that an apply replaced
  uint32_t place = 0;         // index among the stage's devices

 private:
  static uint64_t ticket(uint64_t n, State state) { return n << 2 | static_cast<uint64_t>(state); }
  void set(State state) { ticket_.store(ticket(number, state), std::memory_order_release); }

  std::atomic<uint64_t> ticket_{0};
};

}  // namespace batchplane::offload
