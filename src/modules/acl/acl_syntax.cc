// SPDX-License-Identifier: BSD-3-Clause
// acl_syntax.cc - parses prefixes, numbers and port ranges of access rules.
#include "modules/acl/acl_syntax.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/net.h"

namespace batchplane {
namespace {

void clear_host_bits(AclPrefix& prefix) {
  for (uint32_t i = 0; i < prefix.bytes.size(); ++i) {
    const uint32_t kept_bits = prefix.length <= i * 8 ? 0 : std::min(prefix.length - i * 8, 8U);
    prefix.bytes[i] &= static_cast<uint8_t>(0xff00U >> kept_bits);
  }
}

std::string address_text(AclFamily family, const AclPrefix& prefix) {
  char text[INET6_ADDRSTRLEN] = {};
  const int af = family == AclFamily::kIpv6 ? AF_INET6 : AF_INET;
  inet_ntop(af, prefix.bytes.data(), text, sizeof text);
  return text;
}

bool covers_prefix(const AclPrefix& wide, const AclPrefix& narrow) {
  if (wide.length > narrow.length) return false;
  const uint32_t whole = wide.length / 8;
  if (std::memcmp(wide.bytes.data(), narrow.bytes.data(), whole) != 0) return false;
  const uint32_t rest_bits = wide.length % 8;
  return rest_bits == 0 || ((wide.bytes[whole] ^ narrow.bytes[whole]) >> (8 - rest_bits)) == 0;
}

bool covers_ports(const AclPorts& wide, const AclPorts& narrow) {
  return wide.first <= narrow.first && narrow.last <= wide.last;
}

bool covers_bits(uint8_t wide, uint8_t wide_mask, uint8_t narrow, uint8_t narrow_mask) {
  return (wide_mask & ~narrow_mask) == 0 && ((wide ^ narrow) & wide_mask) == 0;
}

}  // namespace

bool AclMatch::covers(const AclMatch& other) const {
  return (family == AclFamily::kAny || family == other.family) && covers_prefix(dst, other.dst) &&
         covers_prefix(src, other.src) &&
         covers_bits(proto, proto_mask, other.proto, other.proto_mask) &&
         covers_ports(dst_ports, other.dst_ports) && covers_ports(src_ports, other.src_ports) &&
         covers_bits(tcp_flags, tcp_flags_mask, other.tcp_flags, other.tcp_flags_mask);
}

std::optional<uint32_t> parse_acl_number(const std::string& text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  const char* begin = text.data() + (is_hex ? 2 : 0);
  const char* end = text.data() + text.size();
  uint32_t number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number, is_hex ? 16 : 10);
  if (error != std::errc() || stop != end || begin == end) return std::nullopt;
  return number;
}

AclAddress parse_acl_address(const std::string& text, const std::string& where) {
  const size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  AclAddress found;
  if (inet_pton(AF_INET, address.c_str(), found.prefix.bytes.data()) == 1) {
    found.family = AclFamily::kIpv4;
  } else if (inet_pton(AF_INET6, address.c_str(), found.prefix.bytes.data()) == 1) {
    found.family = AclFamily::kIpv6;
  } else {
    throw ConfigError("'" + text + "' is no prefix", where, "such as 10.0.0.0/8, 2001:db8::/32");
  }
  const uint32_t longest = found.family == AclFamily::kIpv4 ? 32 : 128;
  const auto length = slash == std::string::npos ? std::optional<uint32_t>(longest)
                                                 : parse_acl_number(text.substr(slash + 1));
  if (!length || *length > longest) {
    throw ConfigError("'" + text + "' has no prefix length from 0 to " + std::to_string(longest),
                      where);
  }
  found.prefix.length = static_cast<uint8_t>(*length);
  AclPrefix clean = found.prefix;
  clear_host_bits(clean);
  if (clean != found.prefix) {
    throw ConfigError("'" + text + "' has host bits set", where,
                      "write " + format_acl_prefix(found.family, clean));
  }
  return found;
}

std::string format_acl_prefix(AclFamily family, const AclPrefix& prefix) {
  return address_text(family, prefix) + "/" + std::to_string(prefix.length);
}

AclPorts make_acl_ports(uint32_t first, uint32_t last, const std::string& where) {
  if (first > 0xffff || last > 0xffff) {
    throw ConfigError("port " + std::to_string(std::max(first, last)) + " is out of range", where,
                      "0 to 65535");
  }
  if (first > last) {
    throw ConfigError(
        "the port range " + std::to_string(first) + "-" + std::to_string(last) + " is upside down",
        where, "write " + std::to_string(last) + "-" + std::to_string(first));
  }
  return {static_cast<uint16_t>(first), static_cast<uint16_t>(last)};
}

void settle_acl_match(AclMatch& match, const AclAddress& src, const AclAddress& dst,
                      const std::string& where) {
  if (src.family != AclFamily::kAny && dst.family != AclFamily::kAny && src.family != dst.family) {
    throw ConfigError("source and destination are of different IP versions", where,
                      "make it two rules");
  }
  match.family = std::max(src.family, dst.family);
  match.src = src.prefix;
  match.dst = dst.prefix;
  if (match.tcp_flags_mask == 0) return;
  if (match.proto_mask == 0) {
    match.proto = net::kProtoTcp;
    match.proto_mask = 0xff;
  }
  if (match.proto != net::kProtoTcp || match.proto_mask != 0xff) {
    throw ConfigError("TCP flags are asked of another protocol", where, "use proto: tcp");
  }
}

}  // namespace batchplane
