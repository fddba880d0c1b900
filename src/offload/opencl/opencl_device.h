// SPDX-License-Identifier: BSD-3-Clause
// opencl_device.h - an OpenCL device chosen by name.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/value.h"
#include "offload/kernel/device_kernel.h"
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

// Parts of the platform's and the device's names; empty: the first one.
struct OpenClChoice {
  std::string platform;
  std::string device;
};

class OpenClDevice final : public KernelDevice, public std::enable_shared_from_this<OpenClDevice> {
 public:
  // `where`: the key in the pipeline. The library's threads avoid these cores if there are others. Throws
  // ConfigError.
  OpenClDevice(const OpenClChoice& choice, const std::vector<int>& avoided_cores,
               const std::string& where);

  [[nodiscard]] const cl::Api& api() const { return api_; }
  [[nodiscard]] cl::DeviceId id() const { return id_; }
  [[nodiscard]] cl::ContextId context() const { return context_.get(); }
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::unique_ptr<DeviceKernel> make_kernel(Kernel& kernel, uint32_t max_pkts,
                                                          const Quiescence* quiescence,
                                                          const std::string& where) const override;

 private:
  void choose(const OpenClChoice& choice, const std::string& where);

  const cl::Api& api_;
  cl::PlatformId platform_ = nullptr;
  cl::DeviceId id_ = nullptr;
  std::string name_;
  cl::Owned<cl::ContextId> context_;
};

// All platforms: [{platform, devices: [name], drivers: [version]}]. Throws ConfigError.
[[nodiscard]] List list_opencl_devices();

}  // namespace batchplane::offload
