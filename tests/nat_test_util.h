// SPDX-License-Identifier: BSD-3-Clause
// nat_test_util.h - frames with all checksums, and a plain reading of what a translator made of
// them.
#pragma once

#include <string>
#include <vector>

#include "module_harness.h"

namespace batchplane::nattest {

inline constexpr uint8_t kFin = 1;
inline constexpr uint8_t kSyn = 2;
inline constexpr uint8_t kRst = 4;
inline constexpr uint8_t kAck = 16;

// One end: address in host order and port.
struct Ep {
  uint32_t ip = 0;
  uint16_t port = 0;
  bool operator==(const Ep&) const = default;
  auto operator<=>(const Ep&) const = default;
};
inline constexpr uint32_t ip4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

inline uint16_t sum_of(const uint8_t* ip, const uint8_t* l4, uint32_t l4_bytes, uint8_t proto) {
  uint32_t sum = 0;
  if (proto != net::kProtoIcmp) {
    sum = net::checksum_add(ip + net::kIpSrc, 8, proto + l4_bytes);
  }
  return net::checksum_finish(net::checksum_add(l4, l4_bytes, sum));
}

struct Ipv4Spec {
  uint32_t src = 0;
  uint32_t dst = 0;
  uint8_t proto = net::kProtoUdp;
  uint16_t id = 7;
  uint16_t fragment = 0;  // flags and offset field
  uint32_t options_bytes = 0;
};

// An IPv4 packet around a transport part that is whole, checksums included.
inline Bytes ipv4(const Ipv4Spec& spec, const Bytes& l4) {
  const uint32_t header = net::kIpv4Bytes + spec.options_bytes;
  Bytes ip(header + l4.size(), 1);
  std::memset(ip.data(), 0, net::kIpv4Bytes);
  ip[0] = static_cast<uint8_t>(0x40 | header / 4);
  net::store16(&ip[2], static_cast<uint16_t>(ip.size()));
  net::store16(&ip[4], spec.id);
  net::store16(&ip[6], spec.fragment);
  ip[8] = 64;
  ip[9] = spec.proto;
  net::store32(&ip[12], spec.src);
  net::store32(&ip[16], spec.dst);
  net::store16(&ip[10], net::checksum_finish(net::checksum_add(ip.data(), header)));
  std::ranges::copy(l4, ip.begin() + header);
  return ip;
}
inline Bytes frame_of(const Bytes& ip) {
  constexpr uint8_t kEthernet[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0};
  Bytes frame(std::max<size_t>(60, net::kEthBytes + ip.size()));
  std::ranges::copy(kEthernet, frame.begin());
  std::ranges::copy(ip, frame.begin() + net::kEthBytes);
  return frame;
}

inline Bytes udp_part(Ep from, Ep to, uint32_t payload_bytes = 10, bool has_sum = true) {
  Bytes l4(8 + payload_bytes, 0x5a);
  net::store16(&l4[0], from.port);
  net::store16(&l4[2], to.port);
  net::store16(&l4[4], static_cast<uint16_t>(l4.size()));
  net::store16(&l4[6], 0);
  const Bytes ip = ipv4({.src = from.ip, .dst = to.ip}, {});
  const uint16_t sum = sum_of(ip.data(), l4.data(), static_cast<uint32_t>(l4.size()), 17);
  if (has_sum) net::store16(&l4[6], sum == 0 ? 0xffff : sum);
  return l4;
}
inline Bytes tcp_part(Ep from, Ep to, uint8_t flags, uint32_t payload_bytes = 4) {
  Bytes l4(20 + payload_bytes, 0x33);
  std::memset(l4.data(), 0, 20);
  net::store16(&l4[0], from.port);
  net::store16(&l4[2], to.port);
  l4[12] = 0x50;
  l4[13] = flags;
  const Bytes ip = ipv4({.src = from.ip, .dst = to.ip}, {});
  net::store16(&l4[16], sum_of(ip.data(), l4.data(), static_cast<uint32_t>(l4.size()), 6));
  return l4;
}
inline Bytes icmp_part(uint8_t type, uint8_t code, uint32_t rest, const Bytes& data) {
  Bytes l4(8 + data.size(), 0);
  l4[0] = type;
  l4[1] = code;
  net::store32(&l4[4], rest);
  std::ranges::copy(data, l4.begin() + 8);
  net::store16(
      &l4[2], net::checksum_finish(net::checksum_add(l4.data(), static_cast<uint32_t>(l4.size()))));
  return l4;
}

inline Bytes udp_ip(Ep from, Ep to, uint32_t payload_bytes = 10) {
  return ipv4({.src = from.ip, .dst = to.ip}, udp_part(from, to, payload_bytes));
}
inline Bytes tcp_ip(Ep from, Ep to, uint8_t flags) {
  return ipv4({.src = from.ip, .dst = to.ip, .proto = 6}, tcp_part(from, to, flags));
}
// The ends' port is the query's id; type 8 asks, 0 answers.
inline Bytes echo_ip(uint32_t from, uint32_t to, uint16_t id, uint8_t type = 8) {
  return ipv4({.src = from, .dst = to, .proto = 1},
              icmp_part(type, 0, uint32_t{id} << 16 | 1, Bytes(12, 0x77)));
}
inline Bytes udp(Ep from, Ep to) { return frame_of(udp_ip(from, to)); }
inline Bytes tcp(Ep from, Ep to, uint8_t flags = kAck) { return frame_of(tcp_ip(from, to, flags)); }
inline Bytes echo(uint32_t from, uint32_t to, uint16_t id, uint8_t type = 8) {
  return frame_of(echo_ip(from, to, id, type));
}
inline Bytes icmp_error(uint32_t from, uint32_t to, const Bytes& quoted_ip, size_t quote_bytes,
                        uint8_t type = 3) {
  const Bytes quote(quoted_ip.begin(),
                    quoted_ip.begin() + static_cast<long>(std::min(quote_bytes, quoted_ip.size())));
  return frame_of(ipv4({.src = from, .dst = to, .proto = 1}, icmp_part(type, 1, 0, quote)));
}

inline const uint8_t* ip_of(const Bytes& frame) { return frame.data() + net::kEthBytes; }
inline const uint8_t* l4_of(const Bytes& frame) {
  return ip_of(frame) + (ip_of(frame)[0] & 15U) * 4;
}
inline Ep src_of(const uint8_t* ip) {
  const uint8_t* l4 = ip + (ip[0] & 15U) * 4;
  return {net::load32(ip + 12), net::load16(l4 + (ip[9] == 1 ? 4 : 0))};
}
inline Ep dst_of(const uint8_t* ip) {
  const uint8_t* l4 = ip + (ip[0] & 15U) * 4;
  return {net::load32(ip + 16), net::load16(l4 + (ip[9] == 1 ? 4 : 2))};
}
inline Ep src_of(const Bytes& frame) { return src_of(ip_of(frame)); }
inline Ep dst_of(const Bytes& frame) { return dst_of(ip_of(frame)); }
inline const uint8_t* quote_of(const Bytes& frame) { return l4_of(frame) + 8; }

// Empty when every checksum of an unfragmented packet is right; a quoted one's only if whole.
inline std::string wrong_sums(const uint8_t* ip, uint32_t room_bytes) {
  const uint32_t header = (ip[0] & 15U) * 4;
  const uint32_t total = net::load16(ip + 2);
  if (net::checksum_finish(net::checksum_add(ip, header)) != 0) return "IPv4 header checksum";
  if (total > room_bytes) return "";
  const uint8_t* l4 = ip + header;
  const uint8_t proto = ip[9];
  if (proto == 17 && net::load16(l4 + 6) == 0) return "";
  if ((net::load16(ip + 6) & 0x3fff) == 0 && sum_of(ip, l4, total - header, proto) != 0)
    return "transport checksum of protocol " + std::to_string(proto);
  if (proto == 1 && (l4[0] == 3 || l4[0] == 11 || l4[0] == 12)) {
    const std::string inner = wrong_sums(l4 + 8, total - header - 8);
    return inner.empty() ? "" : "quoted " + inner;
  }
  return "";
}
inline std::string wrong_sums(const Bytes& frame) {
  return wrong_sums(ip_of(frame), static_cast<uint32_t>(frame.size()) - net::kEthBytes);
}

}  // namespace batchplane::nattest
