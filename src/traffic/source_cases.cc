// SPDX-License-Identifier: BSD-3-Clause
// source_cases.cc - cases that check source for allocations and measure it.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_costs(std::vector<CostCase>& all) {
  CostCase source = plain("source, 16 flows", "source", {{"flows", List{Dict{{"count", kGates}}}}});
  source.note = "taking packets from the pool included";
  source.check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    return pkt.len_bytes() == 60 ? "" : "a packet of " + text_of(pkt.len_bytes()) + " bytes";
  };
  all.push_back(std::move(source));
}

const AddCases kCases{
    {.fuzz = {{"source", R"({"flows": [{"count": 40}], "imix": true, "order": "random"})"}},
     .cost = add_costs,
     .without = {{"source", Need::kGolden, "no packet goes in"}}}};

}  // namespace
}  // namespace batchplane::cases
