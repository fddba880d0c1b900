// SPDX-License-Identifier: BSD-3-Clause
// rewrite_cases.cc - inputs for fuzzing and benchmarking rewrite.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_rewrite_costs(std::vector<CostCase>& all) {
  const auto field = [](const char* base, int offset, int size, const char* value) {
    return Dict{{"base", base}, {"offset", offset}, {"size_bytes", size}, {"value", value}};
  };
  CostCase plain_bytes =
      plain("rewrite, 1 field, no checksums", "rewrite",
            {{"fields", List{field("l2", 6, 6, "02:00:00:00:00:ee")}}, {"mend_checksums", false}});
  plain_bytes.check = [](Packet& pkt, uint32_t, uint32_t) { return expect_byte(pkt, 11, 0xee); };
  all.push_back(std::move(plain_bytes));
  CostCase mended =
      plain("rewrite, address and port, checksums mended", "rewrite",
            {{"fields", List{field("l3", 12, 4, "192.0.2.1"), field("l4", 0, 2, "0x1234")}}});
  mended.check = [](Packet& pkt, uint32_t, uint32_t) {
    const std::string wrong = expect_good_sum(pkt);
    return wrong.empty() ? expect_byte(pkt, 34, 0x12) : wrong;
  };
  all.push_back(std::move(mended));
}

const AddCases kRewriteCases{
    {.fuzz =
         {{"rewrite",
           R"({"fields": [{"base": "l3", "offset": 12, "size_bytes": 8, "value": 1},
                          {"base": "l3", "offset": 17, "size_bytes": 7, "value": 5},
                          {"base": "l4", "offset": 1, "size_bytes": 4, "value": "0xff00",
                           "mask": "0xffff"},
                          {"offset": 11, "size_bytes": 8, "value": 3, "mask": "0x0f"}]})"},
          {"rewrite",
           R"({"fields": [{"offset": 40, "size_bytes": 8, "value": 9}], "mend_checksums": true})"},
          {"rewrite",
           R"({"fields": [{"offset": 3, "size_bytes": 1, "value": 9}], "mend_checksums": false})"}},
     .cost = add_rewrite_costs}};

}  // namespace
}  // namespace batchplane::cases
