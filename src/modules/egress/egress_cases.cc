// SPDX-License-Identifier: BSD-3-Clause
// egress_cases.cc - inputs for fuzzing and benchmarking the egress scheduler and pace.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_egress_costs(std::vector<CostCase>& all) {
  CostCase filling = plain("egress, filling a mailbox", "egress");
  filling.check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    return pkt.len_bytes() == 60 ? "" : "not the packet that went in";
  };
  all.push_back(std::move(filling));
  CostCase pace = plain("pace, by mark", "pace", {{"rate_bps", 10'000'000'000'000}});
  pace.check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    return pkt.has_departure() ? "" : "has no departure time";
  };
  all.push_back(pace);
  pace.label = "pace, by connection";
  pace.params["flow_by"] = "hash";
  all.push_back(std::move(pace));
}

void change_pace(Module& pace, uint32_t which, uint32_t id) {
  pace.command("set", Dict{{"rate_bps", which % 2 * (id + 1) * 100'000}, {"delay_us", id * 1000}});
}

const AddCases kEgressCases{
    {.fuzz = {{"egress", R"({"flow_by": "dscp", "limit_pkts": 4, "total_limit_pkts": 8,
                             "flows": [{"flow": 46, "weight": 9}]})"},
              {"egress", R"({"discipline": "tree", "flow_by": "dscp", "limit_pkts": 4,
                             "codel_target_us": 1, "codel_interval_us": 10, "rate_bps": 1000000000,
                             "nodes": [{"node": "a", "ceil_bps": 100000000}],
                             "flows": [{"flow": 0, "queue": "fq_codel"},
                                       {"flow": 46, "parent": "a", "queue": "codel"},
                                       {"flow": 8, "parent": "a", "queue": "pie"}]})"},
              {"egress", R"({"flow_by": "vlan", "inner_vlans": 16, "flows": [{"flow": "5/7"}]})"},
              {"egress", R"({"flow_by": "qfi", "flows": [{"flow": 9}]})"},
              {"egress", R"({"flow_by": "hash", "hash_flows": 4, "flows": [{"flow": 3}]})"},
              {.kind = "pace",
               .params = R"({"flow_by": "hash", "rate_bps": 1000000, "jitter_us": 3000,
                             "horizon_us": 20000})",
               .edit = change_pace}},
     .cost = add_egress_costs,
     .without = {{"egress", Need::kGolden, "it moves packets as they are from workers to a port"},
                 {"early_drop", Need::kFuzz, "without a scheduler in the pipeline there is none"},
                 {"early_drop", Need::kCost, "without a scheduler in the pipeline there is none"},
                 {"early_drop", Need::kGolden, "what it drops depends on another module"}}}};

}  // namespace
}  // namespace batchplane::cases
