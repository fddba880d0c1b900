// SPDX-License-Identifier: BSD-3-Clause
// ipv4_cases.cc - inputs for fuzzing and measuring modules of the IPv4 header.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_ipv4_costs(std::vector<CostCase>& all) {
  all.push_back(with_target(plain("checksum full", "checksum"), 5, 1.5));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) { return expect_good_sum(pkt); };
  all.push_back(
      with_target(plain("checksum incremental", "checksum", {{"mode", "incremental"}}), 5, 1.5));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) {
    // The checksum is now right for a TTL that is one lower: lower the TTL to check it.
    uint8_t* ttl = pkt.data() + net::kEthBytes + net::kIpTtl;
    *ttl = static_cast<uint8_t>(*ttl - 1);
    const std::string wrong = expect_good_sum(pkt);
    *ttl = static_cast<uint8_t>(*ttl + 1);
    return wrong.empty() ? wrong : "the mended checksum is wrong";
  };
  all.push_back(plain("checksum check", "checksum", {{"mode", "check"}}));
  all.push_back(plain("ipv4_check", "ipv4_check"));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    return pkt.meta().l3_offset_bytes == net::kEthBytes ? "" : "the header was not noted";
  };
}

const AddCases kIpv4Cases{
    {.fuzz = {{"checksum", R"({"mode": "full"})"},
              {"checksum", R"({"mode": "incremental", "ttl_steps": 1})"},
              {"checksum", R"({"mode": "check"})"},
              {"ipv4_check", "{}"},
              {"ipv4_check", R"({"l3_offset_bytes": 18, "drop_martians": false})"}},
     .cost = add_ipv4_costs}};

}  // namespace
}  // namespace batchplane::cases
