// SPDX-License-Identifier: BSD-3-Clause
// flow_params.cc - declares the parameters of flows and traffic.
#include "traffic/flow_spec.h"

namespace batchplane::traffic {
namespace {

constexpr double kPort = 65535;
constexpr double kStep = 4294967295.0;

std::vector<ParamSpec> address_params() {
  return {
      {.name = "src_mac",
       .type = ParamType::kMac,
       .default_value = "02:00:00:00:01:00",
       .help = "source MAC address"},
      {.name = "dst_mac",
       .type = ParamType::kMac,
       .default_value = "02:00:00:00:02:00",
       .help = "destination MAC address"},
      {.name = "src_ip",
       .type = ParamType::kIpv4,
       .default_value = "10.0.0.1",
       .help = "source address of the first flow"},
      {.name = "src_ip_step",
       .default_value = 0,
       .help = "added to src_ip from flow to flow",
       .min = 0,
       .max = kStep},
      {.name = "dst_ip",
       .type = ParamType::kIpv4,
       .default_value = "10.1.0.1",
       .help = "destination address of the first flow"},
      {.name = "dst_ip_step",
       .default_value = 1,
       .help = "added to dst_ip from flow to flow",
       .min = 0,
       .max = kStep},
      {.name = "src_port",
       .default_value = 1024,
       .help = "source port of the first flow",
       .min = 0,
       .max = kPort},
      {.name = "src_port_step",
       .default_value = 0,
       .help = "added to src_port from flow to flow",
       .min = 0,
       .max = kPort},
      {.name = "dst_port",
       .default_value = 4791,
       .help = "destination port of the first flow",
       .min = 0,
       .max = kPort},
      {.name = "dst_port_step",
       .default_value = 0,
       .help = "added to dst_port from flow to flow",
       .min = 0,
       .max = kPort},
  };
}

std::vector<ParamSpec> tunnel_params() {
  return {
      {.name = "tunnel",
       .type = ParamType::kString,
       .default_value = "none",
       .help = "what the packets come in; it adds to size_bytes",
       .choices = {"none", "gtpu", "vxlan"}},
      {.name = "tunnel_id",
       .default_value = 0,
       .help = "TEID or VNI of the first flow",
       .min = 0,
       .max = kStep},
      {.name = "tunnel_id_step",
       .default_value = 1,
       .help = "added to tunnel_id from flow to flow",
       .min = 0,
       .max = kStep},
      {.name = "tunnel_src",
       .type = ParamType::kIpv4,
       .default_value = "192.0.2.2",
       .help = "outer source address"},
      {.name = "tunnel_dst",
       .type = ParamType::kIpv4,
       .default_value = "192.0.2.1",
       .help = "outer destination address"},
      {.name = "tunnel_qfi",
       .default_value = -1,
       .help = "gtpu: QoS flow in a PDU session container; -1 = no container",
       .min = -1,
       .max = 63},
  };
}

std::vector<ParamSpec> make_flow_params() {
  std::vector<ParamSpec> specs = {
      {.name = "name",
       .type = ParamType::kString,
       .default_value = "",
       .help = "name in reports; flow N when empty"},
      {.name = "count",
       .default_value = 1,
       .help = "how many flows this entry stands for",
       .min = 1,
       .max = kMaxFlows},
      {.name = "weight",
       .type = ParamType::kFloat,
       .default_value = 1.0,
       .help = "share of the packets, relative to the other flows",
       .min = 0,
       .max = 1e6},
      {.name = "rate_pps",
       .type = ParamType::kFloat,
       .unit = "pps",
       .default_value = 0.0,
       .help = "generator: a rate of its own for each flow; 0 = a share of the total",
       .min = 0,
       .max = 1e9},
      {.name = "size_bytes",
       .unit = "bytes",
       .default_value = 0,
       .help = "frame on the wire, checksum included; 0 = as for all flows",
       .min = 0,
       .max = kMaxWireBytes},
      {.name = "size_mix",
       .type = ParamType::kList,
       .default_value = List{},
       .help = "several sizes: [{size_bytes: 64, weight: 7}, ...]"},
      {.name = "imix",
       .type = ParamType::kBool,
       .default_value = false,
       .help = "sizes 64, 594 and 1518 bytes, 7 : 4 : 1"},
      {.name = "ttl", .default_value = 64, .help = "IPv4 time to live", .min = 1, .max = 255},
      {.name = "protocol",
       .type = ParamType::kString,
       .default_value = "udp",
       .help = "what follows the IPv4 header",
       .choices = {"udp", "tcp"}},
      {.name = "l4_checksum",
       .type = ParamType::kBool,
       .default_value = false,
       .help = "fill in the UDP or TCP checksum (else it is 0)"},
      {.name = "vlan",
       .default_value = kNoVlan,
       .help = "802.1Q tag; -1 = untagged",
       .min = -1,
       .max = 4094},
      {.name = "raw_hex",
       .type = ParamType::kString,
       .default_value = "",
       .help = "the whole frame as hexadecimal bytes, without checksum; instead of all the rest"},
      {.name = "flow",
       .type = ParamType::kString,
       .default_value = "",
       .help = "declared flow that it follows, for simulations without this program; {i} counts"},
  };
  for (ParamSpec& spec : address_params()) specs.push_back(std::move(spec));
  for (ParamSpec& spec : tunnel_params()) specs.push_back(std::move(spec));
  return specs;
}

}  // namespace

const std::vector<ParamSpec>& flow_params() {
  static const std::vector<ParamSpec> kParams = make_flow_params();
  return kParams;
}

std::vector<ParamSpec> with_traffic_params(std::vector<ParamSpec> own) {
  own.push_back(
      {.name = "flows",
       .type = ParamType::kList,
       .default_value = List{},
       .help = "flows, e.g. [{count: 16, dst_ip: 10.1.0.1, dst_ip_step: 256}]; empty: one"});
  own.push_back({.name = "size_bytes",
                 .unit = "bytes",
                 .default_value = kMinFrameBytes,
                 .help = "frame on the wire, its 4-byte checksum included (64: 60 bytes in memory)",
                 .min = kMinFrameBytes,
                 .max = kMaxWireBytes});
  own.push_back({.name = "imix",
                 .type = ParamType::kBool,
                 .default_value = false,
                 .help = "sizes 64, 594 and 1518 bytes, 7 : 4 : 1, instead of size_bytes"});
  own.push_back({.name = "order",
                 .type = ParamType::kString,
                 .default_value = "round_robin",
                 .help = "how flows take turns, in proportion to their weights",
                 .choices = {"round_robin", "random"}});
  own.push_back({.name = "seed", .default_value = 1, .help = "of everything random", .min = 0});
  return own;
}

}  // namespace batchplane::traffic
