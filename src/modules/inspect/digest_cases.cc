// SPDX-License-Identifier: BSD-3-Clause
// digest_cases.cc - inputs for fuzzing and benchmarking digests.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_digest_costs(std::vector<CostCase>& all) {
  for (const char* const algorithm : {"md5", "sha1", "sha256"}) {
    CostCase digest =
        plain("digest, " + std::string(algorithm), "digest", {{"algorithm", algorithm}});
    digest.gates = 2;
    digest.check = [](Packet& pkt, uint32_t gate, uint32_t) {
      return pkt.mark() == 0 ? std::string("no mark") : expect_gate(gate, 0);
    };
    all.push_back(std::move(digest));
  }
}

void edit_digests(Module& module, uint32_t which, uint32_t id) {
  const std::string digest(32, "0123456789abcdef"[id % 16]);
  if (which <= 4) module.command("add", Dict{{"digest", digest}, {"gate", id % 2}});
  if (which == 5) module.command("delete", Dict{{"digest", digest}});
  if (which == 6) {
    module.command("replace", Dict{{"rules", List{Dict{{"digest", digest}, {"gate", 1}}}}});
  }
  if (which == 7) module.command("list", Dict{});
}

const AddCases kDigestCases{{.fuzz = {{"digest",
                                       R"({"algorithm": "md5",
                   "rules": [{"digest": "d41d8cd98f00b204e9800998ecf8427e", "gate": 1}]})",
                                       2, edit_digests},
                                      {"digest", R"({"algorithm": "sha1", "scan": "frame"})"},
                                      {"digest", R"({"mark": false})"}},
                             .cost = add_digest_costs}};

}  // namespace
}  // namespace batchplane::cases
