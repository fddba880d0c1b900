// SPDX-License-Identifier: BSD-3-Clause
// ipv4_lookup_cases.cc - inputs for fuzzing and measuring ipv4_lookup.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

constexpr uint32_t kRoutes = 500;

void add_ipv4_lookup_costs(std::vector<CostCase>& all) {
  CostCase few =
      plain("ipv4_lookup, 500 routes", "ipv4_lookup", {{"routes", flow_routes(kRoutes)}});
  few.gates = kGates;
  few.frame = [](uint32_t i) { return udp_frame(kRouterMac, flow_address(i % kRoutes)); };
  few.check = [](Packet&, uint32_t gate, uint32_t i) {
    return expect_gate(gate, i % kRoutes % kGates);
  };
  all.push_back(with_target(std::move(few), 10, 2.5));
  CostCase many = plain("ipv4_lookup, 1 M routes, random", "ipv4_lookup",
                        {{"routes", List{Dict{{"prefix", "0.0.0.0/0"}, {"gate", 0}}}},
                         {"synthetic", Dict{{"count", 1'000'000}, {"gates", 16}}}});
  many.gates = kGates;
  many.feed = Feed::kRandom;
  many.note = "each packet gets a random destination before each call";
  all.push_back(std::move(many));
}

void edit(Module& module, uint32_t which, uint32_t id) {
  const std::string net24 = "10." + text_of(id % 16) + "." + text_of(id) + ".0/24";
  if (which == 1) {
    module.command("add", Dict{{"prefix", net24}, {"gate", id % 2}});
  } else if (which == 2) {
    module.command("delete", Dict{{"prefix", net24}});
  } else if (which == 3) {
    module.command("next_hop",
                   Dict{{"id", 1 + id % 4}, {"via", net::format_ipv4(0x0a000200 + id)}});
  }
}

const AddCases kIpv4LookupCases{
    {.fuzz = {{"ipv4_lookup",
               R"({"table": "main", "interfaces": true, "max_next_hops": 64, "max_prefixes": 4096,
                   "next_hops": [{"id": 1, "via": "10.0.2.2"}, {"id": 2, "via": "10.0.2.3"},
                                 {"id": 3, "group": [{"next_hop": 1, "weight": 1},
                                                     {"next_hop": 2, "weight": 2}]}],
                   "routes": [{"prefix": "0.0.0.0/0", "via": "10.0.2.2"},
                              {"prefix": "10.9.0.0/16", "next_hop": 3},
                              {"prefix": "10.9.9.0/28", "drop": true},
                              {"prefix": "10.8.0.0/14", "gate": 2}]})",
               3, edit},
              {"ipv4_lookup",
               R"({"routes": [{"prefix": "10.0.0.0/8", "gate": 1}], "max_prefixes": 1024})", 2,
               edit},
              {"ipv4_lookup",
               R"({"interfaces": true, "reverse_path": "strict", "closed_interfaces": ["wan"],
                   "routes": [{"prefix": "10.9.0.0/16", "via": "10.0.2.2"}], "max_prefixes": 1024})",
               2, edit}},
     .cost = add_ipv4_lookup_costs}};

}  // namespace
}  // namespace batchplane::cases
