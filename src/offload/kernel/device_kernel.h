// SPDX-License-Identifier: BSD-3-Clause
// device_kernel.h - a module's kernel on a device with memory of its own: what all such devices have alike.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/module/kernel.h"
#include "core/module/live_table.h"

namespace batchplane::offload {

// What went wrong on a device, for one line.
struct DeviceFault {
  const char* what = nullptr;
  int32_t code = 0;  // of the driver; 0: none
};

// A module's kernel with room for a few batches at once. What is written here lies in memory that the
// device can read by itself; what it computes with is its own. Nothing here waits for the device.
class DeviceKernel {
 public:
  static constexpr uint32_t kSlots = 2;  // one is filled while the other is computed
  static constexpr uint32_t kMeanBytes = 2048;

  // `quiescence`: of who launches; may be null.
  DeviceKernel(const Kernel& kernel, uint32_t max_pkts, const Quiescence* quiescence);
  virtual ~DeviceKernel() = default;
  DeviceKernel(const DeviceKernel&) = delete;
  DeviceKernel& operator=(const DeviceKernel&) = delete;

  // For launches from now on. Throws ConfigError where there is no room. Control thread.
  void renew_table(Kernel& kernel, const std::string& where);

  // A batch begins in slot `slot`.
  void clear(uint32_t slot) noexcept;
  // Copies its next input; false: there is no room.
  [[nodiscard]] bool add(uint32_t slot, Kernel::Input input) noexcept;
  [[nodiscard]] uint32_t n_added(uint32_t slot) const { return slots_[slot].n; }
  // Sends what was added on its way. False: see fault().
  [[nodiscard]] bool launch(uint32_t slot) noexcept {
    return slots_[slot].n == 0 || begin(slot);  // else its first packet alone is too long
  }
  enum class State : uint8_t { kRunning, kDone, kFailed };
  [[nodiscard]] virtual State poll(uint32_t slot) noexcept = 0;
  [[nodiscard]] const uint8_t* results(uint32_t slot) const { return slots_[slot].results; }
  // Which table the batch was computed by; 0: there is none.
  [[nodiscard]] uint64_t table_number(uint32_t slot) const { return slots_[slot].table_number; }
  [[nodiscard]] DeviceFault fault() const { return fault_; }

 protected:
  struct Place {
    uint32_t at;
    uint32_t n_bytes;
  };
  struct Table {
    Table() = default;
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
    virtual ~Table() = default;
    uint64_t number = 0;
    uint32_t most_input_bytes = ~0U;
  };
  // Where the device's memory for one batch is seen from here, and what is in it.
  struct Slot {
    uint8_t* bytes = nullptr;
    Place* places = nullptr;
    uint8_t* results = nullptr;
    uint32_t n = 0;
    uint32_t n_bytes = 0;
    const Table* table = nullptr;  // until the launch
    uint64_t table_number = 0;
  };
  // A table on the device; null, and why: it has no room. Control thread.
  virtual std::unique_ptr<Table> make_table(const std::vector<uint32_t>& words,
                                            size_t scratch_bytes, int32_t& error) = 0;
  virtual bool begin(uint32_t slot) noexcept = 0;
  [[nodiscard]] virtual const std::string& device_name() const = 0;

  [[nodiscard]] bool failed(int32_t code, const char* what) noexcept;
  [[nodiscard]] const Table& current_table() const { return *tables_.current(); }
  // Where launches have ended.
  [[nodiscard]] Table& current_table() { return *tables_.current(); }
  // Work items of a launch of n packets: whole groups.
  [[nodiscard]] size_t items_of(uint32_t n) const { return (n + group_ - 1) / group_ * group_; }

  const uint32_t max_pkts_;
  const uint32_t room_bytes_;
  const uint32_t result_bytes_;
  size_t group_ = 1;  // work items of a group
  std::array<Slot, kSlots> slots_;

 private:
  LiveTable<std::shared_ptr<Table>> tables_;
  DeviceFault fault_;
};

// A device that can take kernels.
class KernelDevice {
 public:
  KernelDevice() = default;
  virtual ~KernelDevice() = default;
  KernelDevice(const KernelDevice&) = delete;
  KernelDevice& operator=(const KernelDevice&) = delete;

  [[nodiscard]] virtual const std::string& name() const = 0;
  // What it draws, where it has a sensor that can be read. Control thread.
  [[nodiscard]] virtual std::optional<double> watts() const { return std::nullopt; }
  // Throws ConfigError: what the compiler says, or too little memory.
  [[nodiscard]] virtual std::unique_ptr<DeviceKernel> make_kernel(
      Kernel& kernel, uint32_t max_pkts, const Quiescence* quiescence,
      const std::string& where) const = 0;
};

}  // namespace batchplane::offload
