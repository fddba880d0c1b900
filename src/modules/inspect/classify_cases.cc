// SPDX-License-Identifier: BSD-3-Clause
// classify_cases.cc - inputs for fuzzing and benchmarking the classifier.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_classify_costs(std::vector<CostCase>& all) {
  CostCase classify =
      plain("classify, 256-128-64-8", "classify", {{"random", List{256, 128, 64, 8}}});
  classify.gates = 8;
  classify.check = [](Packet&, uint32_t gate, uint32_t) {
    return gate < 8 ? std::string() : std::string("no such class");
  };
  all.push_back(std::move(classify));
}

void edit_classifier(Module& module, uint32_t which, uint32_t /*id*/) {
  if (which == 1) module.command("reload", Dict{});
  if (which == 2) module.command("replace", Dict{{"weights", "/dev/null"}});
}

const AddCases kClassifyCases{
    {.fuzz = {{"classify", R"({"random": [40, 12, 2]})", 2, edit_classifier},
              {"classify", R"({"random": [9, 1], "scan": "payload", "mark": true})"}},
     .cost = add_classify_costs}};

}  // namespace
}  // namespace batchplane::cases
