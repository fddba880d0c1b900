// SPDX-License-Identifier: BSD-3-Clause
#include "modules/acl/acl_linear.h"

#include <algorithm>
#include <cstring>

#include "base/net_headers.h"

namespace batchplane {
namespace {

// Offsets in a header without options.
struct Header {
  const uint8_t* proto;
  const uint8_t* src;
  const uint8_t* dst;
  const uint8_t* transport;
};

Header parts_of(AclFamily family, const uint8_t* header) {
  if (family == AclFamily::kIpv6) {
    const auto& ip = header_at<net::Ipv6>(header);
    return {&ip.next_header, bytes_of(ip.src), bytes_of(ip.dst), header + net::kIpv6Bytes};
  }
  const auto& ip = header_at<net::Ipv4>(header);
  return {&ip.protocol, bytes_of(ip.src), bytes_of(ip.dst), header + net::kIpv4Bytes};
}

bool is_in(const AclPrefix& prefix, const uint8_t* address) {
  const uint32_t whole = prefix.length / 8;
  if (std::memcmp(prefix.bytes.data(), address, whole) != 0) return false;
  const uint32_t rest_bits = prefix.length % 8;
  return rest_bits == 0 || ((prefix.bytes[whole] ^ address[whole]) >> (8 - rest_bits)) == 0;
}

bool is_in(const AclPorts& ports, uint16_t port) {
  return ports.first <= port && port <= ports.last;
}

bool matches(const AclMatch& match, const Header& header, bool reads_ports) {
  if (((*header.proto ^ match.proto) & match.proto_mask) != 0) return false;
  if (!is_in(match.src, header.src) || !is_in(match.dst, header.dst)) return false;
  if (!reads_ports || !match.needs_ports()) return true;
  const auto& tcp = header_at<net::Tcp>(header.transport);
  return is_in(match.src_ports, tcp.src_port) && is_in(match.dst_ports, tcp.dst_port) &&
         (match.tcp_flags_mask == 0 || ((tcp.flags ^ match.tcp_flags) & match.tcp_flags_mask) == 0);
}

}  // namespace

AclLinear::AclLinear(AclFamily headers, bool reads_ports, const std::vector<AclEntry>& entries)
    : headers_(headers), reads_ports_(reads_ports) {
  for (const AclEntry& entry : entries) rules_.emplace_back(*entry.match, entry.id);
}

void AclLinear::classify(const uint8_t* const* headers, uint32_t* ids, uint32_t n) const noexcept {
  for (uint32_t i = 0; i < n; ++i) {
    const Header header = parts_of(headers_, headers[i]);
    const auto first = std::ranges::find_if(
        rules_, [&](const auto& rule) { return matches(rule.first, header, reads_ports_); });
    ids[i] = first == rules_.end() ? 0 : first->second;
  }
}

}  // namespace batchplane
