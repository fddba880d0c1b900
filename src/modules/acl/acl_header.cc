// SPDX-License-Identifier: BSD-3-Clause
// acl_header.cc - handles options, extension headers, fragments and short packets, one packet at a
// time.
#include "modules/acl/acl_header.h"

#include <algorithm>
#include <cstring>

#include "modules/acl/acl_classifier.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/ipv6_header.h"

namespace batchplane {
namespace {

static_assert(net::kIpv6Bytes + kAclFlagsBytes <= kAclRoomBytes);

struct Parsed {
  AclClass question;
  uint32_t proto = 0;
  uint32_t transport_at = 0;  // offset from the network header; 0 = portless
};

// Copies the `fixed` bytes of the IP header and, directly behind them, the transport header to
// `room`; zero-filled after the end of the packet.
const uint8_t* copy_key(const uint8_t* ip, uint32_t fixed, uint32_t proto_at, const Parsed& parsed,
                        uint32_t total_bytes, uint8_t* room) {
  std::memset(room, 0, kAclRoomBytes);
  std::memcpy(room, ip, fixed);
  room[proto_at] = static_cast<uint8_t>(parsed.proto);
  if (parsed.transport_at != 0) {
    const uint32_t there = std::min(total_bytes - parsed.transport_at, kAclFlagsBytes);
    std::memcpy(room + fixed, ip + parsed.transport_at, there);
  }
  return room;
}

Parsed with_transport(AclClass with_ports, AclClass portless, uint32_t proto, uint32_t at,
                      uint32_t total_bytes) {
  const uint32_t min_bytes = acl_transport_bytes(proto);
  if (min_bytes == 0) return {portless, proto};
  if (total_bytes < at + min_bytes) return {AclClass::kTooShort};
  return {with_ports, proto, at};
}

Parsed parse_ipv4(const net::Ipv4& ip, uint32_t total_bytes, bool needs_ports) {
  const uint32_t header_bytes = ip.header_bytes();
  const uint32_t proto = ip.protocol;
  if (header_bytes < net::kIpv4Bytes || header_bytes > total_bytes) return {AclClass::kBadHeader};
  if (!needs_ports) return {AclClass::kIpv4Portless, proto};
  const uint32_t fragment = ip.fragment & net::Ipv4::kFragmentOffset;
  // RFC 3128: it could overwrite the TCP flags of a first fragment that was permitted.
  if (fragment == 1 && proto == net::kProtoTcp) return {AclClass::kTinyFragment};
  if (fragment != 0) return {AclClass::kIpv4Portless, proto};
  return with_transport(AclClass::kIpv4, AclClass::kIpv4Portless, proto, header_bytes, total_bytes);
}

Parsed parse_ipv6(const net::Ipv6& ip, uint32_t total_bytes, bool needs_ports) {
  // AH is not skipped, since rules can match it as a protocol.
  const Extensions6 chain = walk_extensions6<CommonExtensions>(ip, total_bytes);
  const uint32_t proto = chain.protocol;
  if (chain.end == Extensions6::End::kTruncated) return {AclClass::kTooShort};
  if (!chain.is_first_fragment) return {AclClass::kIpv6Portless, proto};
  if (chain.n_headers == kMaxExtensionHeaders) return {AclClass::kBadHeader};
  if (!needs_ports) return {AclClass::kIpv6Portless, proto};
  return with_transport(AclClass::kIpv6, AclClass::kIpv6Portless, proto, chain.offset_bytes,
                        total_bytes);
}

}  // namespace

AclKey find_acl_key(Packet& pkt, AclNeeds needs, uint8_t* room) noexcept {
  const uint32_t l3 = l3_offset_of(pkt);
  const uint32_t len_bytes = pkt.len_bytes();
  const uint8_t* ip = pkt.data() + l3;
  // An L3 offset set by an earlier module implies IP; otherwise the Ethernet type decides.
  const bool has_type = l3 == net::kEthBytes;
  if (len_bytes <= l3) return {AclClass::kTooShort};
  const uint32_t type = has_type ? uint32_t{type_before(pkt, l3)} : 0;
  const uint32_t version = net::ip_version(ip);
  const uint32_t room_bytes = len_bytes - l3;
  if (has_type ? type == net::kTypeIpv4 : version == 4) {
    if (room_bytes < net::kIpv4Bytes) return {AclClass::kTooShort};
    if (version != 4) return {AclClass::kBadHeader};
    const auto& ip4 = header_at<net::Ipv4>(ip);
    const uint32_t total_bytes = ip4.total_length;
    if (total_bytes > room_bytes) return {AclClass::kTooShort};
    const Parsed parsed = parse_ipv4(ip4, total_bytes, needs.ipv4_transport_bytes != 0);
    const bool lies_well = parsed.question != AclClass::kIpv4 ||
                           (parsed.transport_at == net::kIpv4Bytes &&
                            room_bytes >= net::kIpv4Bytes + needs.ipv4_transport_bytes);
    if (lies_well) return {parsed.question, ip};
    return {parsed.question, copy_key(ip, net::kIpv4Bytes, offsetof(net::Ipv4, protocol), parsed,
                                      total_bytes, room)};
  }
  if (has_type ? type == net::kTypeIpv6 : version == 6) {
    if (room_bytes < net::kIpv6Bytes) return {AclClass::kTooShort};
    if (version != 6) return {AclClass::kBadHeader};
    const auto& ip6 = header_at<net::Ipv6>(ip);
    const uint32_t total_bytes = net::kIpv6Bytes + ip6.payload_length;
    if (total_bytes > room_bytes) return {AclClass::kTooShort};
    const Parsed parsed = parse_ipv6(ip6, total_bytes, needs.ipv6_transport_bytes != 0);
    const bool lies_well = parsed.proto == ip6.next_header &&
                           (parsed.question != AclClass::kIpv6 ||
                            (parsed.transport_at == net::kIpv6Bytes &&
                             room_bytes >= net::kIpv6Bytes + needs.ipv6_transport_bytes));
    if (lies_well || static_cast<uint32_t>(parsed.question) >= kAclQuestions) {
      return {parsed.question, ip};
    }
    return {parsed.question, copy_key(ip, net::kIpv6Bytes, offsetof(net::Ipv6, next_header), parsed,
                                      total_bytes, room)};
  }
  return {AclClass::kOther};
}

}  // namespace batchplane
