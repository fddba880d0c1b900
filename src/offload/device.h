// SPDX-License-Identifier: BSD-3-Clause
// device.h - a device that runs stages' jobs: on threads of its own or, when simulated, in the time that
// a profile gives.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/batch_law.h"
#include "base/spsc_ring.h"
#include "core/module/live_table.h"
#include "offload/cuda/cuda_device.h"
#include "offload/job.h"
#include "offload/kernel_lane.h"
#include "offload/opencl/opencl_device.h"

namespace batchplane::offload {

// Injected faults, for tests. 0: none.
struct Faults {
  uint32_t lose_one_in = 0;  // jobs that are never run
  uint32_t late_one_in = 0;  // jobs that take twenty times as long
  uint32_t fail_after_jobs = 0;
  uint64_t back_after_ns = 0;  // and is back after
  uint64_t seed = 1;
};

struct DeviceOptions {
  std::string name;
  std::string kind;
  uint32_t n_threads = 1;          // 0: the caller that asks for results runs the jobs, as in tests
  std::vector<int> cores;          // of the threads; empty: any core,
  std::vector<int> avoided_cores;  // but these only if there are no others
  bool is_simulated = false;
  std::map<std::string, BatchLaw> laws;  // by module kind; simulated: of all kinds that run there
  std::optional<OpenClChoice> opencl;
  std::optional<CudaChoice> cuda;
  uint32_t check_one_in = 1;  // own memory: one packet in so many is also computed on the CPU
  double off_w = 0;
  double idle_w = 0;
  double active_w = 0;
  Faults faults;

  [[nodiscard]] bool has_own_memory() const { return opencl.has_value() || cuda.has_value(); }
};

// Carries jobs of one stage to one device.
class Lane {
 public:
  explicit Lane(uint32_t thread) : ring(2 * kMaxDepth), thread_index(thread) {}

  SpscRing<LaneEntry> ring;  // from the stage's worker to a thread of the device
  const uint32_t thread_index;
  std::optional<BatchLaw> law;         // for its module's kind, given or measured
  std::unique_ptr<KernelLane> kernel;  // null: the device runs the module's own function
};

// Threads live as long as the device. attach() and detach(): control thread. submit(): the worker of
// the lane's stage.
class Device {
 public:
  static constexpr uint32_t kMaxLanes = 64;

  // `quiescence` protects the tables that modules read; may be null. `first_slot`: the first slot of the
  // device's threads there.
  Device(DeviceOptions options, Quiescence* quiescence, uint32_t first_slot);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Throws ConfigError if the device cannot run this module in batches of up to `max_pkts`, or has too
  // many lanes.
  Lane* attach(Runner& runner, uint32_t max_pkts);
  void detach(Lane* lane);  // returns once no thread uses it

  // Sets due_ns and overdue_ns of the job. False: the device is down or its ring is full.
  [[nodiscard]] bool submit(Lane& lane, Job& job, uint64_t now_ns) noexcept;
  // For devices without threads: runs the jobs that were submitted through this lane.
  void run_here(Lane& lane, Context& ctx, uint64_t now_ns) noexcept;

  [[nodiscard]] bool is_up(uint64_t now_ns) const noexcept {
    return now_ns >= down_until_ns_.load(std::memory_order_relaxed);
  }
  // Takes the device down (kNeverNs: for good) or brings it back (0). Any thread.
  void set_down_until(uint64_t ns) noexcept { down_until_ns_.store(ns, std::memory_order_relaxed); }
  [[nodiscard]] const DeviceOptions& options() const { return options_; }
  // Whether its laws need the bytes of a job.
  [[nodiscard]] bool counts_bytes() const {
    return !options_.laws.empty() || options_.has_own_memory();
  }
  // Power draw now, if there is a sensor; declared watts are in the options. Control thread.
  [[nodiscard]] std::optional<double> watts() const {
    return own_memory_ == nullptr ? std::nullopt : own_memory_->watts();
  }
  // Memory of packets that jobs will have: a device with its own memory may then read it directly. Before the
  // first job: what comes later changes nothing, because a running thread reads where that memory is. Control
  // thread.
  void lend(std::span<const std::span<uint8_t>> memory) {
    if (own_memory_ != nullptr && !std::exchange(was_lent_, true)) own_memory_->lend(memory);
  }
  [[nodiscard]] uint32_t first_slot() const { return first_slot_; }
  [[nodiscard]] Value show(uint64_t now_ns) const;

 private:
  void thread_main(uint32_t thread);
  bool serve(uint32_t thread, Context& ctx) noexcept;
  // `free_ns`: when the thread became idle; advanced by the job.
  bool run_next(Lane& lane, Context& ctx, uint64_t& free_ns) noexcept;
  bool serve_kernel(Lane& lane, Context& ctx, uint64_t now_ns) noexcept;
  void set_times(const Lane& lane, Job& job, uint64_t now_ns) noexcept;
  [[nodiscard]] bool has_fault(uint32_t one_in) noexcept;

  const DeviceOptions options_;
  Quiescence* const quiescence_;
  const uint32_t first_slot_;
  std::shared_ptr<KernelDevice> own_memory_;  // null: the device uses host memory
  bool was_lent_ = false;
  std::array<std::atomic<Lane*>, kMaxLanes> lanes_{};
  std::vector<std::unique_ptr<Lane>> owned_;  // control thread
  uint32_t n_attached_ = 0;
  std::atomic<uint64_t> free_ns_{0};  // simulated: when all submitted jobs will be done
  std::atomic<uint64_t> busy_ns_{0};
  std::atomic<uint64_t> jobs_{0};
  std::atomic<uint64_t> pkts_{0};
  std::atomic<uint64_t> late_jobs_{0};  // simulated: computed after they were due
  std::atomic<uint64_t> down_until_ns_{0};
  std::atomic<const char*> fault_{nullptr};  // the reason why it was taken out
  std::atomic<int32_t> fault_code_{0};
  std::atomic<uint64_t> random_;  // of its injected faults
  uint64_t began_ns_ = 0;
  struct alignas(64) Loops {
    std::atomic<uint64_t> n{0};
    uint64_t free_ns = 0;  // the thread's own
  };
  std::vector<Loops> loops_;  // by thread
  std::atomic<bool> must_stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace batchplane::offload
