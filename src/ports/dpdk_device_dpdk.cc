// SPDX-License-Identifier: BSD-3-Clause
// dpdk_device_dpdk.cc - checks a driver's requirements before attaching a device, since drivers only report
// "failed".
#include <fcntl.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "ports/dpdk_device.h"
#include "ports/kernel_interface.h"

namespace batchplane::ports {
namespace {

// Device names are the driver's name and a suffix: net_tap0, net_tap_lan.
std::string driver_of(const std::string& device) {
  for (const char* driver : {"net_af_packet", "net_tap", "net_pcap", "net_null", "net_ring"}) {
    if (device.starts_with(driver)) return driver;
  }
  return device.substr(0, device.find_last_not_of("0123456789") + 1);
}

void require_interface_of(const DeviceArgs& args, const std::string& where) {
  if (args.iface.empty()) {
    throw ConfigError("'" + args.text + "' names no interface", where,
                      "add it, for example " + args.device + ",iface=eth0");
  }
  require_interface(args.iface, where);
}

void require_raw_sockets(const std::string& where) {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    close(fd);
    return;
  }
  throw ConfigError(std::string("raw sockets cannot be opened: ") + std::strerror(errno), where,
                    "run as root, or: setcap cap_net_raw+ep $(command -v batchplaned)");
}

void require_tun(const std::string& where) {
  const int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
  if (fd >= 0) {
    close(fd);
    return;
  }
  if (errno == ENOENT || errno == ENODEV) {
    throw ConfigError("this machine has no TUN/TAP device", where, "load the module: modprobe tun");
  }
  throw ConfigError(std::string("/dev/net/tun cannot be opened: ") + std::strerror(errno), where,
                    "run as root, or: setcap cap_net_admin+ep $(command -v batchplaned)");
}

std::string remedy(const DeviceArgs& args) {
  if (args.driver == "net_tap") {
    return "it needs CAP_NET_ADMIN, and an interface name of at most 15 letters that is free: run "
           "as root; a daemon that began without taps has given the right up: start it anew";
  }
  if (args.driver.empty()) {
    return "list devices with dpdk-devbind.py --status; a NIC needs hugepages and the vfio-pci "
           "driver";
  }
  std::string package = args.driver;
  for (char& c : package) c = c == '_' ? '-' : c;
  return "check its arguments; the driver comes with the package librte-" + package + "23";
}

}  // namespace

DeviceArgs DeviceArgs::parse(const std::string& text) {
  DeviceArgs args{.text = text, .device = text.substr(0, text.find(','))};
  if (args.device.starts_with("net_")) args.driver = driver_of(args.device);
  const size_t at = text.find(",iface=");
  if (at != std::string::npos) {
    const std::string rest = text.substr(at + 7);
    args.iface = rest.substr(0, rest.find(','));
  }
  return args;
}

uint16_t attach_device(const DeviceArgs& args, const std::string& where) {
  if (args.driver == "net_af_packet") {
    require_raw_sockets(where);
    require_interface_of(args, where);
  }
  if (args.driver == "net_tap") require_tun(where);
  uint16_t port = 0;
  if (rte_eth_dev_get_port_by_name(args.device.c_str(), &port) == 0) {
    throw ConfigError("device '" + args.device + "' is in use already", where,
                      "give each port a device of its own");
  }
  const int status = rte_dev_probe(args.text.c_str());
  if (status != 0 || rte_eth_dev_get_port_by_name(args.device.c_str(), &port) != 0) {
    throw ConfigError(
        "device '" + args.text + "' cannot be had: " + std::strerror(status < 0 ? -status : ENODEV),
        where, remedy(args));
  }
  return port;
}

void detach_device(uint16_t port) {
  rte_eth_dev_info info{};
  const bool is_known = rte_eth_dev_info_get(port, &info) == 0;
  rte_eth_dev_stop(port);
  rte_eth_dev_close(port);
  if (is_known && info.device != nullptr) rte_dev_remove(info.device);
}

}  // namespace batchplane::ports
