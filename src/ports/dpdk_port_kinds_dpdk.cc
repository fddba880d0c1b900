// SPDX-License-Identifier: BSD-3-Clause
// dpdk_port_kinds_dpdk.cc - the port kinds dpdk and tap, with their parameters.
#include <algorithm>

#include "ports/dpdk_port.h"
#include "ports/kernel_interface.h"
#include "ports/port_kinds.h"

namespace batchplane::ports {
namespace {

std::vector<ParamSpec> with_device_params(std::vector<ParamSpec> own) {
  own.push_back({.name = "mtu_bytes",
                 .unit = "bytes",
                 .default_value = 0,
                 .help = "longest IP packet; 0 = as the device has it",
                 .min = 0,
                 .max = 9600});
  own.push_back({.name = "promiscuous",
                 .type = ParamType::kBool,
                 .default_value = true,
                 .help = "also take frames for other MAC addresses"});
  own.push_back({.name = "rx_slots",
                 .unit = "pkts",
                 .default_value = 512,
                 .help = "packets that the device may hold on the way in",
                 .min = 32,
                 .max = 4096});
  own.push_back({.name = "tx_slots",
                 .unit = "pkts",
                 .default_value = 512,
                 .help = "packets that the device may hold on the way out",
                 .min = 32,
                 .max = 4096});
  return own;
}

constexpr const char* kNotes =
    "Packets enter at the time of the burst that received them; rx_wait_estimate_ns (show ports) "
    "is how "
    "long they had waited on average, taken as half the time between polls.";

std::string tap_args(const Args& args) {
  return "net_tap_" + args.name() + ",iface=" + args.string("interface");
}

std::shared_ptr<Port> make_device(const std::string& devargs, const Args& args) {
  return std::make_shared<DpdkPort>(DeviceArgs::parse(devargs), args);
}

}  // namespace

std::vector<PortKindInfo> dpdk_port_kinds() {
  return {
      {.kind = "dpdk",
       .help = "Any DPDK device, by its arguments.",
       .params = with_device_params(
           {{.name = "devargs",
             .type = ParamType::kString,
             .help = "for example net_af_packet0,iface=eth0, net_pcap0,rx_pcap=in.pcap, or a PCI "
                     "address"}}),
       .notes = kNotes,
       .makes_interface = true,
       .make = [](const Args& args) { return make_device(args.string("devargs"), args); }},
      {.kind = "tap",
       .help = "A new network interface of the kernel, whose other end is the port.",
       .params =
           with_device_params({{.name = "interface",
                                .type = ParamType::kString,
                                .help = "name of the interface to make, at most 15 letters"}}),
       .notes = kNotes,
       .makes_interface = true,
       .make = [](const Args& args) { return make_device(tap_args(args), args); }},
  };
}

}  // namespace batchplane::ports
