// SPDX-License-Identifier: BSD-3-Clause
// ttl_cases.cc - inputs for fuzzing and measuring ttl.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

std::string expect_lower_ttl(Packet& pkt) {
  return expect_byte(pkt, net::kEthBytes + net::kIpTtl, kFrameTtl - 1);
}

void add_ttl_costs(std::vector<CostCase>& all) {
  CostCase mended = plain("ttl", "ttl");
  mended.check = [](Packet& pkt, uint32_t, uint32_t) {
    const std::string wrong = expect_lower_ttl(pkt);
    return wrong.empty() ? expect_good_sum(pkt) : wrong;
  };
  all.push_back(with_target(std::move(mended), 4, 1));
  CostCase left = plain("ttl, checksum left", "ttl", {{"mend_checksum", false}});
  left.check = [](Packet& pkt, uint32_t, uint32_t) { return expect_lower_ttl(pkt); };
  all.push_back(with_target(std::move(left), 4, 1));
}

const AddCases kTtlCases{
    {.fuzz = {{"ttl", "{}"}, {"ttl", R"({"mend_checksum": false})"}}, .cost = add_ttl_costs}};

}  // namespace
}  // namespace batchplane::cases
