// SPDX-License-Identifier: BSD-3-Clause
// any_device_test_util.h - whatever OpenCL device the machine has, for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "offload/opencl/opencl_device.h"

namespace batchplane::offload {

// Null, and the test is skipped, where this machine has none.
inline std::shared_ptr<const OpenClDevice> any_device(std::string& why) {
  try {
    return std::make_shared<const OpenClDevice>(OpenClChoice{}, std::vector<int>{}, "devices.x");
  } catch (const ConfigError& error) {
    why = error.line();
    return nullptr;
  }
}

}  // namespace batchplane::offload
