// SPDX-License-Identifier: BSD-3-Clause
// device_profile_run.h - `batchplaned --profile-devices`: measures the times of batches of a pipeline's
// modules on devices and prints them as JSON, instead of running the pipeline.
#pragma once

#include <string>
#include <vector>

#include "app/start/startup.h"

namespace batchplane::app {

// {"devices": {"cores": {"kind": "cores", "params": {}}}, "modules": ["dpi"], "batch_pkts": [1, 16],
// "ms": 50, "pair_batch_pkts": 0, "power_ms": 0}: `devices` in addition to `inline`; 0: no pairs, no watts.
// Throws ConfigError.
struct DeviceProfileRequest {
  std::vector<DeviceSpec> devices;
  std::vector<std::string> modules;
  std::vector<uint32_t> batch_pkts;
  double ms = 50;  // for batches of one size
  uint32_t pair_batch_pkts = 0;
  double power_ms = 0;  // for each reading of a sensor; 0: none
};
DeviceProfileRequest device_profile_request_from(const Value& value, const PipelineSpec& spec);

// Measures on the worker's core; progress goes to stderr. A module that cannot run on a device is left out
// for it, with the reason. Throws ConfigErrors.
Value run_device_profile(Startup& startup, const std::string& request_path);

}  // namespace batchplane::app
