// SPDX-License-Identifier: BSD-3-Clause
// kernel_lane.h - jobs of one stage to a device with memory of its own: copied there, computed there, checked
// and applied here.
//
// A job is claimed while its packets are copied, and again when results are there. In between it waits like
// one that nobody has begun, and the worker takes it back when the device fails it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "base/batch_law.h"
#include "base/spsc_ring.h"
#include "offload/job.h"
#include "offload/kernel/device_kernel.h"

namespace batchplane::offload {

// What is put into a lane for a job.
struct LaneEntry {
  Job* job;
  uint64_t number;
  Runner* runner;  // the job's own is the worker's to change until the job is claimed
};

class KernelLane {
 public:
  // A result is slow when ten times its law has passed, and then the worker runs the batch; by this time
  // nobody believes in it any more.
  static constexpr uint64_t kLongestBatchNs = 1'000'000'000;

  // Throws ConfigError where the module has no kernel, or the device cannot run it or computes wrong.
  // `check_one_in`: of so many packets one is computed here, too, and compared.
  // `quiescence`: of who serves it; may be null.
  KernelLane(const KernelDevice& device, Runner& runner, uint32_t max_pkts, uint32_t check_one_in,
             const Quiescence* quiescence, const std::string& where);

  // Takes what has come back, or sends the next. False: nothing to do, or see fault().
  bool serve(SpscRing<LaneEntry>& ring, Context& ctx, uint64_t now_ns) noexcept;
  // After an edit of the module: results by the table before are computed anew, here, until the device has the
  // new one. Where it has no room for it, that is its fault(). Control thread.
  void renew_table();
  // Once there is one, the device must not be served again.
  [[nodiscard]] const DeviceFault& fault() const { return fault_; }
  // As it was measured at the start.
  [[nodiscard]] const BatchLaw& law() const { return law_; }
  [[nodiscard]] uint64_t busy_ns() const { return busy_ns_; }

 private:
  struct Flight {
    LaneEntry entry;
    uint64_t begun_ns;
  };

  bool begin_next(SpscRing<LaneEntry>& ring, uint64_t now_ns) noexcept;
  bool end_oldest(Context& ctx, uint64_t now_ns) noexcept;
  [[nodiscard]] bool is_right(const KernelTable* table, const Job& job, uint32_t slot) noexcept;
  // The first n_known packets have results.
  void apply(KernelTable* table, Context& ctx, const LaneEntry& entry, uint32_t slot,
             uint32_t n_known) noexcept;
  bool fail(const DeviceFault& fault) noexcept;
  void try_out(const std::string& where, uint32_t max_pkts);
  double time_ns(uint32_t n, Kernel::Input input, const std::string& where);
  void run_once(const std::string& where);

  Kernel& kernel_;
  const std::unique_ptr<DeviceKernel> device_;
  const uint32_t check_one_in_;
  uint32_t next_check_ = 0;  // packets until the next one that is compared
  std::array<Flight, DeviceKernel::kSlots> flights_{};  // from head_ to tail_
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  uint64_t free_ns_ = 0;  // when the last results came
  uint64_t busy_ns_ = 0;
  DeviceFault fault_;
  std::atomic<bool> has_no_room_{false};  // for a table
  BatchLaw law_;
};

}  // namespace batchplane::offload
