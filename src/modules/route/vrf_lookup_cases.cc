// SPDX-License-Identifier: BSD-3-Clause
// vrf_lookup_cases.cc - inputs for fuzzing and measuring vrf_lookup.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

constexpr uint32_t kVrfRoutes = 500;

void add_vrf_lookup_costs(std::vector<CostCase>& all) {
  const List routes = flow_routes(kVrfRoutes);
  CostCase lookup = plain(
      "vrf_lookup, 2 VRFs of 500 routes, one in the batch", "vrf_lookup",
      {{"vrfs", List{Dict{{"vrf", 1}, {"routes", routes}}, Dict{{"vrf", 2}, {"routes", routes}}}}});
  lookup.gates = kGates;
  lookup.before_kind = "set_meta";
  lookup.before_params = {{"vrf", 2}};
  lookup.frame = [](uint32_t i) { return udp_frame(kRouterMac, flow_address(i % kVrfRoutes)); };
  lookup.check = [](Packet&, uint32_t gate, uint32_t i) {
    return expect_gate(gate, i % kVrfRoutes % kGates);
  };
  all.push_back(with_target(std::move(lookup), 12, 3));
  CostCase mixed = plain(
      "vrf_lookup, 2 VRFs of 500 routes, in turn", "vrf_lookup",
      {{"vrfs", List{Dict{{"vrf", 0}, {"routes", routes}}, Dict{{"vrf", 1}, {"routes", routes}}}}});
  mixed.gates = kGates;
  mixed.before_kind = "vlan_split";
  mixed.before_params = {{"rules", List{Dict{{"vid", 0}, {"gate", 0}, {"vrf", 0}},
                                        Dict{{"vid", 1}, {"gate", 0}, {"vrf", 1}}}}};
  mixed.frame = [](uint32_t i) { return tagged_frame(i % kGates, i & 1); };
  mixed.check = [](Packet&, uint32_t gate, uint32_t i) { return expect_gate(gate, i % kGates); };
  mixed.note = "the worst case: each packet in another VRF than the one before";
  all.push_back(std::move(mixed));
}

const AddCases kVrfLookupCases{
    {.fuzz = {{"vrf_lookup",
               R"({"vrfs": [{"vrf": 0, "max_prefixes": 1024, "max_next_hops": 64,
                             "next_hops": [{"id": 1, "gate": 0}, {"id": 2, "gate": 1},
                                           {"id": 3, "group": [{"next_hop": 1}, {"next_hop": 2}]}],
                             "routes": [{"prefix": "0.0.0.0/0", "next_hop": 3},
                                        {"prefix": "10.9.9.0/28", "drop": true}]},
                            {"vrf": 1, "max_prefixes": 1024,
                             "routes": [{"prefix": "10.0.0.0/8", "gate": 1}]}]})",
               2},
              {"vrf_lookup", R"({"vrfs": []})", 1}},
     .cost = add_vrf_lookup_costs}};

}  // namespace
}  // namespace batchplane::cases
