// SPDX-License-Identifier: BSD-3-Clause
// vxlan_tunnels.cc - parses tunnels and builds their headers.
#include "modules/tunnel/vxlan_tunnels.h"

#include "modules/headers/ipv4_header.h"

namespace batchplane::vxlan {
namespace {

constexpr uint32_t kMaxTunnels = 65536;

uint32_t address_in(const Value& item, const char* key, const std::string& where) {
  const auto address =
      item[key].is_string() ? net::parse_ipv4(item[key].as_string()) : std::nullopt;
  if (!address) {
    throw ConfigError("expected an IPv4 address", where + "." + key, "such as 192.0.2.1");
  }
  return *address;
}

Tunnel parse(const Value& item, const std::string& where, uint32_t /*n_gates*/) {
  check_keys(item, {"id", "vni", "remote", "local", "dst_mac", "src_mac", "vrf"}, where);
  return {.vni = static_cast<uint32_t>(int_value(item["vni"], 0, kMaxVni, where + ".vni")),
          .remote = address_in(item, "remote", where),
          .local = address_in(item, "local", where),
          .dst_mac = mac_under(item, "dst_mac", where),
          .src_mac = mac_under(item, "src_mac", where),
          .vrf = static_cast<int32_t>(int_under(item, "vrf", 0, 0xffff, -1, where))};
}

Dict format(const Tunnel& tunnel) {
  Dict item{{"vni", tunnel.vni},
            {"remote", net::format_ipv4(tunnel.remote)},
            {"local", net::format_ipv4(tunnel.local)}};
  if (tunnel.dst_mac != net::Mac{}) item["dst_mac"] = net::format_mac(tunnel.dst_mac);
  if (tunnel.src_mac != net::Mac{}) item["src_mac"] = net::format_mac(tunnel.src_mac);
  if (tunnel.vrf >= 0) item["vrf"] = tunnel.vrf;
  return item;
}

OuterHeader header_of(const Tunnel& tunnel, const OuterStyle& style) {
  OuterHeader header;
  header.headers = {
      .eth = {.dst = tunnel.dst_mac, .src = tunnel.src_mac, .type = net::kTypeIpv4},
      .ip = {.version_ihl = net::Ipv4::kPlain,
             .tos = static_cast<uint8_t>(style.dscp < 0 ? 0 : style.dscp << 2),
             .fragment = style.sets_df ? net::Ipv4::kDontFragment : uint16_t{0},
             .ttl = style.ttl,
             .protocol = net::kProtoUdp,
             .src = tunnel.local,
             .dst = tunnel.remote},
      .udp = {.dst_port = style.udp_port},
      .vxlan = {.flags = net::Vxlan::kHasVni, .vni_word = tunnel.vni << net::Vxlan::kVniShift}};
  header.sum = static_cast<uint16_t>(fold16(sum_header20(header.headers.ip)));
  header.vrf = tunnel.vrf;
  return header;
}

}  // namespace

TunnelBook make_tunnel_book() {
  return TunnelBook({.list_name = "tunnels",
                     .id_name = "id",
                     .max_id = 0xffffffff,
                     .max_items = kMaxTunnels,
                     .parse = parse,
                     .format = format});
}

TunnelTable make_table(const TunnelBook& book, const OuterStyle& style) {
  TunnelTable table;
  for (const auto& [id, tunnel] : book.items()) {
    table.index.insert_or_assign({id}, static_cast<uint32_t>(table.headers.size()));
    table.headers.push_back(header_of(tunnel, style));
  }
  return table;
}

}  // namespace batchplane::vxlan
