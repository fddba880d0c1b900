// SPDX-License-Identifier: BSD-3-Clause
// vlan_cases.cc - inputs for fuzzing and measuring modules of VLAN tags.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

std::string expect_ipv4_at(Packet& pkt, uint32_t l3) {
  if (pkt.meta().l3_offset_bytes != l3) return "the header was not noted";
  return expect_byte(pkt, l3, 0x45);
}

void add_vlan_costs(std::vector<CostCase>& all) {
  CostCase push = plain("vlan_push", "vlan_push", {{"vid", 100}});
  push.check = [](Packet& pkt, uint32_t, uint32_t) { return expect_ipv4_at(pkt, 18); };
  all.push_back(std::move(push));
  CostCase pop = plain("vlan_pop", "vlan_pop");
  pop.frame = [](uint32_t i) { return tagged_frame(i % kGates, 100); };
  pop.check = [](Packet& pkt, uint32_t, uint32_t) { return expect_ipv4_at(pkt, 14); };
  all.push_back(with_target(std::move(pop), 4, 1.875));
  all.back().note = "the target is 2 ns per packet in batches of 32";
  List rules;
  for (uint32_t i = 0; i < 4095; ++i) {
    rules.push_back(Dict{{"vid", i}, {"gate", i % kGates}, {"vrf", i % kGates}});
  }
  for (const bool pops : {false, true}) {
    CostCase split = plain(pops ? "vlan_split with pop, 4095 VLANs" : "vlan_split, 4095 VLANs",
                           "vlan_split", {{"rules", rules}, {"pop", pops}});
    split.gates = kGates;
    split.frame = [](uint32_t i) { return tagged_frame(i % kGates, i * 15); };
    split.check = [pops](Packet& pkt, uint32_t gate, uint32_t i) {
      const std::string wrong = expect_gate(gate, i * 15 % kGates);
      return wrong.empty() ? expect_ipv4_at(pkt, pops ? 14 : 18) : wrong;
    };
    all.push_back(std::move(split));
  }
}

const AddCases kVlanCases{
    {.fuzz = {{"vlan_push", R"({"vid": 100, "pcp": -1, "tpid": "0x88a8"})"},
              {"vlan_push", R"({"vid": 0, "pcp": 7, "dei": true, "max_tags": 8})"},
              {"vlan_pop", "{}"},
              {"vlan_pop", R"({"tags": "all", "untagged": "pass", "max_tags": 8})"},
              {"vlan_split",
               R"({"rules": [{"vid": 5, "gate": 1, "vrf": 1}, {"vid": 7, "inner_vid": 9, "gate": 2},
                             {"vid": 0, "gate": 0}],
                   "pop": true, "untagged_gate": 0, "default_gate": 2})",
               3},
              {"vlan_split", R"({"rules": [{"vid": 5, "gate": 1}], "max_tags": 1})", 2}},
     .cost = add_vlan_costs}};

}  // namespace
}  // namespace batchplane::cases
