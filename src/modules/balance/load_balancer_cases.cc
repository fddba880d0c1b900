// SPDX-License-Identifier: BSD-3-Clause
// load_balancer_cases.cc - fuzzing and cost inputs for load balancers: flows spread over 64
// backends, of one service, of many services, with packet rewriting, and of no service.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

constexpr uint32_t kBackends = 64;
constexpr uint32_t kFirstVip = (192U << 24) + (2U << 8) + 1;

// Backend i uses gate i modulo 16.
List backends(uint32_t n, bool has_mac, bool has_tunnel) {
  List list;
  for (uint32_t i = 0; i < n; ++i) {
    Dict one{{"name", std::string("server-").append(text_of(i))}, {"gate", i % kGates}};
    if (has_mac) one["mac"] = net::format_mac(host_mac(i));
    if (has_tunnel) one["tunnel_id"] = 1000 + i;
    list.emplace_back(std::move(one));
  }
  return list;
}

Dict service(uint32_t i, uint32_t port, List list) {
  return {{"name", std::string("service-").append(text_of(i))},
          {"address", net::format_ipv4(kFirstVip + i)},
          {"proto", port == 0 ? "any" : "udp"},
          {"port", port},
          {"backends", std::move(list)}};
}

// Each packet is its own flow, to one of `n_services` services.
CostCase balanced(const std::string& label, uint32_t n_services, List services) {
  CostCase c = plain(label, "load_balancer", {{"services", std::move(services)}});
  c.gates = kGates;
  c.frame = [n_services](uint32_t i) {
    std::vector<uint8_t> frame = udp_frame(kRouterMac, kFirstVip + i % n_services);
    net::store16(&frame[net::kEthBytes + net::kIpv4Bytes], static_cast<uint16_t>(1000 + i));
    return frame;
  };
  c.check = [](Packet&, uint32_t gate, uint32_t) {
    return gate < kGates ? std::string() : "gate " + text_of(gate) + " of 16";
  };
  return c;
}

constexpr uint32_t kPort = 2000;  // destination port of the frames

// Bound: 12 ns per packet in batches of 32, the cost of the batch included.
CostCase with_bound(CostCase c) { return with_target(std::move(c), 12, 11.625); }

void add_load_balancer_costs(std::vector<CostCase>& all) {
  all.push_back(with_bound(balanced("load_balancer, 64 backends", 1,
                                    {service(0, kPort, backends(kBackends, false, false))})));
  CostCase direct = balanced("load_balancer, 64 backends, MAC written", 1,
                             {service(0, kPort, backends(kBackends, true, false))});
  direct.check = [](Packet& pkt, uint32_t gate, uint32_t) {
    return expect_gate(gate, pkt.data()[5] % kGates);
  };
  all.push_back(with_bound(std::move(direct)));
  all.push_back(balanced("load_balancer, 64 backends, MAC and tunnel", 1,
                         {service(0, kPort, backends(kBackends, true, true))}));
  List many;
  for (uint32_t i = 0; i < 16; ++i) many.emplace_back(service(i, kPort, backends(4, false, false)));
  all.push_back(balanced("load_balancer, 16 services of 4", 16, many));
  all.push_back(balanced("load_balancer, 64 backends, any port", 1,
                         {service(0, 0, backends(kBackends, false, false)),
                          service(1, kPort, backends(1, false, false))}));
  CostCase other = balanced("load_balancer, no service, to other_gate", 1,
                            {service(1, kPort, backends(kBackends, false, false))});
  other.params["other_gate"] = 15;
  other.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 15); };
  all.push_back(std::move(other));
}

void edit(Module& module, uint32_t which, uint32_t id) {
  Dict backend{{"service", "all"}, {"name", std::string(1, static_cast<char>('a' + id % 3))}};
  if (which >= 5) return (void)module.command("delete", backend);
  backend["gate"] = id % 3;
  module.command("add", backend);
}

// The frames of the corpus are addressed to these services.
const AddCases kLoadBalancerCases{
    {.fuzz = {{"load_balancer", R"({"table_slots": 251, "services": [
                   {"name": "web", "address": "10.0.1.2", "proto": "tcp", "port": 80,
                    "backends": [{"name": "a", "gate": 0, "weight": 3}, {"name": "b", "gate": 1}]},
                   {"name": "udp", "address": "10.0.1.2", "proto": "udp",
                    "backends": [{"name": "a", "gate": 2, "mac": "02:00:00:00:00:09"}]},
                   {"name": "all", "address": "10.0.2.1",
                    "backends": [{"name": "a", "gate": 1, "tunnel_id": 9}, {"name": "b", "gate": 2}]},
                   {"name": "none", "address": "10.0.0.2"},
                   {"name": "six", "address": "fd00::2", "backends": [{"name": "a", "gate": 1}]}]})",
               3, edit},
              {"load_balancer", R"({"table_slots": 7, "other_gate": 0, "services": [
                   {"name": "all", "address": "10.9.0.1", "backends": [{"name": "a", "gate": 1}]},
                   {"name": "six", "address": "2001:db8::1", "proto": "tcp", "port": 443,
                    "backends": [{"name": "a", "gate": 1}, {"name": "b", "gate": 0}]}]})",
               2, edit}},
     .cost = add_load_balancer_costs}};

}  // namespace
}  // namespace batchplane::cases
