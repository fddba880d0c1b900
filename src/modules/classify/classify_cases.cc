// SPDX-License-Identifier: BSD-3-Clause
// classify_cases.cc - inputs for fuzzing and measuring the modules that mark packets.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_classify_costs(std::vector<CostCase>& all) {
  List prefixes;
  for (uint32_t k = 0; k < 4096; ++k) {
    prefixes.emplace_back(
        Dict{{"prefix", "20." + std::to_string(k / 256) + "." + std::to_string(k % 256) + ".0/24"},
             {"mark", k}});
  }
  all.push_back(plain("prefix_mark, 4096 prefixes", "prefix_mark", {{"prefixes", prefixes}}));
}

const AddCases kClassifyCases{
    {.fuzz = {{"prefix_mark",
               R"({"prefixes": [{"prefix": "10.0.0.0/8", "mark": 7}, {"prefix": "::/0", "mark": 9}],
                   "classes": [{"dscp": "ef", "add": 3}]})"}},
     .cost = add_classify_costs}};

}  // namespace
}  // namespace batchplane::cases
