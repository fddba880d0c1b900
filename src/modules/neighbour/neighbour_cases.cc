// SPDX-License-Identifier: BSD-3-Clause
// neighbour_cases.cc - inputs for fuzzing and measuring neighbour.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_neighbour_costs(std::vector<CostCase>& all) {
  const List neighbours{
      Dict{{"interface", "if2"}, {"address", "10.0.2.9"}, {"mac", "02:00:00:00:02:09"}}};
  CostCase resolved =
      plain("neighbour, resolved", "neighbour", {{"table", "main"}, {"neighbours", neighbours}});
  resolved.gates = 4;
  resolved.before_kind = "ipv4_lookup";
  resolved.before_params = {{"table", "main"},
                            {"routes", List{Dict{{"prefix", "20.0.0.0/8"}, {"via", "10.0.2.9"}}}}};
  resolved.check = [](Packet& pkt, uint32_t gate, uint32_t) {
    const std::string wrong = expect_gate(gate, 2);
    return wrong.empty() ? expect_byte(pkt, 5, 0x09) : wrong;
  };
  all.push_back(std::move(resolved));
}

void edit(Module& module, uint32_t which, uint32_t id) {
  Dict host = numbered_host(id);
  if (which == 7) module.command("delete", host);
  if (which != 6) return;
  host["mac"] = numbered_mac(id);
  module.command("add", host);
}

const AddCases kNeighbourCases{
    {.fuzz = {{"neighbour",
               R"({"table": "main", "hold_pkts": 4, "max_hold_pkts": 32, "max_neighbours": 64,
                   "retry_ns": 1000000, "reachable_ns": 1000000000,
                   "neighbours": [{"interface": "wan", "address": "10.0.2.2",
                                   "mac": "02:00:00:00:02:02"}]})",
               2, edit}},
     .cost = add_neighbour_costs}};

}  // namespace
}  // namespace batchplane::cases
