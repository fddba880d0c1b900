// SPDX-License-Identifier: BSD-3-Clause
// opencl_kernel.h - a module's kernel on an OpenCL device: buffers, tables, launches, results.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "core/module/kernel.h"
#include "core/module/live_table.h"
#include "offload/opencl/opencl_device.h"

namespace batchplane::offload {

// What went wrong on a device, for one line.
struct DeviceFault {
  const char* what = nullptr;
  int32_t code = 0;  // of OpenCL; 0: none
};

// A module's kernel with buffers for a few batches at once. What is written here lies in memory that the
// device can copy from by itself; what it computes with is its own.
class OpenClKernel {
 public:
  static constexpr uint32_t kSlots = 2;  // one is filled while the other is computed
  static constexpr uint32_t kMeanBytes = 2048;

  // Throws ConfigError: what the compiler says, or too little memory. `quiescence`: of who launches; may be
  // null.
  OpenClKernel(std::shared_ptr<const OpenClDevice> device, Kernel& kernel, uint32_t max_pkts,
               const Quiescence* quiescence, const std::string& where);
  ~OpenClKernel();
  OpenClKernel(const OpenClKernel&) = delete;
  OpenClKernel& operator=(const OpenClKernel&) = delete;

  // For launches from now on. Throws ConfigError where there is no room. Control thread.
  void renew_table(Kernel& kernel, const std::string& where);

  // A batch begins in slot `slot`.
  void clear(uint32_t slot) noexcept;
  // Copies its next input; false: there is no room.
  [[nodiscard]] bool add(uint32_t slot, Kernel::Input input) noexcept;
  [[nodiscard]] uint32_t n_added(uint32_t slot) const { return slots_[slot].n; }
  // Sends what was added on its way. False: see fault().
  [[nodiscard]] bool launch(uint32_t slot) noexcept;
  enum class State : uint8_t { kRunning, kDone, kFailed };
  [[nodiscard]] State poll(uint32_t slot) noexcept;
  [[nodiscard]] const uint8_t* results(uint32_t slot) const { return slots_[slot].results; }
  // Which table the batch was computed by; 0: there is none.
  [[nodiscard]] uint64_t table_number(uint32_t slot) const { return slots_[slot].table_number; }
  [[nodiscard]] DeviceFault fault() const { return fault_; }

 private:
  struct Place {
    uint32_t at;
    uint32_t n_bytes;
  };
  struct Table {
    uint64_t number = 0;
    uint32_t most_input_bytes = ~0U;
    cl::Owned<cl::MemoryId> words;
    cl::Owned<cl::MemoryId> scratch;  // of one launch after the other
  };
  struct Slot {
    cl::Owned<cl::KernelId> kernel;
    cl::Owned<cl::MemoryId> own[3];     // of the device: bytes, places, results
    cl::Owned<cl::MemoryId> staged[3];  // of the host, and where they are:
    uint8_t* bytes = nullptr;
    Place* places = nullptr;
    uint8_t* results = nullptr;
    cl::Owned<cl::EventId> done;  // under way
    uint32_t n = 0;
    uint32_t n_bytes = 0;
    const Table* table = nullptr;  // until the launch
    uint64_t table_number = 0;
  };

  void build(const Kernel& kernel, const std::string& where);
  void make_slot(Slot& slot, const Kernel& kernel, const std::string& where);
  [[nodiscard]] bool take_table(const Slot& slot) noexcept;
  [[nodiscard]] bool failed(int32_t code, const char* what) noexcept;

  const std::shared_ptr<const OpenClDevice> device_;
  const uint32_t max_pkts_;
  const uint32_t room_bytes_;
  const uint32_t result_bytes_;
  size_t group_ = 1;  // work items of a group
  cl::Owned<cl::QueueId> queue_;
  cl::Owned<cl::ProgramId> program_;
  std::array<Slot, kSlots> slots_;
  LiveTable<std::shared_ptr<Table>> tables_;
  DeviceFault fault_;
};

}  // namespace batchplane::offload
