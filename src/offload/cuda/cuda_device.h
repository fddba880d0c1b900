// SPDX-License-Identifier: BSD-3-Clause
// cuda_device.h - an NVIDIA GPU chosen by name, and its power draw.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/value.h"
#include "offload/cuda/cuda_api.h"
#include "offload/cuda/mapped_memory.h"
#include "offload/kernel/device_kernel.h"

namespace batchplane::offload {

// Part of a GPU's name, or its number on this machine; empty: the first GPU.
struct CudaChoice {
  std::string device;
};

class CudaDevice final : public KernelDevice, public std::enable_shared_from_this<CudaDevice> {
 public:
  // `where`: the key in the pipeline. Throws ConfigError.
  CudaDevice(const CudaChoice& choice, const std::string& where);

  [[nodiscard]] const cu::Api& api() const { return api_; }
  // Makes this GPU's context current in the calling thread.
  [[nodiscard]] int32_t use() const noexcept { return context_->use(); }
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::optional<double> watts() const override;
  void lend(std::span<const std::span<uint8_t>> memory) override;
  [[nodiscard]] uint64_t lent_bytes() const override;
  [[nodiscard]] std::span<const LentMemory> lent() const { return lent_; }
  [[nodiscard]] std::unique_ptr<DeviceKernel> make_kernel(Kernel& kernel, uint32_t max_pkts,
                                                          const Quiescence* quiescence,
                                                          const std::string& where) const override;

 private:
  const cu::Api& api_;
  std::shared_ptr<const cu::Context> context_;
  std::string name_;
  std::string bus_;
  std::vector<std::shared_ptr<const cu::MappedMemory>> mapped_;
  std::vector<LentMemory> lent_;
};

// All GPUs: [{device, driver, bus}], with watts if there is a sensor. Throws ConfigError.
[[nodiscard]] List list_cuda_devices();

}  // namespace batchplane::offload
