// SPDX-License-Identifier: BSD-3-Clause
// net.h - header layouts, byte order, addresses as text, and the Internet checksum.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace batchplane::net {

inline uint16_t be16(uint16_t x) { return __builtin_bswap16(x); }
inline uint32_t be32(uint32_t x) { return __builtin_bswap32(x); }

// Unaligned loads and stores in network order.
inline uint16_t load16(const uint8_t* p) {
  uint16_t x;
  std::memcpy(&x, p, 2);
  return be16(x);
}
inline uint32_t load32(const uint8_t* p) {
  uint32_t x;
  std::memcpy(&x, p, 4);
  return be32(x);
}
inline void store16(uint8_t* p, uint16_t x) {
  x = be16(x);
  std::memcpy(p, &x, 2);
}
inline void store32(uint8_t* p, uint32_t x) {
  x = be32(x);
  std::memcpy(p, &x, 4);
}

inline constexpr uint32_t kEthBytes = 14;
inline constexpr uint32_t kIpv4Bytes = 20;
inline constexpr uint16_t kTypeIpv4 = 0x0800;
inline constexpr uint16_t kTypeArp = 0x0806;
inline constexpr uint16_t kTypeVlan = 0x8100;
inline constexpr uint16_t kTypeIpv6 = 0x86dd;

inline constexpr uint8_t kProtoIcmp = 1;
inline constexpr uint8_t kTcpFin = 1;
inline constexpr uint8_t kTcpSyn = 2;
inline constexpr uint8_t kTcpRst = 4;
inline constexpr uint8_t kProtoTcp = 6;
inline constexpr uint8_t kProtoUdp = 17;

// Byte offsets within an IPv4 header.
inline constexpr uint32_t kIpTotalLength = 2;
inline constexpr uint32_t kIpFragment = 6;
inline constexpr uint32_t kIpTtl = 8;
inline constexpr uint32_t kIpProto = 9;
inline constexpr uint32_t kIpChecksum = 10;
inline constexpr uint32_t kIpSrc = 12;
inline constexpr uint32_t kIpDst = 16;

using Mac = std::array<uint8_t, 6>;

struct Prefix4 {
  uint32_t address = 0;  // host order, host bits zero
  uint8_t length = 0;    // 0..32
  auto operator<=>(const Prefix4&) const = default;
};

inline uint32_t mask4(uint32_t length) { return length == 0 ? 0 : ~0U << (32 - length); }

// Host order. Every parser returns nothing for anything but the plain notation.
std::optional<uint32_t> parse_ipv4(const std::string& text);
std::optional<Prefix4> parse_prefix4(const std::string& text);  // host bits must be zero
std::optional<Prefix4> parse_interface_address(
    const std::string& text);  // address kept, e.g. 10.0.0.1/24
std::optional<Mac> parse_mac(const std::string& text);
std::string format_ipv4(uint32_t address);
std::string format_prefix4(const Prefix4& prefix);
std::string format_mac(const Mac& mac);

// One's-complement sum over n bytes (not inverted); `seed` is the sum so far.
uint32_t checksum_add(const uint8_t* data, uint32_t n_bytes, uint32_t seed = 0);
// Folds and inverts a sum into the checksum field's value, host order.
inline uint16_t checksum_finish(uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

}  // namespace batchplane::net
