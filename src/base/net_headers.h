// SPDX-License-Identifier: BSD-3-Clause
// net_headers.h - Ethernet, ARP, IP, ICMP, UDP and TCP headers as views over the bytes of a frame; fields are
// named as in their standards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/big_endian.h"
#include "base/net6.h"

namespace batchplane {

// A view may start at any byte: its fields have alignment 1. The caller has checked that the packet is long
// enough.
template <typename Header>
concept HeaderView = alignof(Header) == 1 && std::is_trivially_copyable_v<Header>;

template <HeaderView Header>
[[nodiscard]] inline Header& header_at(uint8_t* p) {
  return *reinterpret_cast<Header*>(p);
}
template <HeaderView Header>
[[nodiscard]] inline const Header& header_at(const uint8_t* p) {
  return *reinterpret_cast<const Header*>(p);
}
template <HeaderView Header>
[[nodiscard]] inline uint8_t* bytes_of(Header& header) {
  return reinterpret_cast<uint8_t*>(&header);
}
template <HeaderView Header>
[[nodiscard]] inline const uint8_t* bytes_of(const Header& header) {
  return reinterpret_cast<const uint8_t*>(&header);
}
// The header that follows this one; `bytes`: length of this header if it has options.
template <HeaderView Next, HeaderView Header>
[[nodiscard]] inline Next& behind(Header& header, uint32_t bytes = sizeof(Header)) {
  return header_at<Next>(bytes_of(header) + bytes);
}
template <HeaderView Next, HeaderView Header>
[[nodiscard]] inline const Next& behind(const Header& header, uint32_t bytes = sizeof(Header)) {
  return header_at<Next>(bytes_of(header) + bytes);
}

namespace net {

inline constexpr uint32_t kMacPairBytes = 12;
inline constexpr uint32_t kVlanTagBytes = 4;
inline constexpr uint32_t kUdpBytes = 8;
inline constexpr uint32_t kTcpBytes = 20;  // without options
inline constexpr uint32_t kIcmpBytes = 8;
inline constexpr uint32_t kArpBytes = 28;

// Both MAC addresses of a frame, in memory order.
struct MacPair {
  uint64_t front;
  uint32_t back;
};

struct [[gnu::may_alias]] Ethernet {
  Mac dst;
  Mac src;
  Be16 type;

  // Two loads in memory order that overlap by two bytes and together cover the whole header.
  [[nodiscard]] uint64_t front_raw() const { return load64_raw(bytes_of(*this)); }
  [[nodiscard]] uint64_t back_raw() const {
    return load64_raw(bytes_of(*this) + kEthBytes - sizeof(uint64_t));
  }
  [[nodiscard]] MacPair macs() const {
    const uint8_t* const p = bytes_of(*this);
    return {load64_raw(p), load32_raw(p + sizeof(MacPair::front))};
  }
  void set_macs(const MacPair& macs) {
    uint8_t* const p = bytes_of(*this);
    store_raw(p, macs.front);
    store_raw(p + sizeof macs.front, macs.back);
  }
};
static_assert(sizeof(Ethernet) == kEthBytes && offsetof(Ethernet, type) == kMacPairBytes);

// Sits between the addresses and the type of a frame; its own `type` is that of the payload.
struct [[gnu::may_alias]] VlanTag {
  Be16 type;
  Be16 control;  // priority, drop eligible, VLAN

  [[nodiscard]] uint32_t raw() const { return load32_raw(bytes_of(*this)); }
  void set_raw(uint32_t tag) { store_raw(bytes_of(*this), tag); }
};
static_assert(sizeof(VlanTag) == kVlanTagBytes);

// Version of an IP header, 4 or 6.
inline uint32_t ip_version(const uint8_t* ip) { return *ip >> 4; }

// ARP for IPv4 over Ethernet (RFC 826).
struct [[gnu::may_alias]] Arp {
  static constexpr uint16_t kRequest = 1;
  static constexpr uint16_t kReply = 2;

  Be16 hardware_type;
  Be16 protocol_type;
  uint8_t hardware_bytes;
  uint8_t protocol_bytes;
  Be16 operation;
  Mac sender_mac;
  Be32 sender_ip;
  Mac target_mac;
  Be32 target_ip;
};
static_assert(sizeof(Arp) == kArpBytes);

struct [[gnu::may_alias]] Ipv4 {
  static constexpr uint8_t kPlain = 0x45;  // version 4, no options
  static constexpr uint16_t kDontFragment = 0x4000;
  static constexpr uint16_t kMoreFragments = 0x2000;
  static constexpr uint16_t kFragmentOffset = 0x1fff;  // in units of 8 bytes

  uint8_t version_ihl;
  uint8_t tos;
  Be16 total_length;
  Be16 id;
  Be16 fragment;  // flags and offset
  uint8_t ttl;
  uint8_t protocol;
  Be16 checksum;
  Be32 src;
  Be32 dst;

  [[nodiscard]] uint32_t version() const { return version_ihl >> 4; }
  [[nodiscard]] uint32_t header_bytes() const { return (version_ihl & 15U) * 4; }
  [[nodiscard]] bool is_fragment() const {
    return (fragment & (kMoreFragments | kFragmentOffset)) != 0;
  }
  [[nodiscard]] bool is_later_fragment() const { return (fragment & kFragmentOffset) != 0; }

  // Several fields per load, in memory order: everything before the TTL; TTL, protocol and checksum; both
  // addresses, with the source in the low half.
  [[nodiscard]] uint64_t front_raw() const { return load64_raw(bytes_of(*this)); }
  [[nodiscard]] uint32_t ttl_word_raw() const {
    return load32_raw(bytes_of(*this) + offsetof(Ipv4, ttl));
  }
  void set_ttl_word_raw(uint32_t word) { store_raw(bytes_of(*this) + offsetof(Ipv4, ttl), word); }
  [[nodiscard]] uint16_t ttl_protocol_raw() const {
    return load16_raw(bytes_of(*this) + offsetof(Ipv4, ttl));
  }
  [[nodiscard]] uint64_t addresses_raw() const {
    return load64_raw(bytes_of(*this) + offsetof(Ipv4, src));
  }
  void set_addresses_raw(uint64_t addresses) {
    store_raw(bytes_of(*this) + offsetof(Ipv4, src), addresses);
  }
};
static_assert(sizeof(Ipv4) == kIpv4Bytes);

// Fields that a transport checksum covers in addition to the segment itself (RFC 768, 9293).
struct [[gnu::may_alias]] PseudoHeader4 {
  Be32 src;
  Be32 dst;
  uint8_t zero;
  uint8_t protocol;
  Be16 length;
};
static_assert(sizeof(PseudoHeader4) == 12);

// An IPv6 address in a header.
class [[gnu::may_alias]] Be128 {
 public:
  Be128() = default;
  Be128(const Address6& x) : high_(x.high), low_(x.low) {}
  operator Address6() const { return {high_, low_}; }
  [[nodiscard]] uint8_t first_octet() const { return *bytes_of(*this); }
  [[nodiscard]] uint64_t high_raw() const { return high_.raw(); }
  [[nodiscard]] uint64_t low_raw() const { return low_.raw(); }

 private:
  Be64 high_;
  Be64 low_;
};

struct [[gnu::may_alias]] Ipv6 {
  static constexpr uint32_t kPlain = 0x60000000;  // version 6, traffic class and flow label 0
  static constexpr uint32_t kClassShift = 20;

  Be32 version_class_flow;
  Be16 payload_length;
  uint8_t next_header;
  uint8_t hop_limit;
  Be128 src;
  Be128 dst;

  [[nodiscard]] uint32_t traffic_class() const { return version_class_flow >> kClassShift & 0xff; }
  [[nodiscard]] uint32_t version() const { return ip_version(bytes_of(*this)); }
};
static_assert(sizeof(Ipv6) == kIpv6Bytes);

// Checksum of the pseudo-header (RFC 8200, 8.1); continue it with checksum_add over the upper-layer packet.
inline uint32_t pseudo_sum(const Ipv6& ip, uint32_t upper_bytes, uint8_t protocol) {
  const uint32_t rest = (upper_bytes >> 16) + (upper_bytes & 0xffff) + protocol;
  return checksum_add(bytes_of(ip.src), sizeof ip.src + sizeof ip.dst, rest);
}

// ICMP and ICMPv6.
struct [[gnu::may_alias]] Icmp {
  struct Query {
    Be16 id;
    Be16 sequence;
  };
  struct NeedsFragments {
    Be16 unused;
    Be16 mtu;
  };

  uint8_t type;
  uint8_t code;
  Be16 checksum;
  union {
    Query query;
    NeedsFragments needs_fragments;
    Be32 mtu;  // ICMPv6: packet too big
  };
};
static_assert(sizeof(Icmp) == kIcmpBytes);

// The first fields of TCP, UDP and SCTP.
struct [[gnu::may_alias]] Ports {
  Be16 src;
  Be16 dst;

  [[nodiscard]] uint32_t raw() const { return load32_raw(bytes_of(*this)); }
  void set_raw(uint32_t ports) { store_raw(bytes_of(*this), ports); }
};

struct [[gnu::may_alias]] Udp {
  Be16 src_port;
  Be16 dst_port;
  Be16 length;
  Be16 checksum;
};
static_assert(sizeof(Udp) == kUdpBytes);

struct [[gnu::may_alias]] Tcp {
  static constexpr uint8_t kPlain = kTcpBytes / 4 << 4;  // data offset without options
  static constexpr uint8_t kAck = 0x10;

  Be16 src_port;
  Be16 dst_port;
  Be32 sequence;
  Be32 acknowledgement;
  uint8_t data_offset;  // in 4-byte words, in the upper half
  uint8_t flags;
  Be16 window;
  Be16 checksum;
  Be16 urgent;

  [[nodiscard]] uint32_t header_bytes() const { return (data_offset >> 4) * 4U; }
};
static_assert(sizeof(Tcp) == kTcpBytes);

}  // namespace net
}  // namespace batchplane
