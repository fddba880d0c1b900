// SPDX-License-Identifier: BSD-3-Clause
// devices.h - the devices of a pipeline, by name.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/module/environment.h"
#include "offload/device.h"
#include "spec/pipeline_spec.h"

namespace batchplane::offload {

// Environment::shared<Devices>(kDevices, ...)
inline constexpr const char* kDevices = "devices";

struct Devices {
  std::map<std::string, std::shared_ptr<Device>> by_name;
  std::map<std::string, DeviceSpec> specs;
  std::set<std::string> refused;  // for a mistake that was told
};

struct DeviceKind {
  std::string kind;
  std::string help;
  std::vector<ParamSpec> params;
};
[[nodiscard]] const std::vector<DeviceKind>& device_kinds();

// Makes what the pipeline declares, or goes on with the devices of the graph that runs where nothing about
// them has changed. With `is_check` none has threads. Appends mistakes.
// Threads stay off the cores of workers, which never sleep, where there are others.
void add_devices(const PipelineSpec& spec, Environment& env, const Environment* running,
                 Mistakes& mistakes);

}  // namespace batchplane::offload
