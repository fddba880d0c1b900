// SPDX-License-Identifier: BSD-3-Clause
#include "base/net.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstdio>

namespace batchplane::net {
namespace {

std::optional<Prefix4> parse_with_length(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto address = parse_ipv4(text.substr(0, slash));
  if (!address) return std::nullopt;
  const char* begin = text.data() + slash + 1;
  const char* end = text.data() + text.size();
  uint32_t length = 0;
  const auto [stop, error] = std::from_chars(begin, end, length);
  if (error != std::errc() || stop != end || begin == end || length > 32) return std::nullopt;
  return Prefix4{*address, static_cast<uint8_t>(length)};
}

}  // namespace

std::optional<uint32_t> parse_ipv4(const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

std::optional<Prefix4> parse_prefix4(const std::string& text) {
  const auto prefix = parse_with_length(text);
  if (!prefix || (prefix->address & ~mask4(prefix->length)) != 0) return std::nullopt;
  return prefix;
}

std::optional<Prefix4> parse_interface_address(const std::string& text) {
  return parse_with_length(text);
}

std::optional<Mac> parse_mac(const std::string& text) {
  Mac mac{};
  if (text.size() != 17) return std::nullopt;
  for (uint32_t i = 0; i < 6; ++i) {
    const char* begin = text.data() + 3 * i;
    uint32_t byte = 0;
    const auto [stop, error] = std::from_chars(begin, begin + 2, byte, 16);
    if (error != std::errc() || stop != begin + 2) return std::nullopt;
    if (i < 5 && text[3 * i + 2] != ':') return std::nullopt;
    mac[i] = static_cast<uint8_t>(byte);
  }
  return mac;
}

std::string format_ipv4(uint32_t address) {
  char text[16];
  std::snprintf(text, sizeof text, "%u.%u.%u.%u", address >> 24, (address >> 16) & 255,
                (address >> 8) & 255, address & 255);
  return text;
}

std::string format_prefix4(const Prefix4& prefix) {
  return format_ipv4(prefix.address) + "/" + std::to_string(prefix.length);
}

std::string format_mac(const Mac& mac) {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
                mac[4], mac[5]);
  return text;
}

uint32_t checksum_add(const uint8_t* data, uint32_t n_bytes, uint32_t seed) {
  uint64_t sum = seed;
  while (n_bytes >= 4) {
    sum += load32(data);
    data += 4;
    n_bytes -= 4;
  }
  if (n_bytes >= 2) {
    sum += load16(data);
    data += 2;
    n_bytes -= 2;
  }
  if (n_bytes == 1) sum += static_cast<uint32_t>(*data) << 8;
  while (sum >> 32 != 0) sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint32_t>(sum);
}

}  // namespace batchplane::net
