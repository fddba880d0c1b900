// SPDX-License-Identifier: BSD-3-Clause
// any_device_test_util.h - a device with its own memory, for tests: an OpenCL device if there is one, else a
// CUDA GPU.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "offload/cuda/cuda_device.h"
#include "offload/opencl/opencl_device.h"

namespace batchplane::offload {

// If this machine has none, null, and the test is skipped. BATCHPLANE_TEST_DEVICE: only opencl or only cuda.
inline std::shared_ptr<KernelDevice> any_device(std::string& why) {
  const char* const wanted = std::getenv("BATCHPLANE_TEST_DEVICE");
  const std::string only = wanted == nullptr ? "" : wanted;
  const auto made = [&](const std::string& kind, auto make) -> std::shared_ptr<KernelDevice> {
    if (!only.empty() && only != kind) return nullptr;
    try {
      return make();
    } catch (const ConfigError& error) {
      why += error.line() + " ";
      return nullptr;
    }
  };
  auto device = made("opencl", [] {
    return std::make_shared<OpenClDevice>(OpenClChoice{}, std::vector<int>{}, "devices.x");
  });
  if (device != nullptr) return device;
  return made("cuda", [] { return std::make_shared<CudaDevice>(CudaChoice{}, "devices.x"); });
}

// As in a pipeline.
inline std::string kind_of_any_device() {
  std::string why;
  const auto device = any_device(why);
  return dynamic_cast<const CudaDevice*>(device.get()) == nullptr ? "opencl" : "cuda";
}

}  // namespace batchplane::offload
