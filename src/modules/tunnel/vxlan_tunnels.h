// SPDX-License-Identifier: BSD-3-Clause
// vxlan_tunnels.h - tunnels by ID, each with prebuilt outer headers.
#pragma once

#include <vector>

#include "base/flat_table.h"
#include "core/module/args.h"
#include "modules/common/item_book.h"
#include "modules/headers/vxlan_header.h"

namespace batchplane::vxlan {

struct Tunnel {
  uint32_t vni = 0;
  uint32_t remote = 0;
  uint32_t local = 0;
  net::Mac dst_mac{};
  net::Mac src_mac{};
  int32_t vrf = -1;  // of the underlay; -1: the packet keeps its VRF
};

// Settings shared by all tunnels of a module.
struct OuterStyle {
  uint8_t ttl = 64;   // 0: copied from the inner packet
  int32_t dscp = -1;  // -1: copied from the inner packet
  bool copies_ecn = true;
  bool sets_df = true;
  uint16_t udp_port = net::Vxlan::kPort;
};

struct [[gnu::may_alias]] OuterHeaders {
  net::Ethernet eth;
  net::Ipv4 ip;
  net::Udp udp;
  net::Vxlan vxlan;
};
static_assert(sizeof(OuterHeaders) == kOuterBytes);

// Prebuilt outer headers; lengths, traffic class, checksum and source port (and TTL and ID,
// depending on OuterStyle) are set per packet. One cache line.
struct alignas(64) OuterHeader {
  OuterHeaders headers = {};
  uint16_t sum = 0;  // partial IPv4 header sum, in memory order
  int32_t vrf = -1;
};
static_assert(sizeof(OuterHeader) == 64);

struct TunnelTable {
  FlatTable<1> index;
  std::vector<OuterHeader> headers;
};

using TunnelBook = ItemBook<Tunnel>;
[[nodiscard]] TunnelBook make_tunnel_book();
[[nodiscard]] TunnelTable make_table(const TunnelBook& book, const OuterStyle& style);

}  // namespace batchplane::vxlan
