// SPDX-License-Identifier: BSD-3-Clause
// napt_params.cc - the parameters of a napt module; timeouts default to those of the RFCs.
#include "base/error.h"
#include "modules/nat/napt_commands.h"

namespace batchplane::nat {
namespace {

constexpr double kMaxNs = 86'400e9;

ParamSpec time_param(const char* name, int64_t default_ns, const char* help) {
  return {.name = name,
          .type = ParamType::kInt,
          .unit = "ns",
          .default_value = default_ns,
          .help = help,
          .min = 1e9,
          .max = kMaxNs};
}
ParamSpec count_param(const char* name, const char* unit, int64_t default_value, double min,
                      double max, const char* help) {
  return {.name = name,
          .type = ParamType::kInt,
          .unit = unit,
          .default_value = default_value,
          .help = help,
          .min = min,
          .max = max};
}

Filtering filtering_of(const std::string& name) {
  if (name == "endpoint_independent") return Filtering::kEndpoint;
  return name == "address_dependent" ? Filtering::kAddress : Filtering::kAddressAndPort;
}

NaptStateRules rules_of(const Args& args) {
  constexpr uint8_t kBoth = 3;
  const auto limit = [&](const char* name) { return ticks_for(args.u64(name)); };
  const uint8_t udp_refresh = args.flag("udp_inbound_refresh") ? kBoth : kSeenOut;
  NaptStateRules rules;
  const auto rule = [&](NaptState state) -> NaptStateRule& {
    return rules[static_cast<uint32_t>(state)];
  };
  rule(NaptState::kUdpNew) = {limit("udp_timeout_ns"), udp_refresh, kBoth};
  rule(NaptState::kUdp) = rule(NaptState::kUdpNew);
  rule(NaptState::kUdpShort) = {limit("udp_short_timeout_ns"), udp_refresh, kBoth};
  rule(NaptState::kIcmp) = {limit("icmp_timeout_ns"), kBoth, 0};
  rule(NaptState::kTcpOpening) = {limit("tcp_transitory_timeout_ns"), kBoth, 0};
  rule(NaptState::kTcpOpen) = {limit("tcp_established_timeout_ns"), kBoth, kBoth};
  rule(NaptState::kTcpClosing) = rule(NaptState::kTcpOpening);
  return rules;
}

}  // namespace

std::vector<ParamSpec> napt_params() {
  return {
      {.name = "external",
       .type = ParamType::kList,
       .help = "external addresses: a list of addresses and prefixes, at most 1024 in all",
       .min = 1},
      {.name = "inside",
       .type = ParamType::kList,
       .default_value = List{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"},
       .help = "prefixes of inside hosts: their packets for external addresses are hairpinned"},
      count_param("port_min", "", 1024, 1, 65535, "lowest external TCP and UDP port in use"),
      count_param("port_max", "", 65535, 1, 65535, "highest external TCP and UDP port in use"),
      count_param("max_connections", "connections", 65536, 16, NaptTable::kMaxConnections,
                  "size of the table; takes about 200 bytes each, all at the start"),
      count_param("max_per_host", "connections", 0, 0, NaptTable::kMaxConnections,
                  "connections that one inside host may have; 0 = no limit"),
      {.name = "filtering",
       .type = ParamType::kString,
       .default_value = "endpoint_independent",
       .help = "who may send to an inside host's mapping (RFC 4787, 5): anybody, addresses it has "
               "sent to, or addresses and ports it has sent to",
       .choices = {"endpoint_independent", "address_dependent", "address_and_port_dependent"}},
      {.name = "when_full",
       .type = ParamType::kString,
       .default_value = "drop",
       .help = "a new connection without room is dropped, or the oldest transitory one ends for it",
       .choices = {"drop", "evict_transitory"}},
      {.name = "unmapped",
       .type = ParamType::kString,
       .default_value = "drop",
       .help =
           "packets for an external address that no mapping has: dropped, or to gate local, for "
           "the router's own services",
       .choices = {"drop", "local"}},
      time_param("udp_timeout_ns", 300'000'000'000, "UDP without a packet (RFC 4787, REQ-5)"),
      time_param("udp_short_timeout_ns", 30'000'000'000, "the same for udp_short_ports"),
      {.name = "udp_short_ports",
       .type = ParamType::kList,
       .default_value = List{},
       .help = "remote UDP ports with short exchanges, such as [53] (RFC 4787, REQ-5a)"},
      {.name = "udp_inbound_refresh",
       .type = ParamType::kBool,
       .default_value = true,
       .help = "packets from outside keep UDP mappings alive, too (RFC 4787, REQ-6)"},
      time_param("tcp_established_timeout_ns", 7'440'000'000'000,
                 "established TCP without a packet (RFC 5382, REQ-5)"),
      time_param("tcp_transitory_timeout_ns", 240'000'000'000,
                 "TCP that is opening or closing, without a packet (RFC 5382, REQ-5)"),
      time_param("icmp_timeout_ns", 60'000'000'000, "ICMP queries (RFC 5508, REQ-2)"),
      {.name = "tcp_loose",
       .type = ParamType::kBool,
       .default_value = true,
       .help = "TCP packets without SYN open connections, too: those from before a restart go on"},
      time_param("fragment_timeout_ns", 30'000'000'000, "later fragments after the first"),
      count_param("max_fragments", "pkts", 1024, 4, 1'000'000,
                  "fragmented packets that are known at a time; the oldest are forgotten"),
  };
}

NaptConfig parse_config(const Args& args) {
  NaptConfig config;
  config.limits = {.max_connections = args.u32("max_connections"),
                   .max_per_host = args.u32("max_per_host"),
                   .may_evict = args.string("when_full") == "evict_transitory",
                   .filtering = filtering_of(args.string("filtering"))};
  config.rules = rules_of(args);
  config.fragment_limit = ticks_for(args.u64("fragment_timeout_ns"));
  config.is_unmapped_local = args.string("unmapped") == "local";
  config.is_tcp_loose = args.flag("tcp_loose");
  if (args.u32("port_min") > args.u32("port_max")) {
    throw ConfigError("port_min is above port_max", args.where() + ".port_min", "exchange them");
  }
  const List& inside = args.list("inside");
  for (size_t i = 0; i < inside.size(); ++i) {
    const auto prefix =
        inside[i].is_string() ? net::parse_prefix4(inside[i].as_string()) : std::nullopt;
    if (!prefix) {
      throw ConfigError("expected an IPv4 prefix",
                        args.where() + ".inside[" + std::to_string(i) + "]", "such as 10.0.0.0/8");
    }
    config.inside.push_back({net::be32(prefix->address), net::be32(net::mask4(prefix->length))});
  }
  const List& ports = args.list("udp_short_ports");
  for (size_t i = 0; i < ports.size(); ++i) {
    if (!ports[i].is_int() || ports[i].as_int() < 0 || ports[i].as_int() > 65535) {
      throw ConfigError("expected a port",
                        args.where() + ".udp_short_ports[" + std::to_string(i) + "]",
                        "a number from 0 to 65535");
    }
    const auto port = static_cast<uint32_t>(ports[i].as_int());
    config.short_ports[port / 64] |= 1ULL << (port % 64);
  }
  return config;
}

}  // namespace batchplane::nat
