// SPDX-License-Identifier: BSD-3-Clause
// device_kernel.h - a module's kernel on a device with its own memory: the part common to all devices.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/module/kernel.h"
#include "core/module/live_table.h"

namespace batchplane::offload {

// A device error, reported in one line.
struct DeviceFault {
  const char* what = nullptr;
  int32_t code = 0;  // the driver's; 0: none
};

// Host memory that a device reads directly.
struct LentMemory {
  std::span<const uint8_t> memory;
  uint64_t device_address;
};

// A module's kernel with room for a few batches at once. Inputs are written to host memory that the
// device can read; it computes in its own memory. No function here waits for the device.
class DeviceKernel {
 public:
  // Batches at once: one is filled while others are fetched, computed and taken out.
  static constexpr uint32_t kSlots = 4;
  static constexpr uint32_t kMeanBytes = 2048;

  // `quiescence`: of the launching thread; may be null.
  DeviceKernel(Kernel& kernel, uint32_t max_pkts, const Quiescence* quiescence);
  virtual ~DeviceKernel() = default;
  DeviceKernel(const DeviceKernel&) = delete;
  DeviceKernel& operator=(const DeviceKernel&) = delete;

  // Sets the table for later launches. Throws ConfigError if there is no room. Control thread.
  void renew_table(Kernel& kernel, const std::string& where);

  // Starts a batch in slot `slot`.
  void clear(uint32_t slot) noexcept;
  // For trials, before there are packets: memory for inputs of batches in slot 0, which the device fetches from
  // there as it will fetch packets. clear_for_trial() starts such a batch.
  [[nodiscard]] std::span<uint8_t> trial_memory() const { return {slots_[1].bytes, room_bytes_}; }
  void clear_for_trial() noexcept;
  // Adds the batch's next input, by copy or, see fetches(), by address; false: no room.
  [[nodiscard]] bool add(uint32_t slot, Kernel::Input input) noexcept;
  // The same for an input that the kernel will rewrite.
  [[nodiscard]] bool add(uint32_t slot, RewritingKernel& kernel, Packet& pkt) noexcept;
  // Whether the device itself will copy inputs that are added from now on, if they lie in memory lent to it.
  [[nodiscard]] bool fetches(uint32_t slot) const {
    return !slots_[slot].lent.empty() && slots_[slot].n_bytes >= kCopiedBytes;
  }
  // As many bytes of an input matter.
  [[nodiscard]] uint32_t most_input_bytes(uint32_t slot) const {
    return slots_[slot].table->most_input_bytes;
  }
  [[nodiscard]] uint32_t n_added(uint32_t slot) const { return slots_[slot].n; }
  // Launches the batch. False: see fault().
  [[nodiscard]] bool launch(uint32_t slot) noexcept {
    return slots_[slot].n == 0 || begin(slot);  // empty if even the first packet is too long
  }
  enum class State : uint8_t { kRunning, kDone, kFailed };
  [[nodiscard]] virtual State poll(uint32_t slot) noexcept = 0;
  [[nodiscard]] const uint8_t* results(uint32_t slot) const { return slots_[slot].results; }
  // For a kernel that rewrites its inputs: the i-th one as rewritten.
  [[nodiscard]] RewritingKernel::Rewritten rewritten(uint32_t slot, uint32_t i) const {
    const Slot& of = slots_[slot];
    const Place place = of.places[i];
    return {{of.bytes + place.at, place.n_bytes}, of.returned + place.at};
  }
  // The number of the table that the batch was computed with; 0: none.
  [[nodiscard]] uint64_t table_number(uint32_t slot) const { return slots_[slot].table_number; }
  [[nodiscard]] DeviceFault fault() const { return fault_; }

 protected:
  // Inputs up to this many bytes are copied into host memory that the device reads directly: for a small batch
  // that takes less time than any way into the device's own memory.
  static constexpr uint32_t kCopiedBytes = 8192;

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
  // The memory of one batch as the host sees it, and its contents.
  struct Slot {
    uint8_t* bytes = nullptr;
    Place* places = nullptr;
    uint8_t* results = nullptr;
    uint8_t* returned = nullptr;  // rewritten bytes, for kernels that rewrite inputs
    // For devices that fetch: where they find `bytes`, and each input.
    uint64_t bytes_address = 0;
    uint64_t* from = nullptr;
    std::span<const LentMemory> lent;
    uint32_t n_fetched = 0;
    uint32_t n = 0;
    uint32_t n_bytes = 0;
    const Table* table = nullptr;  // set until the launch
    uint64_t table_number = 0;
  };
  // A table on the device; null, with the reason, if there is no room. Control thread.
  virtual std::unique_ptr<Table> make_table(const std::vector<uint32_t>& words, int32_t& error) = 0;
  virtual bool begin(uint32_t slot) noexcept = 0;
  // By address; does not change while the engine runs.
  [[nodiscard]] virtual std::span<const LentMemory> lent() const noexcept { return {}; }
  [[nodiscard]] virtual const std::string& device_name() const = 0;

  [[nodiscard]] bool failed(int32_t code, const char* what) noexcept;
  [[nodiscard]] const Table& current_table() const { return *tables_.current(); }
  // Finds the launches that have ended.
  [[nodiscard]] Table& current_table() { return *tables_.current(); }
  // Groups of a launch of n packets; the last may have fewer.
  [[nodiscard]] size_t groups_of(uint32_t n) const {
    const size_t n_inputs = lanes_ > 1 ? group_inputs_ : group_;
    return (n + n_inputs - 1) / n_inputs;
  }

  // Whether it can fetch what is lent to it.
  [[nodiscard]] virtual bool can_fetch() const noexcept { return false; }

  const uint32_t max_pkts_;
  const uint32_t room_bytes_;
  const uint32_t result_bytes_;
  const bool rewrites_;
  const uint32_t lanes_;
  const uint32_t group_inputs_;
  size_t group_ = 1;  // work items per group: lanes_ if that is more than one
  std::array<Slot, kSlots> slots_;

 private:
  static void place(Slot& slot, uint32_t n_bytes) noexcept;
  [[nodiscard]] static uint64_t address_of(const Slot& slot, Kernel::Input input) noexcept;

  LiveTable<std::shared_ptr<Table>> tables_;
  LentMemory trial_{};
  DeviceFault fault_;
};

// A device that can run kernels.
class KernelDevice {
 public:
  KernelDevice() = default;
  virtual ~KernelDevice() = default;
  KernelDevice(const KernelDevice&) = delete;
  KernelDevice& operator=(const KernelDevice&) = delete;

  [[nodiscard]] virtual const std::string& name() const = 0;
  // Power draw, if there is a sensor that can be read. Control thread.
  [[nodiscard]] virtual std::optional<double> watts() const { return std::nullopt; }
  // Lets the device read this memory, if it can, until it is gone. Once, before its first batch. Control thread.
  virtual void lend(std::span<const std::span<uint8_t>> memory) { (void)memory; }
  [[nodiscard]] virtual uint64_t lent_bytes() const { return 0; }
  // Throws ConfigError with the compiler's message, or when memory is too small.
  [[nodiscard]] virtual std::unique_ptr<DeviceKernel> make_kernel(
      Kernel& kernel, uint32_t max_pkts, const Quiescence* quiescence,
      const std::string& where) const = 0;
};

}  // namespace batchplane::offload
