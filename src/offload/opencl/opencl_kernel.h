// SPDX-License-Identifier: BSD-3-Clause
// opencl_kernel.h - a module's kernel on an OpenCL device: buffers, tables, launches, results.
#pragma once

#include "offload/kernel/device_kernel.h"
#include "offload/opencl/opencl_device.h"

namespace batchplane::offload {

class OpenClKernel final : public DeviceKernel {
 public:
  // See KernelDevice::make_kernel().
  OpenClKernel(std::shared_ptr<const OpenClDevice> device, Kernel& kernel, uint32_t max_pkts,
               const Quiescence* quiescence, const std::string& where);
  ~OpenClKernel() override;

  [[nodiscard]] State poll(uint32_t slot) noexcept override;

 private:
  struct ClTable : Table {
    cl::Owned<cl::MemoryId> words;
  };
  // A slot's OpenCL objects.
  struct Buffers {
    cl::Owned<cl::KernelId> kernel;
    cl::Owned<cl::MemoryId> own[3];     // device memory: bytes, places, results
    cl::Owned<cl::MemoryId> staged[4];  // host memory: the same, and rewritten bytes
    cl::Owned<cl::EventId> done;        // set while in flight
    bool is_cut_off = false;            // a call failed after others had been enqueued
  };

  [[nodiscard]] std::unique_ptr<Table> make_table(const std::vector<uint32_t>& words,
                                                  int32_t& error) override;
  [[nodiscard]] bool begin(uint32_t slot) noexcept override;
  [[nodiscard]] const std::string& device_name() const override { return device_->name(); }

  void build(const Kernel& kernel, const std::string& where);
  void make_slot(uint32_t slot, const Kernel& kernel, const std::string& where);
  void* make_staged(cl::Owned<cl::MemoryId>& memory, size_t n_bytes, int32_t& error);
  [[nodiscard]] bool take_table(uint32_t slot) noexcept;

  const std::shared_ptr<const OpenClDevice> device_;
  cl::Owned<cl::QueueId> queue_;
  cl::Owned<cl::ProgramId> program_;
  std::array<Buffers, kSlots> buffers_;
};

}  // namespace batchplane::offload
