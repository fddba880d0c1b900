// SPDX-License-Identifier: BSD-3-Clause
#include "cases/frames.h"

#include <cstring>

#include "traffic/template.h"

namespace batchplane::cases {

std::vector<uint8_t> udp_frame(const net::Mac& dst_mac, uint32_t dst_ip) {
  traffic::FlowSpec flow;
  flow.dst_mac = dst_mac;
  flow.src_mac = {0x02, 0, 0, 0, 0xff, 0x01};
  flow.src_ip = kSourceAddress;
  flow.dst_ip = dst_ip;
  flow.src_port = 1000;
  flow.dst_port = 2000;
  flow.ttl = kFrameTtl;
  return traffic::build_frame(flow, traffic::kMinFrameBytes);
}

std::vector<uint8_t> ping_frame(uint32_t i) {
  std::vector<uint8_t> frame = udp_frame(kRouterMac, (10U << 24) + 1);
  uint8_t* ip = &frame[net::kEthBytes];
  ip[net::kIpProto] = net::kProtoIcmp;
  net::store16(ip + net::kIpChecksum, 0);
  net::store16(ip + net::kIpChecksum, net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)));
  uint8_t* icmp = ip + net::kIpv4Bytes;
  const uint32_t icmp_bytes =
      static_cast<uint32_t>(frame.size()) - net::kEthBytes - net::kIpv4Bytes;
  icmp[0] = 8;
  icmp[1] = 0;
  net::store16(icmp + 2, 0);
  net::store16(icmp + 6, static_cast<uint16_t>(i));
  net::store16(icmp + 2, net::checksum_finish(net::checksum_add(icmp, icmp_bytes)));
  return frame;
}

net::Address6 flow_address6(uint32_t i) { return {0x2400000000000000ULL + (uint64_t{i} << 24), 1}; }

std::vector<uint8_t> udp6_frame(const net::Address6& dst) {
  std::vector<uint8_t> frame = udp_frame(kRouterMac, flow_address(0));
  net::store16(&frame[12], net::kTypeIpv6);
  uint8_t* ip = &frame[net::kEthBytes];
  std::memset(ip, 0, frame.size() - net::kEthBytes);
  ip[0] = 0x60;
  net::store16(ip + net::kIp6PayloadLength,
               static_cast<uint16_t>(frame.size() - net::kEthBytes - net::kIpv6Bytes));
  ip[net::kIp6NextHeader] = net::kProtoUdp;
  ip[net::kIp6HopLimit] = kFrameTtl;
  net::store_address6(ip + net::kIp6Src, {0x20010db800000000ULL, 9});
  net::store_address6(ip + net::kIp6Dst, dst);
  return frame;
}

std::vector<uint8_t> tagged_frame(uint32_t flow, uint32_t vid) {
  std::vector<uint8_t> frame = udp_frame(kRouterMac, flow_address(flow));
  const size_t size = frame.size();
  const uint8_t tag[] = {0x81, 0, static_cast<uint8_t>(vid >> 8), static_cast<uint8_t>(vid)};
  frame.insert(frame.begin() + 12, tag, tag + 4);
  frame.resize(size);
  return frame;
}

}  // namespace batchplane::cases
