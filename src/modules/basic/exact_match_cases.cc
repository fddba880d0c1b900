// SPDX-License-Identifier: BSD-3-Clause
// exact_match_cases.cc - inputs for fuzzing and measuring exact_match.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

constexpr uint32_t kRules = 1000;

void add_exact_match_costs(std::vector<CostCase>& all) {
  List rules;
  for (uint32_t i = 0; i < kRules; ++i) {
    rules.push_back(Dict{
        {"values", List{17, net::format_ipv4(kSourceAddress), net::format_ipv4(flow_address(i))}},
        {"gate", i % kGates}});
  }
  const List fields{Dict{{"offset", 23}, {"size_bytes", 1}},
                    Dict{{"offset", 26}, {"size_bytes", 4}},
                    Dict{{"offset", 30}, {"size_bytes", 4}}};
  CostCase exact = plain("exact_match, 3 fields, 1000 rules", "exact_match",
                         {{"fields", fields}, {"rules", rules}});
  exact.gates = kGates;
  exact.frame = [](uint32_t i) { return udp_frame(kRouterMac, flow_address(i * 15 % kRules)); };
  exact.check = [](Packet&, uint32_t gate, uint32_t i) {
    return expect_gate(gate, i * 15 % kRules % kGates);
  };
  all.push_back(with_target(std::move(exact), 20, 5));
}

void edit(Module& module, uint32_t which, uint32_t id) {
  if (which != 4) return;
  module.command("add", Dict{{"values", List{"0x0800", net::format_ipv4(0x0a000000 + id), id}},
                             {"gate", id % 3}});
}

const AddCases kExactMatchCases{
    {.fuzz = {{"exact_match",
               R"({"fields": [{"offset": 12, "size_bytes": 2}, {"offset": 26, "size_bytes": 4},
                              {"offset": 36, "size_bytes": 2, "mask": "0xfff0"}],
                   "rules": [{"values": ["0x0800", "10.0.1.2", 48], "gate": 1}]})",
               3, edit},
              {"exact_match",
               R"({"fields": [{"offset": 2000, "size_bytes": 8}], "default_gate": 0})", 1, edit}},
     .cost = add_exact_match_costs}};

}  // namespace
}  // namespace batchplane::cases
