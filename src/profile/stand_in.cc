// SPDX-License-Identifier: BSD-3-Clause
#include "profile/stand_in.h"

#include <algorithm>

#include "base/net.h"
#include "traffic/template.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kFlows = 64;
constexpr uint32_t kIp6Bytes = 40;
constexpr uint32_t kUdpBytes = 8;
constexpr net::Mac kRouterMac{0x02, 0x77, 0x0b, 0x00, 0x00, 0x01};
constexpr net::Mac kHostMac{0x02, 0, 0, 0, 0xff, 0x01};
constexpr uint32_t kNearNet = 10U << 24;
constexpr uint32_t kFarNet = 20U << 24;
constexpr uint32_t kFarStep = 256;  // each flow's destination in a /24 of its own

traffic::FlowSpec flow_to(uint32_t i, const net::Mac& dst_mac, uint32_t near_net,
                          uint32_t far_net) {
  traffic::FlowSpec flow;
  flow.dst_mac = dst_mac;
  flow.src_mac = kHostMac;
  flow.src_ip = near_net + 10 + i % 16;
  flow.dst_ip = far_net + i * kFarStep + 1;
  flow.src_port = static_cast<uint16_t>(10'000 + i);
  flow.dst_port = 2000;
  return flow;
}

PacketImage ipv4_image(const traffic::FlowSpec& flow) {
  return {.bytes = traffic::build_frame(flow, traffic::kMinFrameBytes),
          .meta = {.in_interface = kNoInterface}};
}

PacketImage ipv6_image(uint32_t i) {
  PacketImage image{.bytes = std::vector<uint8_t>(net::kEthBytes + kIp6Bytes + kUdpBytes),
                    .meta = {.in_interface = kNoInterface}};
  uint8_t* const frame = image.bytes.data();
  std::ranges::copy(kRouterMac, frame);
  std::ranges::copy(kHostMac, frame + 6);
  net::store16(frame + 12, net::kTypeIpv6);
  uint8_t* const ip = frame + net::kEthBytes;
  ip[0] = 0x60;
  net::store16(ip + 4, kUdpBytes);
  ip[6] = net::kProtoUdp;
  ip[7] = 64;                        // hop limit
  net::store32(ip + 8, 0x20010db8);  // source 2001:db8:1::10
  net::store16(ip + 12, 1);
  ip[23] = 0x10;
  net::store32(ip + 24, 0x20010db8);  // destination 2001:db8:2:i::1
  net::store16(ip + 28, 2);
  net::store16(ip + 30, static_cast<uint16_t>(i));
  ip[39] = 1;
  uint8_t* const udp = ip + kIp6Bytes;
  net::store16(udp, static_cast<uint16_t>(10'000 + i));
  net::store16(udp + 2, 2000);
  net::store16(udp + 4, kUdpBytes);
  net::store16(udp + 6, 0xffff);
  return image;
}

const Interface* interface_of(const Graph& graph, const std::string& input) {
  const auto spec = std::ranges::find(graph.spec.modules, input, &ModuleSpec::name);
  const auto given = spec->params.find("interface");
  if (given == spec->params.end() || given->second.as_string().empty()) return nullptr;
  return &graph.env->interface(given->second.as_string());
}

}  // namespace

std::vector<PacketImage> stand_in_for_input(const Graph& graph, const std::string& name) {
  const Interface* in = interface_of(graph, name);
  uint32_t near_net = kNearNet;
  uint32_t far_net = kFarNet;
  if (in != nullptr && !in->addresses.empty()) {
    near_net = in->addresses.front().address & net::mask4(in->addresses.front().length);
  }
  for (const Interface& other : graph.env->interfaces) {
    if (in == nullptr || other.index == in->index || other.addresses.empty()) continue;
    far_net = other.addresses.front().address & net::mask4(other.addresses.front().length);
  }
  std::vector<PacketImage> images;
  for (uint32_t i = 0; i < kFlows; ++i) {
    images.push_back(
        ipv4_image(flow_to(i, in == nullptr ? kRouterMac : in->mac, near_net, far_net)));
    if (in != nullptr) images.back().meta.in_interface = in->index;
  }
  return images;
}

std::vector<PacketImage> stand_in_pkts(const Instance& instance) {
  const std::string& kind = instance.info->kind;
  const bool is_ipv6 = kind.find('6') != std::string::npos || kind == "hop_limit";
  std::vector<PacketImage> images;
  for (uint32_t i = 0; i < kFlows; ++i) {
    images.push_back(is_ipv6 ? ipv6_image(i)
                             : ipv4_image(flow_to(i, kRouterMac, kNearNet, kFarNet)));
  }
  return images;
}

}  // namespace batchplane::profile
