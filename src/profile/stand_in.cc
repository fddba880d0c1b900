// SPDX-License-Identifier: BSD-3-Clause
#include "profile/stand_in.h"

#include <algorithm>

#include "base/net_headers.h"
#include "traffic/template.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kFlows = 64;
constexpr net::Mac kRouterMac{0x02, 0x77, 0x0b, 0x00, 0x00, 0x01};
constexpr net::Mac kHostMac{0x02, 0, 0, 0, 0xff, 0x01};
constexpr uint32_t kNearNet = 10U << 24;
constexpr uint32_t kFarNet = 20U << 24;
constexpr uint32_t kFarStep = 256;  // puts each flow's destination in its own /24

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

// From 2001:db8:1::10 to 2001:db8:2:i::1.
PacketImage ipv6_image(uint32_t i) {
  struct Frame {
    net::Ethernet eth;
    net::Ipv6 ip;
    net::Udp udp;
  };
  constexpr uint64_t kDocumentationNet = 0x20010db8ULL << 32;
  const Frame frame{
      .eth = {.dst = kRouterMac, .src = kHostMac, .type = net::kTypeIpv6},
      .ip = {.version_class_flow = net::Ipv6::kPlain,
             .payload_length = sizeof(net::Udp),
             .next_header = net::kProtoUdp,
             .hop_limit = 64,
             .src = net::Address6{.high = kDocumentationNet | 1U << 16, .low = 0x10},
             .dst = net::Address6{.high = kDocumentationNet | 2U << 16 | i, .low = 1}},
      .udp = {.src_port = static_cast<uint16_t>(10'000 + i),
              .dst_port = 2000,
              .length = sizeof(net::Udp),
              .checksum = 0xffff}};
  return {.bytes = {bytes_of(frame), bytes_of(frame) + sizeof frame},
          .meta = {.in_interface = kNoInterface}};
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
  std::vector<PacketImage> images;
  for (uint32_t i = 0; i < kFlows; ++i) {
    images.push_back(instance.info->is_for_ipv6
                         ? ipv6_image(i)
                         : ipv4_image(flow_to(i, kRouterMac, kNearNet, kFarNet)));
  }
  return images;
}

}  // namespace batchplane::profile
