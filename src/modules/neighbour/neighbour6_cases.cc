// SPDX-License-Identifier: BSD-3-Clause
// neighbour6_cases.cc - inputs for fuzzing and measuring neighbour6.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_neighbour6_costs(std::vector<CostCase>& all) {
  const List neighbours{
      Dict{{"interface", "if2"}, {"address", "2001:db8:0:2::9"}, {"mac", "02:00:00:00:02:09"}}};
  CostCase resolved = plain6("neighbour6, resolved", "neighbour6",
                             {{"table", "main6"}, {"neighbours", neighbours}});
  resolved.gates = 4;
  resolved.before_kind = "ipv6_lookup";
  resolved.before_params = {
      {"table", "main6"},
      {"routes", List{Dict{{"prefix", "2400::/8"}, {"via", "2001:db8:0:2::9"}}}}};
  resolved.check = [](Packet& pkt, uint32_t gate, uint32_t) {
    const std::string wrong = expect_gate(gate, 2);
    return wrong.empty() ? expect_byte(pkt, 5, 0x09) : wrong;
  };
  all.push_back(std::move(resolved));
}

const AddCases kNeighbour6Cases{
    {.fuzz = {{"neighbour6",
               R"({"table": "main", "hold_pkts": 4, "max_hold_pkts": 32, "max_neighbours": 64,
                   "retry_ns": 1000000, "reachable_ns": 1000000000,
                   "advertise_interval_ns": 4000000000,
                   "advertise": [{"interface": "lan", "prefix": "2001:db8:1::/64",
                                  "dns": "2001:db8:1::1"}],
                   "neighbours": [{"interface": "wan", "address": "2001:db8:2::2",
                                   "mac": "02:00:00:00:02:02"}]})",
               2}},
     .cost = add_neighbour6_costs}};

}  // namespace
}  // namespace batchplane::cases
