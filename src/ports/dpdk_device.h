// SPDX-License-Identifier: BSD-3-Clause
// dpdk_device.h - attaches DPDK devices from device arguments, with errors that say what to do.
#pragma once

#include <cstdint>
#include <string>

namespace batchplane::ports {

// "net_af_packet0,iface=veth0", split into its parts.
struct DeviceArgs {
  std::string text;
  std::string device;  // "net_af_packet0", "0000:03:00.0"
  std::string driver;  // "net_af_packet"; empty for PCI devices
  std::string iface;   // empty when there is none

  static DeviceArgs parse(const std::string& text);
};

// Probes the device and returns its port number. Throws ConfigError.
uint16_t attach_device(const DeviceArgs& args, const std::string& where);
void detach_device(uint16_t port);

}  // namespace batchplane::ports
