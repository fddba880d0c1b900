// SPDX-License-Identifier: BSD-3-Clause
// device.h - what stages hand their jobs to: threads of its own, and, for a device that is not here, the
// time that a profile says it takes.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/batch_law.h"
#include "base/spsc_ring.h"
#include "core/module/live_table.h"
#include "offload/cuda/cuda_device.h"
#include "offload/job.h"
#include "offload/kernel_lane.h"
#include "offload/opencl/opencl_device.h"

namespace batchplane::offload {

// What can go wrong with a device, on purpose. 0: it does not.
struct Faults {
  uint32_t lose_one_in = 0;  // jobs that it never runs
  uint32_t late_one_in = 0;  // and that take twenty times as long
  uint32_t fail_after_jobs = 0;
  uint64_t back_after_ns = 0;  // and is there again
  uint64_t seed = 1;
};

struct DeviceOptions {
  std::string name;
  std::string kind;
  uint32_t n_threads = 1;          // 0: whoever asks for results runs the jobs, as in tests
  std::vector<int> cores;          // of the threads; empty: wherever the kernel puts them,
  std::vector<int> avoided_cores;  // but not here, if there are others
  bool is_simulated = false;
  std::map<std::string, BatchLaw> laws;  // by kind of module; simulated: of all that run there
  std::optional<OpenClChoice> opencl;
  std::optional<CudaChoice> cuda;
  uint32_t check_one_in = 1;  // own memory: of so many packets one is computed here, too
  double off_w = 0;
  double idle_w = 0;
  double active_w = 0;
  Faults faults;

  [[nodiscard]] bool has_own_memory() const { return opencl.has_value() || cuda.has_value(); }
};

// Jobs of one stage to one device.
class Lane {
 public:
  explicit Lane(uint32_t thread) : ring(2 * kMaxDepth), thread_index(thread) {}

  SpscRing<LaneEntry> ring;  // the stage's worker puts in, a thread of the device takes out
  const uint32_t thread_index;
  std::optional<BatchLaw> law;         // of its module's kind, given or measured
  std::unique_ptr<KernelLane> kernel;  // null: the device runs the module's own function
};

// Threads live as long as the device. attach() and detach(): control thread. submit(): the worker of
// the lane's stage.
class Device {
 public:
  static constexpr uint32_t kMaxLanes = 64;

  // `quiescence`: of the tables that modules read; may be null. `first_slot`: of its threads there.
  Device(DeviceOptions options, Quiescence* quiescence, uint32_t first_slot);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Throws ConfigError when it cannot run this module in batches of up to `max_pkts`, or has too many.
  Lane* attach(Runner& runner, uint32_t max_pkts);
  void detach(Lane* lane);  // returns when no thread looks at it any more

  // Sets due_ns and overdue_ns of the job. False: it is down, or has no room.
  [[nodiscard]] bool submit(Lane& lane, Job& job, uint64_t now_ns) noexcept;
  // Without threads, which do it otherwise: runs what was submitted by this lane.
  void run_here(Lane& lane, Context& ctx, uint64_t now_ns) noexcept;

  [[nodiscard]] bool is_up(uint64_t now_ns) const noexcept {
    return now_ns >= down_until_ns_.load(std::memory_order_relaxed);
  }
  // Takes it away (kNeverNs: for good) or brings it back (0). Any thread.
  void set_down_until(uint64_t ns) noexcept { down_until_ns_.store(ns, std::memory_order_relaxed); }
  [[nodiscard]] const DeviceOptions& options() const { return options_; }
  // Whether it wants to know how many bytes a job has.
  [[nodiscard]] bool counts_bytes() const {
    return !options_.laws.empty() || options_.has_own_memory();
  }
  // As measured now, where there is a sensor; declared ones are among the options. Control thread.
  [[nodiscard]] std::optional<double> watts() const {
    return own_memory_ == nullptr ? std::nullopt : own_memory_->watts();
  }
  [[nodiscard]] uint32_t first_slot() const { return first_slot_; }
  [[nodiscard]] Value show(uint64_t now_ns) const;

 private:
  void thread_main(uint32_t thread);
  bool serve(uint32_t thread, Context& ctx) noexcept;
  // `free_ns`: since when the thread has nothing else to do; moves on with the job.
  bool run_next(Lane& lane, Context& ctx, uint64_t& free_ns) noexcept;
  bool serve_kernel(Lane& lane, Context& ctx, uint64_t now_ns) noexcept;
  void set_times(const Lane& lane, Job& job, uint64_t now_ns) noexcept;
  [[nodiscard]] bool has_fault(uint32_t one_in) noexcept;

  const DeviceOptions options_;
  Quiescence* const quiescence_;
  const uint32_t first_slot_;
  std::shared_ptr<const KernelDevice> own_memory_;  // null: it is this machine's
  std::array<std::atomic<Lane*>, kMaxLanes> lanes_{};
  std::vector<std::unique_ptr<Lane>> owned_;  // control thread
  uint32_t n_attached_ = 0;
  std::atomic<uint64_t> free_ns_{0};  // simulated: when it has done all that it was given
  std::atomic<uint64_t> busy_ns_{0};
  std::atomic<uint64_t> jobs_{0};
  std::atomic<uint64_t> pkts_{0};
  std::atomic<uint64_t> late_jobs_{0};  // simulated: computed after they were due
  std::atomic<uint64_t> down_until_ns_{0};
  std::atomic<const char*> fault_{nullptr};  // for which it was taken out
  std::atomic<int32_t> fault_code_{0};
  std::atomic<uint64_t> random_;  // where its faults come from
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
