// SPDX-License-Identifier: BSD-3-Clause
// kernel_lane.h - carries jobs of one stage to a device with its own memory: inputs are copied there and
// computed there; results are checked and applied on the host.
//
// A job is claimed while its packets are copied, and again when its results have arrived. In between it
// waits like one that has not begun, and the worker takes it back if the device fails.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/batch_law.h"
#include "base/spsc_ring.h"
#include "offload/job.h"
#include "offload/kernel/device_kernel.h"

namespace batchplane::offload {

// A job's entry in a lane's ring.
struct LaneEntry {
  Job* job;
  uint64_t number;
  Runner* runner;  // the worker may change the job's own until the job is claimed
};

class KernelLane {
 public:
  // After ten times the predicted time the worker runs the batch itself; after this time the device counts
  // as hung.
  static constexpr uint64_t kLongestBatchNs = 1'000'000'000;

  // Throws ConfigError if the module has no kernel, or the device cannot run it or computes wrong results.
  // `check_one_in`: one packet in so many is also computed on the CPU and compared.
  // `quiescence`: of the thread that serves the lane; may be null.
  KernelLane(const KernelDevice& device, Runner& runner, uint32_t max_pkts, uint32_t check_one_in,
             const Quiescence* quiescence, const std::string& where);

  // Applies results that have come back, or sends the next batch. False: nothing to do, or see fault().
  bool serve(SpscRing<LaneEntry>& ring, Context& ctx, uint64_t now_ns) noexcept;
  // After an edit of the module: until the device has the new table, results of the old one are computed
  // again on the CPU. If the device has no room for the new table, fault() says so. Control thread.
  void renew_table();
  // Once set, the device must not be served again.
  [[nodiscard]] const DeviceFault& fault() const { return fault_; }
  // The device's law as measured at the start.
  [[nodiscard]] const BatchLaw& law() const { return law_; }
  [[nodiscard]] uint64_t busy_ns() const { return busy_ns_; }
  // Batches that were partly computed on the CPU because a guess was wrong or the table was outdated.
  [[nodiscard]] uint64_t n_outdated() const { return n_outdated_; }

 private:
  struct Flight {
    LaneEntry entry;
    uint64_t begun_ns;
  };

  bool begin_next(SpscRing<LaneEntry>& ring, uint64_t now_ns) noexcept;
  [[nodiscard]] bool may_begin(const LaneEntry& entry) noexcept;
  [[nodiscard]] bool add(uint32_t slot, Packet& pkt) noexcept;
  bool end_oldest(Context& ctx, uint64_t now_ns) noexcept;
  [[nodiscard]] bool is_right(const KernelTable* table, const Job& job, uint32_t slot) noexcept;
  [[nodiscard]] bool is_rewritten_right(const KernelTable* table, uint32_t slot) noexcept;
  [[nodiscard]] bool is_same(const KernelTable* table, const RewritingKernel::Rewritten& rewritten,
                             const uint8_t* result) noexcept;
  // The first n_known packets have results.
  void apply(KernelTable* table, Context& ctx, const LaneEntry& entry, uint32_t slot,
             uint32_t n_known) noexcept;
  bool fail(const DeviceFault& fault) noexcept;
  void try_out(const std::string& where, uint32_t max_pkts);
  double time_ns(uint32_t n, Kernel::Input input, const std::string& where);
  void run_once(const std::string& where);
  [[nodiscard]] Kernel::Input trial_input(std::span<uint8_t> text) const;
  [[nodiscard]] bool is_trial_right(const std::vector<Kernel::Input>& inputs);

  Kernel& kernel_;
  RewritingKernel* const rewriting_;  // the kernel if it rewrites its inputs, else null
  const std::unique_ptr<DeviceKernel> device_;
  const uint32_t check_one_in_;
  uint32_t next_check_ = 0;  // packets until the next one to compare
  std::vector<uint8_t> check_room_;
  bool was_guess_wrong_ = false;
  uint64_t n_outdated_ = 0;
  std::array<Flight, DeviceKernel::kSlots> flights_{};  // from head_ to tail_
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  uint64_t free_ns_ = 0;  // when the last results arrived
  uint64_t busy_ns_ = 0;
  DeviceFault fault_;
  std::atomic<bool> has_no_room_{false};  // for a table
  BatchLaw law_;
};

}  // namespace batchplane::offload
