// SPDX-License-Identifier: BSD-3-Clause
// dpi_cases.cc - inputs for fuzzing and benchmarking dpi.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

// Words of four letters that do not occur in the frames.
List words_of(uint32_t n) {
  List rules;
  for (uint32_t i = 0; i < n; ++i) {
    std::string word;
    for (uint32_t left = i, k = 0; k < 4; ++k, left /= 26)
      word += static_cast<char>('a' + left % 26);
    rules.push_back(Dict{{"id", i + 1}, {"content", "zz" + word}});
  }
  return rules;
}

void add_dpi_costs(std::vector<CostCase>& all) {
  for (const char* const engine : {"aho_corasick", "hyperscan"}) {
    CostCase scan = plain("dpi, 1000 words, " + std::string(engine), "dpi",
                          {{"rules", words_of(1000)}, {"engine", engine}});
    scan.gates = 2;
    scan.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 0); };
    all.push_back(std::move(scan));
  }
}

void edit_rules(Module& module, uint32_t which, uint32_t id) {
  const Dict rule{{"id", id + 1},
                  {"content", std::string(1, static_cast<char>('a' + id % 26)) + "|00|"},
                  {"action", which % 2 == 0 ? "drop" : "alert"},
                  {"nocase", which % 3 == 0}};
  if (which <= 3) module.command("add", rule);
  if (which == 4) module.command("delete", Dict{{"id", id + 1}});
  if (which == 5) module.command("replace", Dict{{"rules", List{rule}}});
  if (which == 6) module.command("hits", Dict{});
  if (which == 7) module.command("reload", Dict{});
}

const AddCases kDpiCases{
    {.fuzz = {{"dpi",
               R"({"rules": [{"id": 1, "content": "a"}, {"id": 2, "content": "|00 00|",
                              "action": "drop"}, {"id": 3, "content": ["E", "|ff|"],
                              "nocase": true, "action": "mark", "mark": 7}]})",
               2, edit_rules},
              {"dpi",
               R"({"engine": "hyperscan", "scan": "frame",
                   "rules": [{"id": 1, "pcre": "/a.*b/s", "action": "drop"},
                             {"id": 2, "content": "|00 00|"}]})",
               2, edit_rules}},
     .cost = add_dpi_costs}};

}  // namespace
}  // namespace batchplane::cases
