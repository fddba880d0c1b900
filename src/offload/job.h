// SPDX-License-Identifier: BSD-3-Clause
// job.h - one batch of a stage on its way over a device, and who may run it when.
//
// A packet is touched by one thread at a time. Who wants to run a job claims it: one compare-and-swap
// on its ticket, which also holds the number of the job, so that what is left of an earlier one in
// some ring claims nothing. A job that nobody has claimed can be taken back and run elsewhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/module/kernel.h"
#include "core/module/kind.h"

namespace batchplane::offload {

inline constexpr uint32_t kMaxJobPkts = 16'384;
inline constexpr uint32_t kMaxDepth = 64;  // jobs of a stage under way

// What a packet's drop_reason says between a module's function and where the packet goes on: a gate, or a
// reason with this bit.
inline constexpr uint16_t kDropFate = 0x8000;

// The module whose function a stage's jobs run. Its state has one writer: jobs begin in the order in
// which they were made, each when the one before it has ended.
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
  // Before any job; after an apply numbers go on.
  void begin_with(uint64_t job) { next_job_.store(job, std::memory_order_release); }

  // The function on at most kMaxBatchPkts packets, and each packet's fate. Whose turn it is.
  void run(Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept;
  // The same with what a device has computed for its kernel. `rewritten`: of a kernel that rewrites its inputs;
  // false, if one was written by a wrong guess.
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
  // By a thread that was told of this job as number `n`.
  [[nodiscard]] bool claim(uint64_t n) {
    uint64_t expected = ticket(n, State::kWaiting);
    return ticket_.load(std::memory_order_relaxed) == expected &&
           ticket_.compare_exchange_strong(expected, ticket(n, State::kRunning),
                                           std::memory_order_acq_rel);
  }
  [[nodiscard]] bool waits_as(uint64_t n) const {
    return ticket_.load(std::memory_order_acquire) == ticket(n, State::kWaiting);
  }
  // By who has claimed it and changed nothing: it waits again.
  void unclaim() { set(State::kWaiting); }
  void end() { set(State::kDone); }
  [[nodiscard]] State state() const {
    return static_cast<State>(ticket_.load(std::memory_order_acquire) & 3);
  }

  std::unique_ptr<Packet*[]> pkts;
  Runner* runner;
  uint64_t number = 0;
  uint32_t n_pkts = 0;
  uint32_t n_given = 0;  // handed out
  uint64_t n_bytes = 0;
  uint64_t submitted_ns = 0;  // set by the stage, before a device gets it
  uint64_t due_ns = 0;        // the device says that it ends no earlier
  uint64_t overdue_ns = 0;    // unclaimed by then, it is taken back
  uint64_t run_ns = 0;        // what it took its device, or the worker, once it has begun
  bool is_inline = false;     // the stage's worker runs it, a batch at a time, as it hands it out
  bool is_foreign = false;    // of the stage that an apply replaced
  uint32_t place = 0;         // of the stage: which of its devices

 private:
  static uint64_t ticket(uint64_t n, State state) { return n << 2 | static_cast<uint64_t>(state); }
  void set(State state) { ticket_.store(ticket(number, state), std::memory_order_release); }

  std::atomic<uint64_t> ticket_{0};
};

}  // namespace batchplane::offload
