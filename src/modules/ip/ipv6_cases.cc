// SPDX-License-Identifier: BSD-3-Clause
// ipv6_cases.cc - inputs for fuzzing and measuring modules of the IPv6 header.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_ipv6_costs(std::vector<CostCase>& all) {
  all.push_back(plain6("ipv6_check", "ipv6_check"));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    return pkt.meta().l4_offset_bytes == 54 ? "" : "the upper header was not noted";
  };
  all.push_back(plain6("hop_limit", "hop_limit"));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) {
    return expect_byte(pkt, net::kEthBytes + net::kIp6HopLimit, kFrameTtl - 1);
  };
}

const AddCases kIpv6Cases{
    {.fuzz = {{"ipv6_check", "{}"},
              {"ipv6_check", R"({"l3_offset_bytes": 18, "drop_martians": false})"},
              {"hop_limit", "{}"}},
     .cost = add_ipv6_costs}};

}  // namespace
}  // namespace batchplane::cases
