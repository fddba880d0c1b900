// SPDX-License-Identifier: BSD-3-Clause
// frames6.h - plain IPv6 frames for tests of modules.
#pragma once

#include "base/net6.h"
#include "module_harness.h"

namespace batchplane {

inline net::Address6 ip6(const std::string& text) {
  const auto address = net::parse_ipv6(text);
  if (!address) throw std::runtime_error("no IPv6 address: " + text);
  return *address;
}

// Ethernet, IPv6, the extension headers given (the last one's next header is set by the caller) and
// a payload of zeros with ports.
struct Frame6Spec {
  net::Mac dst = {2, 0, 0, 0, 0, 1};
  net::Mac src = {2, 0, 0, 0, 0, 2};
  std::string ip_src = "2001:db8:a::9";
  std::string ip_dst = "2001:db8:b::9";
  uint8_t next = net::kProtoUdp;  // in the IPv6 header
  uint8_t hop_limit = 64;
  Bytes extensions = {};
  uint32_t payload_bytes = 16;  // behind the extensions
  uint16_t port_src = 1000;
  uint16_t port_dst = 2000;
};

inline Bytes make_frame6(const Frame6Spec& spec = {}) {
  const auto extension_bytes = static_cast<uint32_t>(spec.extensions.size());
  Bytes frame(net::kEthBytes + net::kIpv6Bytes + extension_bytes + spec.payload_bytes);
  std::ranges::copy(spec.dst, frame.begin());
  std::ranges::copy(spec.src, frame.begin() + 6);
  net::store16(&frame[12], net::kTypeIpv6);
  uint8_t* ip = &frame[net::kEthBytes];
  ip[0] = 0x60;
  net::store16(ip + net::kIp6PayloadLength,
               static_cast<uint16_t>(extension_bytes + spec.payload_bytes));
  ip[net::kIp6NextHeader] = spec.next;
  ip[net::kIp6HopLimit] = spec.hop_limit;
  net::store_address6(ip + net::kIp6Src, ip6(spec.ip_src));
  net::store_address6(ip + net::kIp6Dst, ip6(spec.ip_dst));
  std::ranges::copy(spec.extensions, frame.begin() + net::kEthBytes + net::kIpv6Bytes);
  uint8_t* payload = ip + net::kIpv6Bytes + extension_bytes;
  if (spec.payload_bytes >= 4) {
    net::store16(payload, spec.port_src);
    net::store16(payload + 2, spec.port_dst);
  }
  return frame;
}

// With the ICMPv6 message given as payload; its checksum is set.
inline Bytes make_icmp6(Frame6Spec spec, const Bytes& message) {
  spec.next = net::kProtoIcmp6;
  spec.payload_bytes = 0;
  Bytes frame = make_frame6(spec);
  const auto bytes = static_cast<uint32_t>(message.size());
  frame.insert(frame.end(), message.begin(), message.end());
  uint8_t* ip = &frame[net::kEthBytes];
  net::store16(ip + net::kIp6PayloadLength, static_cast<uint16_t>(bytes));
  if (bytes < 4) return frame;
  uint8_t* icmp = ip + net::kIpv6Bytes;
  net::store16(icmp + 2, 0);
  const uint32_t sum =
      net::checksum_add(icmp, bytes, net::pseudo_sum(header_at<net::Ipv6>(ip), bytes, 58));
  net::store16(icmp + 2, net::checksum_finish(sum));
  return frame;
}

// What is left over a whole ICMPv6 message of a frame: 0 when the checksum is right.
inline uint16_t icmp6_sum(const Bytes& frame) {
  const uint8_t* ip = &frame[net::kEthBytes];
  const uint32_t bytes = net::load16(ip + net::kIp6PayloadLength);
  const uint32_t sum = net::pseudo_sum(header_at<net::Ipv6>(ip), bytes, 58);
  return net::checksum_finish(net::checksum_add(ip + net::kIpv6Bytes, bytes, sum));
}

// Two interfaces, `lan` and `wan`, as the tests of routers want them.
inline std::unique_ptr<Environment> environment6() {
  auto env = std::make_unique<Environment>();
  const char* names[] = {"lan", "wan"};
  for (uint16_t i = 0; i < 2; ++i) {
    const net::Mac mac{2, 0, 0, 0, 0, static_cast<uint8_t>(0x0a + i)};
    const std::string subnet = i == 0 ? "2001:db8:a::1/64" : "2001:db8:b::1/64";
    env->interfaces.push_back(
        {.name = names[i],
         .port = names[i],
         .index = i,
         .mac = mac,
         .addresses6 = {*net::parse_interface_address6(subnet), {net::link_local_of(mac), 64}}});
  }
  return env;
}

}  // namespace batchplane
