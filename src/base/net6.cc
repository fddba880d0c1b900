// SPDX-License-Identifier: BSD-3-Clause
#include "base/net6.h"

#include <arpa/inet.h>

#include <charconv>

namespace batchplane::net {
namespace {

constexpr uint32_t kGroups = 8;

uint32_t group_of(const Address6& address, uint32_t i) {
  const uint64_t half = i < 4 ? address.high : address.low;
  return (half >> (48 - 16 * (i % 4))) & 0xffff;
}

struct Run {
  uint32_t first = kGroups;
  uint32_t n = 1;  // a single zero group is written out
};

// The longest run of zero groups; the first one among equals.
Run longest_zeros(const Address6& address) {
  Run best;
  for (uint32_t i = 0; i < kGroups; ++i) {
    uint32_t n = 0;
    while (i + n < kGroups && group_of(address, i + n) == 0) ++n;
    if (n > best.n) best = {i, n};
    if (n > 1) i += n - 1;
  }
  return best;
}

std::string hex(uint32_t group) {
  char text[8];
  const auto [end, error] = std::to_chars(text, text + sizeof text, group, 16);
  return {text, end};
}

}  // namespace

Address6 link_local_of(const Mac& mac) {
  Address6 address{0xfe80ULL << 48, 0};
  const uint8_t id[8] = {
      static_cast<uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
  address.low = load64(id);
  return address;
}

std::optional<Address6> parse_ipv6(const std::string& text) {
  uint8_t bytes[16];
  if (text.find('\0') != std::string::npos) return std::nullopt;
  if (inet_pton(AF_INET6, text.c_str(), bytes) != 1) return std::nullopt;
  return load_address6(bytes);
}

std::optional<Prefix6> parse_interface_address6(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto address = parse_ipv6(text.substr(0, slash));
  if (!address) return std::nullopt;
  const char* begin = text.data() + slash + 1;
  const char* end = text.data() + text.size();
  uint32_t length = 0;
  const auto [stop, error] = std::from_chars(begin, end, length);
  if (error != std::errc() || stop != end || begin == end || length > 128) return std::nullopt;
  return Prefix6{*address, static_cast<uint8_t>(length)};
}

std::optional<Prefix6> parse_prefix6(const std::string& text) {
  const auto prefix = parse_interface_address6(text);
  if (!prefix || (prefix->address & mask6(prefix->length)) != prefix->address) return std::nullopt;
  return prefix;
}

std::string format_ipv6(const Address6& address) {
  const Run zeros = longest_zeros(address);
  // RFC 5952, 5: IPv4-mapped addresses keep the dotted notation.
  if (address.high == 0 && address.low >> 32 == 0xffff) {
    return "::ffff:" + format_ipv4(static_cast<uint32_t>(address.low));
  }
  std::string text;
  for (uint32_t i = 0; i < kGroups; ++i) {
    if (i == zeros.first) {
      text += "::";
      i += zeros.n - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    text += hex(group_of(address, i));
  }
  return text;
}

std::string format_prefix6(const Prefix6& prefix) {
  return format_ipv6(prefix.address) + "/" + std::to_string(prefix.length);
}

}  // namespace batchplane::net
