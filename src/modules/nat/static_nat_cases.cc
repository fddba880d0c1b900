// SPDX-License-Identifier: BSD-3-Clause
// static_nat_cases.cc - inputs for fuzzing and benchmarking static_nat.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_static_nat_costs(std::vector<CostCase>& all) {
  const Dict pair{{"inside", "10.64.0.0/24"}, {"outside", "20.0.0.0/24"}};
  CostCase one =
      with_target(plain("static_nat, 1 pair", "static_nat", {{"pairs", List{pair}}}), 8, 4);
  one.feed = Feed::kFlows;
  one.flows = 16;
  one.check = [](Packet& pkt, uint32_t, uint32_t) {
    return expect_byte(pkt, net::kEthBytes + net::kIpSrc, 20);
  };
  all.push_back(one);
  List pairs;
  for (uint32_t i = 0; i < 1000; ++i) {
    pairs.push_back(Dict{{"inside", net::format_ipv4((10U << 24) + (64U << 16) + i)},
                         {"outside", net::format_ipv4((20U << 24) + i)}});
  }
  one.label = "static_nat, 1000 pairs";
  one.params = {{"pairs", pairs}};
  one.has_target = false;
  all.push_back(one);
}

const AddCases kStaticNatCases{
    {.fuzz = {{"static_nat", R"({"pairs": [{"inside": "10.0.0.0/16", "outside": "20.0.0.0/16"}]})"},
              {"static_nat",
               R"({"direction": "both",
                   "pairs": [{"inside": "10.0.0.0/16", "outside": "20.0.0.0/16"},
                             {"inside": "10.9.0.0/16", "outside": "10.1.0.0/16"},
                             {"inside": "0.0.0.0/8", "outside": "77.0.0.0/8"},
                             {"inside": "192.168.0.0/16", "outside": "10.2.0.0/16"}]})"}},
     .cost = add_static_nat_costs}};

}  // namespace
}  // namespace batchplane::cases
