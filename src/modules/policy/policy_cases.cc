// SPDX-License-Identifier: BSD-3-Clause
// policy_cases.cc - inputs for fuzzing and benchmarking policers and DSCP modules.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

constexpr uint32_t kTosOffset = net::kEthBytes + 1;

void add_policy_costs(std::vector<CostCase>& all) {
  const Dict rates{{"cir_bps", 1'000'000'000'000}, {"cbs_bytes", 1'000'000'000}};
  const auto policer = [&](const std::string& label, Dict params) {
    params.insert(rates.begin(), rates.end());
    params["red_action"] = "permit";
    all.push_back(plain(label, "policer", std::move(params)));
  };
  policer("policer, single rate", {});
  policer("policer, two rates", {{"mode", "trtcm"}, {"pbs_bytes", 1'000'000'000}});
  policer("policer, single rate per flow", {{"per", "flow"}});
  CostCase mark = plain("dscp, set", "dscp", {{"to", "ef"}});
  mark.check = [](Packet& pkt, uint32_t, uint32_t) {
    const std::string wrong = expect_byte(pkt, kTosOffset, 46 << 2);
    return wrong.empty() ? expect_good_sum(pkt) : wrong;
  };
  all.push_back(std::move(mark));
  CostCase kept = plain("dscp, as it is", "dscp", {{"to", "be"}});
  kept.check = [](Packet& pkt, uint32_t, uint32_t) { return expect_byte(pkt, kTosOffset, 0); };
  all.push_back(std::move(kept));
  CostCase split =
      plain("dscp_split", "dscp_split", {{"rules", List{Dict{{"dscp", "be"}, {"gate", 1}}}}});
  split.gates = 2;
  split.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 1); };
  all.push_back(std::move(split));
}

const AddCases kPolicyCases{
    {.fuzz = {{"policer",
               R"({"cir_bps": 1000000, "cbs_bytes": 3000, "ebs_bytes": 3000, "per": "flow",
                   "colour_aware": true, "yellow_action": "dscp af12"})"},
              {"policer",
               R"({"mode": "trtcm", "cir_bps": 100000000, "pir_bps": 1000000000, "per": "vrf",
                   "meters": 7, "yellow_action": "drop", "red_action": "dscp 1"})"},
              {"dscp", R"({"to": "ef", "map": [{"from": "cs1", "to": "le"}]})"},
              {"dscp_split", R"({"rules": [{"dscp": "ef", "gate": 1}, {"dscp": 0, "gate": 0}]})",
               2}},
     .cost = add_policy_costs}};

}  // namespace
}  // namespace batchplane::cases
