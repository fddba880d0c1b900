// SPDX-License-Identifier: BSD-3-Clause
// cases_load_balancer.cc - flows dealt to 64 backends: of one service, of many, with what is
// written into the packet, and what belongs to no service.
#include "modules/case_tools.h"
#include "modules/cases.h"

namespace bench {
namespace {

constexpr uint32_t kBackends = 64;
constexpr uint32_t kFirstVip = (192U << 24) + (2U << 8) + 1;

// Backend i at gate i modulo 16.
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

// Each packet of a flow of its own, to one of `n_services`.
ModuleCase balanced(const std::string& label, uint32_t n_services, List services) {
  ModuleCase c = plain(label, "load_balancer", {{"services", std::move(services)}});
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

constexpr uint32_t kPort = 2000;  // to which the frames go

// 12 ns per packet in batches of 32, what the batch costs included.
ModuleCase with_bound(ModuleCase c) { return with_target(std::move(c), 12, 11.625); }

void add(std::vector<ModuleCase>& all) {
  all.push_back(with_bound(balanced("load_balancer, 64 backends", 1,
                                    {service(0, kPort, backends(kBackends, false, false))})));
  ModuleCase direct = balanced("load_balancer, 64 backends, MAC written", 1,
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
  ModuleCase other = balanced("load_balancer, no service, to other_gate", 1,
                              {service(1, kPort, backends(kBackends, false, false))});
  other.params["other_gate"] = 15;
  other.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 15); };
  all.push_back(std::move(other));
}

const AddCases kAdded{&add};

}  // namespace
}  // namespace bench
