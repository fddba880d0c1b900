// SPDX-License-Identifier: BSD-3-Clause
// nat_rewrite.h - rewrites the source or destination of an IPv4 packet, or of the packet quoted in
// an ICMP error, and updates the checksums.
#pragma once

#include <cstdint>

#include "base/net_headers.h"
#include "modules/headers/checksum_patch.h"
#include "modules/headers/ipv4_header.h"

namespace batchplane::nat {

inline constexpr uint8_t kIcmpUnreachable = 3;
inline constexpr uint8_t kIcmpSourceQuench = 4;
inline constexpr uint8_t kIcmpTimeExceeded = 11;
inline constexpr uint8_t kIcmpParameterProblem = 12;

// Offsets from the start of an IPv4 header without options.
inline constexpr uint32_t kPlainTcpChecksum = net::kIpv4Bytes + offsetof(net::Tcp, checksum);
inline constexpr uint32_t kPlainUdpChecksum = net::kIpv4Bytes + offsetof(net::Udp, checksum);
inline constexpr uint32_t kChecksumBytes = sizeof(net::Be16);

// Offset of the transport checksum in a complete, unfragmented TCP or UDP packet without IP
// options; 0 for anything else.
inline uint32_t plain_checksum_at(const net::Ipv4& ip, uint32_t len_bytes, uint32_t l3_bytes) {
  if (len_bytes < l3_bytes + kPlainUdpChecksum + kChecksumBytes) [[unlikely]]
    return 0;
  const uint64_t front = ip.front_raw();
  const uint32_t proto = ip.ttl_word_raw() >> 8 & 0xff;
  const uint32_t total_bytes = net::be16(static_cast<uint16_t>(front >> 16));
  const uint32_t at = proto == net::kProtoTcp ? kPlainTcpChecksum : kPlainUdpChecksum;
  // In memory order: version 4, no options, fragment offset 0 and no more fragments.
  const bool is_odd = (front & 0xff3f'0000'0000'00ffULL) != net::Ipv4::kPlain;
  const bool is_other = proto != net::kProtoTcp && proto != net::kProtoUdp;
  const bool is_cut = total_bytes > len_bytes - l3_bytes || total_bytes < at + kChecksumBytes;
  return (is_odd | is_other | is_cut) ? 0 : at;
}

inline bool is_icmp_error(uint8_t type) {
  return type == kIcmpUnreachable || type == kIcmpSourceQuench || type == kIcmpTimeExceeded ||
         type == kIcmpParameterProblem;
}

// An IPv4 header and the available part of the transport header; bounds have been checked.
struct PacketView {
  net::Ipv4* ip = nullptr;
  uint8_t* l4 = nullptr;
  uint32_t l4_bytes = 0;  // of the packet; 0 in later fragments
  uint8_t proto = 0;

  [[nodiscard]] bool has_bytes(uint32_t n) const { return l4_bytes >= n; }
  [[nodiscard]] uint32_t src() const { return ip->src.raw(); }
  [[nodiscard]] uint32_t dst() const { return ip->dst.raw(); }
  [[nodiscard]] net::Ports& ports() const { return header_at<net::Ports>(l4); }
  [[nodiscard]] net::Tcp& tcp() const { return header_at<net::Tcp>(l4); }
  [[nodiscard]] net::Icmp& icmp() const { return header_at<net::Icmp>(l4); }
};

enum class Fault : uint8_t { kNone, kTooShort, kVersion, kHeaderLength, kTotalLength };

// Checks a packet with `room_bytes` from its IPv4 header on.
inline Fault view_packet(net::Ipv4& ip, uint32_t room_bytes, PacketView& view) {
  if (room_bytes < net::kIpv4Bytes) return Fault::kTooShort;
  if (ip.version() != 4) return Fault::kVersion;
  const uint32_t header_bytes = ip.header_bytes();
  if (header_bytes < net::kIpv4Bytes || header_bytes > room_bytes) return Fault::kHeaderLength;
  const uint32_t total_bytes = ip.total_length;
  if (total_bytes < header_bytes || total_bytes > room_bytes) return Fault::kTotalLength;
  view = {&ip, bytes_of(ip) + header_bytes, ip.is_later_fragment() ? 0 : total_bytes - header_bytes,
          ip.protocol};
  return Fault::kNone;
}

// The packet quoted in an ICMP error: it may be truncated anywhere after its IP header.
inline bool view_quote(const PacketView& error, PacketView& quote) {
  if (error.l4_bytes < net::kIcmpBytes + net::kIpv4Bytes) return false;
  auto& ip = behind<net::Ipv4>(error.icmp());
  const uint32_t room_bytes = error.l4_bytes - net::kIcmpBytes;
  const uint32_t header_bytes = ip.header_bytes();
  if (ip.version() != 4 || header_bytes < net::kIpv4Bytes || header_bytes > room_bytes)
    return false;
  const uint32_t total_bytes = ip.total_length;
  if (total_bytes < header_bytes) return false;
  const uint32_t end = total_bytes < room_bytes ? total_bytes : room_bytes;
  quote = {&ip, bytes_of(ip) + header_bytes, ip.is_later_fragment() ? 0 : end - header_bytes,
           ip.protocol};
  return true;
}

// Offset of the checksum in the transport header; 0 for protocols without one or unknown.
inline uint32_t checksum_offset(uint8_t proto) {
  if (proto == net::kProtoTcp) return offsetof(net::Tcp, checksum);
  if (proto == net::kProtoUdp) return offsetof(net::Udp, checksum);
  return proto == net::kProtoIcmp ? offsetof(net::Icmp, checksum) : 0;
}

enum class End : uint8_t { kSrc, kDst };

// Sets the source or destination address and, with `set_port`, the port (ICMP: the query's id).
// Updates the IP checksum, and the transport checksum if it is present. Returns the change of the
// sum over all bytes, for an enclosing ICMP error.
inline uint32_t rewrite_end(const PacketView& view, End end, uint32_t address_raw, bool set_port,
                            uint16_t port_raw) {
  net::Be32& address = end == End::kSrc ? view.ip->src : view.ip->dst;
  const uint32_t by_address = fold32(growth32(address.raw(), address_raw));
  address.set_raw(address_raw);
  const uint16_t ip_sum = view.ip->checksum.raw();
  const uint16_t new_ip_sum = mended(ip_sum, by_address);
  view.ip->checksum.set_raw(new_ip_sum);
  uint32_t growth = by_address + growth16(ip_sum, new_ip_sum);
  const bool is_icmp = view.proto == net::kProtoIcmp;
  uint32_t by_all = is_icmp ? 0 : by_address;
  if (set_port) {
    net::Be16& port = is_icmp            ? view.icmp().query.id
                      : end == End::kSrc ? view.ports().src
                                         : view.ports().dst;
    const uint32_t by_port = growth16(port.raw(), port_raw);
    port.set_raw(port_raw);
    by_all += by_port;
    growth += by_port;
  }
  const uint32_t at = checksum_offset(view.proto);
  if (at != 0 && by_all != 0 && view.has_bytes(at + kChecksumBytes)) {
    auto& checksum = header_at<net::Be16>(view.l4 + at);
    const uint16_t sum = checksum.raw();
    by_all = fold32(by_all);
    const uint16_t new_sum =
        view.proto == net::kProtoUdp ? mended_udp(sum, by_all) : mended(sum, by_all);
    checksum.set_raw(new_sum);
    growth += growth16(sum, new_sum);
  }
  return fold32(growth);
}

// The same for the packet quoted in an ICMP error; also updates the error's checksum.
inline void rewrite_quote(const PacketView& error, const PacketView& quote, End end,
                          uint32_t address_raw, bool set_port, uint16_t port_raw) {
  const uint32_t growth = rewrite_end(quote, end, address_raw, set_port, port_raw);
  net::Be16& checksum = error.icmp().checksum;
  checksum.set_raw(mended(checksum.raw(), growth));
}

}  // namespace batchplane::nat
