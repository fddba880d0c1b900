// SPDX-License-Identifier: BSD-3-Clause
// vxlan_tunnels.h - tunnels by number, each with its outer headers ready to be copied.
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
  int32_t vrf = -1;  // of the network that carries the tunnel; -1: the packet's own stays
};

// What all tunnels of a module have alike.
struct OuterStyle {
  uint8_t ttl = 64;   // 0 = of the inner packet
  int32_t dscp = -1;  // -1 = of the inner packet
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

// Outer headers but for lengths, traffic class, checksum and source port; one line.
struct alignas(64) OuterHeader {
  OuterHeaders headers = {};
  uint16_t sum = 0;  // of the IPv4 header so far, as it lies in memory
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
