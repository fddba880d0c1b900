// SPDX-License-Identifier: BSD-3-Clause
// cases_policy.cc - policers and DSCP modules.
#include "modules/case_tools.h"
#include "modules/cases.h"

namespace bench {
namespace {

constexpr uint32_t kTosOffset = net::kEthBytes + 1;

void add_policy(std::vector<ModuleCase>& all) {
  const Dict rates{{"cir_bps", 1'000'000'000'000}, {"cbs_bytes", 1'000'000'000}};
  const auto policer = [&](const std::string& label, Dict params) {
    params.insert(rates.begin(), rates.end());
    params["red_action"] = "permit";
    all.push_back(plain(label, "policer", std::move(params)));
  };
  policer("policer, single rate", {});
  policer("policer, two rates", {{"mode", "trtcm"}, {"pbs_bytes", 1'000'000'000}});
  policer("policer, single rate per flow", {{"per", "flow"}});
  ModuleCase mark = plain("dscp, set", "dscp", {{"to", "ef"}});
  mark.feed = Feed::kFrames;
  mark.check = [](Packet& pkt, uint32_t, uint32_t) {
    const std::string wrong = expect_byte(pkt, kTosOffset, 46 << 2);
    return wrong.empty() ? expect_good_sum(pkt) : wrong;
  };
  all.push_back(std::move(mark));
  ModuleCase kept = plain("dscp, as it is", "dscp", {{"to", "be"}});
  kept.check = [](Packet& pkt, uint32_t, uint32_t) { return expect_byte(pkt, kTosOffset, 0); };
  all.push_back(std::move(kept));
  ModuleCase split =
      plain("dscp_split", "dscp_split", {{"rules", List{Dict{{"dscp", "be"}, {"gate", 1}}}}});
  split.gates = 2;
  split.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 1); };
  all.push_back(std::move(split));
}

const AddCases kAdded{add_policy};

}  // namespace
}  // namespace bench
