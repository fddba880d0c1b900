// SPDX-License-Identifier: BSD-3-Clause
// packet_summary.cc - describes the outermost headers that are complete.
#include "app/runtime/packet_summary.h"

#include <cstdio>

#include "base/net_headers.h"

namespace batchplane::app {
namespace {

std::string ipv4_text(const uint8_t* bytes, uint32_t n) {
  if (n < net::kIpv4Bytes) return "IPv4, cut short";
  const auto& ip = header_at<net::Ipv4>(bytes);
  const std::string src = net::format_ipv4(ip.src);
  const std::string dst = net::format_ipv4(ip.dst);
  const std::string ttl = ", ttl " + std::to_string(ip.ttl);
  const uint32_t header = ip.header_bytes();
  const uint8_t proto = ip.protocol;
  if (!ip.is_later_fragment() && (proto == net::kProtoUdp || proto == net::kProtoTcp) &&
      n >= header + sizeof(net::Ports)) {
    const auto& ports = behind<net::Ports>(ip, header);
    return std::string(proto == net::kProtoUdp ? "UDP " : "TCP ") + src + ":" +
           std::to_string(ports.src) + " > " + dst + ":" + std::to_string(ports.dst) + ttl;
  }
  if (proto == net::kProtoIcmp && n >= header + offsetof(net::Icmp, checksum)) {
    const auto& icmp = behind<net::Icmp>(ip, header);
    return "ICMP " + src + " > " + dst + " type " + std::to_string(icmp.type) + " code " +
           std::to_string(icmp.code) + ttl;
  }
  return "IPv4 " + src + " > " + dst + " protocol " + std::to_string(proto) + ttl;
}

std::string arp_text(const uint8_t* bytes, uint32_t n) {
  if (n < net::kArpBytes) return "ARP, cut short";
  const auto& arp = header_at<net::Arp>(bytes);
  const std::string sender = net::format_ipv4(arp.sender_ip);
  const std::string target = net::format_ipv4(arp.target_ip);
  return arp.operation == net::Arp::kRequest ? "ARP who has " + target + ", tell " + sender
                                             : "ARP " + sender + " is here";
}

}  // namespace

std::string summarize(const uint8_t* bytes, uint32_t n_bytes, uint32_t len_bytes) {
  const std::string length = ", " + std::to_string(len_bytes) + " bytes";
  if (n_bytes < net::kEthBytes) return "no Ethernet header" + length;
  uint32_t at = net::kMacPairBytes;  // of the type, or of a tag before it
  const auto type_at = [&]() -> uint16_t { return header_at<net::Be16>(bytes + at); };
  std::string tags;
  while (type_at() == net::kTypeVlan && n_bytes >= at + net::kVlanTagBytes + sizeof(net::Be16)) {
    const uint16_t control = header_at<net::VlanTag>(bytes + at).control;
    tags += "VLAN " + std::to_string(control & 0xfff) + " ";
    at += net::kVlanTagBytes;
  }
  const uint16_t type = type_at();
  at += sizeof(net::Be16);
  if (type == net::kTypeIpv4) return tags + ipv4_text(bytes + at, n_bytes - at) + length;
  if (type == net::kTypeArp) return tags + arp_text(bytes + at, n_bytes - at) + length;
  char name[32];
  snprintf(name, sizeof name, "EtherType 0x%04x", type);
  return tags + name + length;
}

}  // namespace batchplane::app
