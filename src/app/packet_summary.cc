// SPDX-License-Identifier: BSD-3-Clause
// packet_summary.cc - names the outermost headers that are whole.
#include "app/packet_summary.h"

#include <cstdio>

#include "base/net.h"

namespace batchplane::app {
namespace {

constexpr uint32_t kArpBytes = 28;
constexpr uint32_t kArpOperation = 6;
constexpr uint32_t kArpSender = 14;
constexpr uint32_t kArpTarget = 24;

std::string ipv4_text(const uint8_t* ip, uint32_t n) {
  if (n < net::kIpv4Bytes) return "IPv4, cut short";
  const std::string src = net::format_ipv4(net::load32(ip + net::kIpSrc));
  const std::string dst = net::format_ipv4(net::load32(ip + net::kIpDst));
  const std::string ttl = ", ttl " + std::to_string(ip[net::kIpTtl]);
  const uint32_t header = 4U * (ip[0] & 15U);
  const uint8_t proto = ip[net::kIpProto];
  const bool is_first = (net::load16(ip + net::kIpFragment) & 0x1fff) == 0;
  if (is_first && (proto == net::kProtoUdp || proto == net::kProtoTcp) && n >= header + 4) {
    return std::string(proto == net::kProtoUdp ? "UDP " : "TCP ") + src + ":" +
           std::to_string(net::load16(ip + header)) + " > " + dst + ":" +
           std::to_string(net::load16(ip + header + 2)) + ttl;
  }
  if (proto == net::kProtoIcmp && n >= header + 2) {
    return "ICMP " + src + " > " + dst + " type " + std::to_string(ip[header]) + " code " +
           std::to_string(ip[header + 1]) + ttl;
  }
  return "IPv4 " + src + " > " + dst + " protocol " + std::to_string(proto) + ttl;
}

std::string arp_text(const uint8_t* arp, uint32_t n) {
  if (n < kArpBytes) return "ARP, cut short";
  const std::string sender = net::format_ipv4(net::load32(arp + kArpSender));
  const std::string target = net::format_ipv4(net::load32(arp + kArpTarget));
  return net::load16(arp + kArpOperation) == 1 ? "ARP who has " + target + ", tell " + sender
                                               : "ARP " + sender + " is here";
}

}  // namespace

std::string summarize(const uint8_t* bytes, uint32_t n_bytes, uint32_t len_bytes) {
  const std::string length = ", " + std::to_string(len_bytes) + " bytes";
  if (n_bytes < net::kEthBytes) return "no Ethernet header" + length;
  uint32_t at = 12;
  uint16_t type = net::load16(bytes + at);
  std::string tags;
  while (type == net::kTypeVlan && n_bytes >= at + 6) {
    tags += "VLAN " + std::to_string(net::load16(bytes + at + 2) & 0xfff) + " ";
    at += 4;
    type = net::load16(bytes + at);
  }
  at += 2;
  if (type == net::kTypeIpv4) return tags + ipv4_text(bytes + at, n_bytes - at) + length;
  if (type == net::kTypeArp) return tags + arp_text(bytes + at, n_bytes - at) + length;
  char name[32];
  snprintf(name, sizeof name, "EtherType 0x%04x", type);
  return tags + name + length;
}

}  // namespace batchplane::app
