// SPDX-License-Identifier: BSD-3-Clause
// net6.h - IPv6: addresses and prefixes, their notation (RFC 4291, 5952), header layouts,
// checksums.
#pragma once

#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "base/net.h"

namespace batchplane::net {

inline constexpr uint32_t kIpv6Bytes = 40;
inline constexpr uint32_t kMinMtu6Bytes = 1280;  // RFC 8200: the minimum MTU of every link

// Byte offsets within an IPv6 header.
inline constexpr uint32_t kIp6PayloadLength = 4;
inline constexpr uint32_t kIp6NextHeader = 6;
inline constexpr uint32_t kIp6HopLimit = 7;
inline constexpr uint32_t kIp6Src = 8;
inline constexpr uint32_t kIp6Dst = 24;

// Next-header values. Extension headers carry their own length; upper-layer protocols do not.
inline constexpr uint8_t kNextHopByHop = 0;
inline constexpr uint8_t kNextRouting = 43;
inline constexpr uint8_t kNextFragment = 44;
inline constexpr uint8_t kNextAuthentication = 51;
inline constexpr uint8_t kProtoIcmp6 = 58;
inline constexpr uint8_t kNextNone = 59;
inline constexpr uint8_t kNextDestination = 60;
inline constexpr uint8_t kNextMobility = 135;

inline uint64_t load64(const uint8_t* p) {
  uint64_t x;
  std::memcpy(&x, p, 8);
  return __builtin_bswap64(x);
}
inline void store64(uint8_t* p, uint64_t x) {
  x = __builtin_bswap64(x);
  std::memcpy(p, &x, 8);
}

// Both halves in host order, so that addresses compare as numbers.
struct Address6 {
  uint64_t high = 0;
  uint64_t low = 0;

  auto operator<=>(const Address6&) const = default;
  Address6 operator&(const Address6& other) const { return {high & other.high, low & other.low}; }
  Address6 operator|(const Address6& other) const { return {high | other.high, low | other.low}; }
  Address6 operator^(const Address6& other) const { return {high ^ other.high, low ^ other.low}; }

  [[nodiscard]] bool is_unspecified() const { return (high | low) == 0; }
  [[nodiscard]] bool is_loopback() const { return high == 0 && low == 1; }
  [[nodiscard]] bool is_multicast() const { return high >> 56 == 0xff; }
  [[nodiscard]] bool is_link_local() const { return high >> 54 == 0xfe80 >> 6; }
  // Multicast scopes that never leave the link: ff01 and ff02.
  [[nodiscard]] bool is_link_group() const { return is_multicast() && ((high >> 48) & 15) <= 2; }
};

inline Address6 load_address6(const uint8_t* p) { return {load64(p), load64(p + 8)}; }
inline void store_address6(uint8_t* p, const Address6& address) {
  store64(p, address.high);
  store64(p + 8, address.low);
}

struct Prefix6 {
  Address6 address{};  // host bits zero, except in an interface's address
  uint8_t length = 0;  // 0..128
  auto operator<=>(const Prefix6&) const = default;
};

inline Address6 mask6(uint32_t length) {
  const auto half = [](uint32_t bits) { return bits == 0 ? 0 : ~0ULL << (64 - bits); };
  return length <= 64 ? Address6{half(length), 0} : Address6{~0ULL, half(length - 64)};
}
inline bool holds(const Prefix6& prefix, const Address6& address) {
  return ((prefix.address ^ address) & mask6(prefix.length)).is_unspecified();
}

inline constexpr Address6 kAllNodes{0xff02ULL << 48, 1};
inline constexpr Address6 kAllRouters{0xff02ULL << 48, 2};

// RFC 4291: the solicited-node group, on which a host listens for neighbour solicitations.
inline Address6 solicited_node_group(const Address6& address) {
  return {0xff02ULL << 48, 0x1ff000000ULL | (address.low & 0xffffff)};
}
// RFC 2464, 7: the MAC address of a multicast group.
inline Mac group_mac(const Address6& group) {
  const auto low = static_cast<uint32_t>(group.low);
  return {0x33,
          0x33,
          static_cast<uint8_t>(low >> 24),
          static_cast<uint8_t>(low >> 16),
          static_cast<uint8_t>(low >> 8),
          static_cast<uint8_t>(low)};
}
// fe80:: with the modified EUI-64 of the MAC (RFC 4291, appendix A).
Address6 link_local_of(const Mac& mac);

// Every parser returns nothing for anything but the plain notation.
std::optional<Address6> parse_ipv6(const std::string& text);
std::optional<Prefix6> parse_prefix6(const std::string& text);             // host bits must be zero
std::optional<Prefix6> parse_interface_address6(const std::string& text);  // address kept
// The canonical text of RFC 5952.
std::string format_ipv6(const Address6& address);
std::string format_prefix6(const Prefix6& prefix);

}  // namespace batchplane::net
