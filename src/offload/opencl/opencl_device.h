// SPDX-License-Identifier: BSD-3-Clause
// opencl_device.h - an OpenCL device by name, and a module's kernel on it: buffers, launches, results.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/value.h"
#include "core/module/kernel.h"
#include "offload/opencl/opencl_api.h"

namespace batchplane::offload {

namespace cl {

template <class T>
struct Release {
  int32_t (*release)(T) = nullptr;
  void operator()(T handle) const noexcept { release(handle); }
};
template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Release<T>>;

}  // namespace cl

// What went wrong on a device, for one line.
struct DeviceFault {
  const char* what = nullptr;
  int32_t code = 0;  // of OpenCL; 0: none
};

// Platform and device as a part of their names; empty: the first that there is.
struct OpenClChoice {
  std::string platform;
  std::string device;
};

class OpenClDevice {
 public:
  // `where`: the key in the pipeline. The library's threads keep off these cores, where there are others.
  // Throws ConfigError.
  OpenClDevice(const OpenClChoice& choice, const std::vector<int>& avoided_cores,
               const std::string& where);

  [[nodiscard]] const cl::Api& api() const { return api_; }
  [[nodiscard]] cl::DeviceId id() const { return id_; }
  [[nodiscard]] cl::ContextId context() const { return context_.get(); }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void choose(const OpenClChoice& choice, const std::string& where);

  const cl::Api& api_;
  cl::PlatformId platform_ = nullptr;
  cl::DeviceId id_ = nullptr;
  std::string name_;
  cl::Owned<cl::ContextId> context_;
};

// All there are: [{platform, devices: [name]}]. Throws ConfigError.
[[nodiscard]] List list_opencl_devices();

// A module's kernel with buffers for a few batches at once. What is written here lies in memory that the
// device can copy from by itself; what it computes with is its own.
class OpenClKernel {
 public:
  static constexpr uint32_t kSlots = 2;  // one is filled while the other is computed
  static constexpr uint32_t kMeanBytes = 2048;

  // Throws ConfigError: what the compiler says, or too little memory.
  OpenClKernel(std::shared_ptr<const OpenClDevice> device, const Kernel& kernel, uint32_t max_pkts,
               const std::string& where);
  ~OpenClKernel();
  OpenClKernel(const OpenClKernel&) = delete;
  OpenClKernel& operator=(const OpenClKernel&) = delete;

  // Copies the next input of the batch in slot `slot`; false: there is no room.
  [[nodiscard]] bool add(uint32_t slot, Kernel::Input input) noexcept;
  [[nodiscard]] uint32_t n_added(uint32_t slot) const { return slots_[slot].n; }
  // Sends what was added on its way. False: see fault().
  [[nodiscard]] bool launch(uint32_t slot) noexcept;
  enum class State : uint8_t { kRunning, kDone, kFailed };
  [[nodiscard]] State poll(uint32_t slot) noexcept;
  [[nodiscard]] const uint8_t* results(uint32_t slot) const { return slots_[slot].results; }
  void clear(uint32_t slot) noexcept { slots_[slot].n = slots_[slot].n_bytes = 0; }
  [[nodiscard]] DeviceFault fault() const { return fault_; }

 private:
  struct Place {
    uint32_t at;
    uint32_t n_bytes;
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
  };

  void build(const Kernel& kernel, const std::string& where);
  void make_slot(Slot& slot, const Kernel& kernel, const std::string& where);
  [[nodiscard]] bool failed(int32_t code, const char* what) noexcept;

  const std::shared_ptr<const OpenClDevice> device_;
  const uint32_t max_pkts_;
  const uint32_t room_bytes_;
  const uint32_t result_bytes_;
  size_t group_ = 1;  // work items of a group
  cl::Owned<cl::QueueId> queue_;
  cl::Owned<cl::ProgramId> program_;
  std::array<Slot, kSlots> slots_;
  DeviceFault fault_;
};

}  // namespace batchplane::offload
