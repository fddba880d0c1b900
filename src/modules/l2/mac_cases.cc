// SPDX-License-Identifier: BSD-3-Clause
// mac_cases.cc - inputs for fuzzing and measuring the modules of the Ethernet header.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

constexpr uint32_t kEntries = 1000;

void add_l2_table(std::vector<CostCase>& all) {
  CostCase one =
      plain("l2_table, 1 entry", "l2_table",
            {{"entries", List{Dict{{"mac", net::format_mac(kRouterMac)}, {"gate", 0}}}}});
  one.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 0); };
  all.push_back(with_target(std::move(one), 15, 4));
  List entries;
  for (uint32_t i = 0; i < kEntries; ++i) {
    entries.push_back(Dict{{"mac", net::format_mac(host_mac(i))}, {"gate", i % kGates}});
  }
  CostCase macs = plain("l2_table, 1000 entries", "l2_table", {{"entries", entries}});
  macs.gates = kGates;
  macs.frame = [](uint32_t i) { return udp_frame(host_mac(i * 15 % kEntries), flow_address(i)); };
  macs.check = [](Packet&, uint32_t gate, uint32_t i) {
    return expect_gate(gate, i * 15 % kEntries % kGates);
  };
  all.push_back(with_target(std::move(macs), 15, 4));
}

void add_ether_type(std::vector<CostCase>& all) {
  CostCase type = plain("ether_type, 1 rule", "ether_type",
                        {{"rules", List{Dict{{"ether_type", "ipv4"}, {"gate", 0}}}}});
  type.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 0); };
  all.push_back(std::move(type));
  CostCase types = plain("ether_type, 4 rules", "ether_type",
                         {{"rules", List{Dict{{"ether_type", "arp"}, {"gate", 0}},
                                         Dict{{"ether_type", "ipv6"}, {"gate", 1}},
                                         Dict{{"ether_type", "vlan"}, {"gate", 2}},
                                         Dict{{"ether_type", "ipv4"}, {"gate", 3}}}}});
  types.gates = 4;
  types.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 3); };
  all.push_back(std::move(types));
}

void add_mac_costs(std::vector<CostCase>& all) {
  all.push_back(plain("mac_rewrite", "mac_rewrite",
                      {{"src", "aa:bb:bb:aa:ff:dc"}, {"dst", "ee:dd:dd:aa:01:ff"}}));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) { return expect_byte(pkt, 0, 0xee); };
  add_l2_table(all);
  add_ether_type(all);
}

void edit_l2_table(Module& module, uint32_t which, uint32_t id) {
  if (which == 5) module.command("add", Dict{{"mac", numbered_mac(id)}, {"gate", id % 2}});
}

const AddCases kMacCases{
    {.fuzz = {{"mac_rewrite", R"({"dst": "02:00:00:00:00:09", "src": "02:00:00:00:00:08"})"},
              {"ether_type",
               R"({"rules": [{"ether_type": "ipv4", "gate": 0}, {"ether_type": "arp", "gate": 1},
                             {"ether_type": "vlan", "gate": 2}]})",
               3},
              {"ether_type",
               R"({"rules": [{"ether_type": "0x86dd", "gate": 1}], "default_gate": 0})", 2},
              {"l2_table",
               R"({"entries": [{"mac": "02:00:00:00:00:01", "gate": 1}], "default_gate": 0})", 2,
               edit_l2_table},
              {"l2_table", R"({"entries": [{"mac": "02:00:00:00:00:02", "gate": 1}]})", 2,
               edit_l2_table}},
     .cost = add_mac_costs}};

}  // namespace
}  // namespace batchplane::cases
