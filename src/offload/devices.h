// SPDX-License-Identifier: BSD-3-Clause
// devices.h - the devices of a pipeline, by name.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/module/environment.h"
#include "core/packet/packet_pool.h"
#include "offload/device.h"
#include "spec/pipeline_spec.h"

namespace batchplane::offload {

// Environment::shared<Devices>(kDevices, ...)
inline constexpr const char* kDevices = "devices";

struct Devices {
  std::map<std::string, std::shared_ptr<Device>> by_name;
  std::map<std::string, DeviceSpec> specs;
  std::set<std::string> refused;  // because of an error that was reported
};

struct DeviceKind {
  std::string kind;
  std::string help;
  std::vector<ParamSpec> params;
};
[[nodiscard]] const std::vector<DeviceKind>& device_kinds();

// Makes the devices that the pipeline declares; devices of the running graph whose declaration has not
// changed are kept. With `is_check` none has threads. Appends errors.
// If there are other cores, device threads avoid those of workers, which never sleep.
void add_devices(const PipelineSpec& spec, Environment& env, const Environment* running,
                 Mistakes& mistakes);
// Lets devices read the pool's packets directly, where they can. Before the engine runs a graph of `env`.
void lend_packets(Environment& env, PacketPool& pool);

}  // namespace batchplane::offload
