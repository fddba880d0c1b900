// SPDX-License-Identifier: BSD-3-Clause
// fragment_cases.cc - fuzzing inputs for fragment and reassembly; costs are measured on packets
// that need neither.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_fragment_costs(std::vector<CostCase>& all) {
  all.push_back(plain("fragment, packets that fit", "fragment", {{"mtu_bytes", 1500}}));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) { return expect_good_sum(pkt); };
  all.push_back(plain("reassembly, whole packets", "reassembly"));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) { return expect_good_sum(pkt); };
}

const AddCases kFragmentCases{
    {.fuzz = {{"fragment", R"({"mtu_bytes": 68})"},
              {"fragment", R"({"table": "main", "mtu_bytes": 576})"},
              {"reassembly",
               R"({"max_datagrams": 4, "max_hold_pkts": 16, "timeout_ns": 1000000000})"},
              {"reassembly", R"({"max_datagram_bytes": 576, "max_hold_pkts": 4})"}},
     .cost = add_fragment_costs}};

}  // namespace
}  // namespace batchplane::cases
