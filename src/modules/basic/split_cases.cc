// SPDX-License-Identifier: BSD-3-Clause
// split_cases.cc - inputs for fuzzing and measuring split.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_split_costs(std::vector<CostCase>& all) {
  for (const std::string mode : {"round_robin", "random", "hash", "weighted"}) {
    Dict params{{"mode", mode}, {"gates", kGates}};
    if (mode == "weighted") params["weights"] = List(kGates, 1.0);
    CostCase c = plain("split 16 " + mode, "split", std::move(params));
    c.gates = kGates;
    c.check = [](Packet&, uint32_t gate, uint32_t) {
      return gate < kGates ? std::string() : "gate " + text_of(gate) + " of 16";
    };
    all.push_back(std::move(c));
  }
}

const AddCases kSplitCases{
    {.fuzz = {{"split", R"({"mode": "hash", "gates": 5})", 5},
              {"split", R"({"mode": "weighted", "gates": 2, "weights": [1, 3]})", 2},
              {"split", R"({"mode": "round_robin", "gates": 3})", 3},
              {"split", R"({"mode": "random", "gates": 3})", 3}},
     .cost = add_split_costs}};

}  // namespace
}  // namespace batchplane::cases
