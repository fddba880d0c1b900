// SPDX-License-Identifier: BSD-3-Clause
#include "common/gateway_spec.h"

#include <cstdio>

#include "base/net.h"

namespace bench {

using batchplane::Dict;
using batchplane::List;

namespace {

constexpr const char* kRouterMacText = "11:77:0b:00:01:01";
constexpr uint32_t kFlowBase = 20U << 24;
constexpr uint32_t kOtherBase = 100U << 24;

std::string mac_text(const char* format, uint32_t i) {
  char text[18];
  std::snprintf(text, sizeof text, format, i & 255);
  return text;
}

Dict flows_of(const GatewayShape& shape, uint32_t vrf) {
  Dict flows{{"count", static_cast<int64_t>(shape.next_hops)},
             {"dst_mac", kRouterMacText},
             {"src_ip", "10.0.0.1"},
             {"dst_ip", batchplane::net::format_ipv4(kFlowBase + (vrf << 16) + 1)},
             {"dst_ip_step", 256}};
  if (shape.vrfs > 1) flows["vlan"] = static_cast<int64_t>(vrf + 1);
  return flows;
}

List routes_of(const GatewayShape& shape, uint32_t vrf) {
  List routes;
  for (uint32_t i = 0; i < shape.fib_size; ++i) {
    const uint32_t base =
        i < shape.next_hops ? kFlowBase + (vrf << 16) + (i << 8) : kOtherBase + (i << 8);
    routes.push_back(Dict{{"prefix", batchplane::net::format_prefix4({base, 24})},
                          {"gate", static_cast<int64_t>(i % shape.next_hops)}});
  }
  return routes;
}

// ACL, NAT, TTL, MAC, checksum, sink of one next hop; the name of its first module.
std::string add_chain(SpecBuilder& b, const GatewayShape& shape, const std::string& n, uint32_t i) {
  b.module("acl_" + n, "acl",
           {{"synthetic", Dict{{"style", shape.is_random_acl ? "random" : "paper"},
                               {"count", static_cast<int64_t>(shape.acl_rules)}}},
            {"default_action", "permit"}},
           shape.trigger_pkts);
  if (shape.is_stateful) {
    b.module("nat_" + n, "napt",
             {{"external", List{batchplane::net::format_ipv4((198U << 24) + (18U << 16) + i + 1)}},
              {"max_connections", 4096}});
  } else {
    b.module("nat_" + n, "static_nat",
             {{"pairs", List{Dict{{"inside", "10.0.0.0/24"}, {"outside", "20.0.0.0/24"}}}}});
  }
  b.module("ttl_" + n, "ttl");
  b.module(
      "mac_" + n, "mac_rewrite",
      {{"src", mac_text("aa:bb:bb:aa:%02x:dc", i)}, {"dst", mac_text("ee:dd:dd:aa:01:%02x", i)}});
  b.module("sum_" + n, "checksum");
  b.module("out_" + n, "sink");
  b.edge("acl_" + n, "nat_" + n).edge("nat_" + n, "ttl_" + n).edge("ttl_" + n, "mac_" + n);
  b.edge("mac_" + n, "sum_" + n).edge("sum_" + n, "out_" + n);
  return "acl_" + n;
}

}  // namespace

batchplane::PipelineSpec gateway_spec(const GatewayShape& shape) {
  SpecBuilder b;
  b.spec.name = "gateway";
  b.spec.engine.batch_pkts = 32;
  List flows;
  List vlans;
  for (uint32_t v = 0; v < shape.vrfs; ++v) {
    flows.push_back(flows_of(shape, v));
    vlans.push_back(Dict{{"vid", static_cast<int64_t>(v + 1)}, {"gate", static_cast<int64_t>(v)}});
  }
  b.module("in", "source", {{"flows", flows}, {"order", "round_robin"}});
  if (shape.vrfs > 1) {
    b.module("split", "vlan_split", {{"rules", vlans}, {"pop", true}});
    b.edge("in", "split");
  } else {
    b.module("type_check", "ether_type",
             {{"rules", List{Dict{{"ether_type", "ipv4"}, {"gate", 0}}}}});
    b.module("split", "l2_table", {{"entries", List{Dict{{"mac", kRouterMacText}, {"gate", 0}}}}});
    b.edge("in", "type_check").edge("type_check", "split");
  }
  for (uint32_t v = 0; v < shape.vrfs; ++v) {
    const std::string lookup = "lookup_" + std::to_string(v);
    b.module(lookup, "ipv4_lookup", {{"routes", routes_of(shape, v)}});
    b.edge("split", lookup, v);
    for (uint32_t i = 0; i < shape.next_hops; ++i) {
      const std::string n = std::to_string(v) + "_" + std::to_string(i);
      b.edge(lookup, add_chain(b, shape, n, v * shape.next_hops + i), i);
      b.flow("flow_" + n, {"in", lookup + ":" + std::to_string(i), "out_" + n});
    }
  }
  return b.spec;
}

}  // namespace bench
