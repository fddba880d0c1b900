// SPDX-License-Identifier: BSD-3-Clause
// session_cases.cc - inputs for fuzzing and measuring the session modules.
#include "cases/users.h"

namespace batchplane::cases {
namespace {

void add_session_costs(std::vector<CostCase>& all) {
  for (const uint32_t users : {8U, 100'000U}) {
    all.push_back(of_users("session_downlink", users, deal_downlink));
    CostCase split = of_users("session_split", users, deal_marked);
    split.params["by"] = "group";
    split.gates = 8;
    all.push_back(std::move(split));
    all.push_back(of_users("session_hold", users, deal_marked));
    all.push_back(of_users("session_enforce", users, deal_marked));
    CostCase quotas = of_users("session_enforce", users, deal_marked);
    quotas.label += ", quotas";
    Dict given = quotas.params["synthetic"].as_dict();
    given["quota_bytes"] = int64_t{1'000'000'000'000'000'000};
    quotas.params["synthetic"] = given;
    all.push_back(std::move(quotas));
  }
}

void edit(Module& module, uint32_t which, uint32_t id) {
  if (which >= 4) return (void)module.command("delete", Dict{{"seid", 3 + id % 3}});
  const Dict pdr{{"id", id % 3}, {"source", "core"}, {"far", 0}};
  module.command("add", Dict{{"seid", 1 + id % 5},
                             {"ue", net::format_ipv4(0x0a000100 + id)},
                             {"pdrs", List{pdr}},
                             {"fars", List{Dict{{"id", 0}}}}});
}

// Rules 0 to 7, to which marked packets belong. The LAN and WAN addresses of the frames are users.
constexpr const char* kUsers = R"({"table": "users", "by": "bearer", "sessions": [
    {"seid": 1, "ue": "10.0.2.2", "ue6": "2001:db8:2::/64",
     "pdrs": [{"id": 1, "source": "access", "teid": 77, "far": 0, "qers": [1, 2], "urrs": [1]},
              {"id": 2, "source": "access", "teid": 78, "qfi": 5, "far": 0},
              {"id": 3, "source": "core", "far": 1, "qers": [1], "urrs": [1], "precedence": 9,
               "filters": ["permit out udp from any 5-60 to any",
                           "permit out ip from 10.0.1.0/24 to assigned"]},
              {"id": 4, "source": "core", "far": 2, "qers": [2, 3], "bearer": 1}],
     "fars": [{"id": 0}, {"id": 1, "teid": 9, "peer": "10.0.1.2"},
              {"id": 2, "teid": 10, "peer": "2001:db8:1::2"}],
     "qers": [{"id": 1, "qfi": 9, "mbr_up_bps": 1000000, "mbr_down_bps": 1000000},
              {"id": 2, "mbr_down_bps": 5000000}, {"id": 3, "gate_up": "closed"}],
     "urrs": [{"id": 1, "volume_bytes": 5000, "time_ns": 1000000, "quota_bytes": 60000,
                "up_quota_bytes": 30000, "quota_ns": 1000000000}]},
    {"seid": 2, "ue": "10.0.1.2",
     "pdrs": [{"id": 1, "source": "access", "teid": 79, "far": 0},
              {"id": 2, "source": "core", "far": 1},
              {"id": 3, "source": "access", "teid": 80, "far": 2, "qers": [1]},
              {"id": 4, "source": "access", "teid": 80, "far": 0, "qfi": 6}],
     "fars": [{"id": 0}, {"id": 1, "teid": 11, "peer": "10.0.1.3", "action": "buffer"},
              {"id": 2, "action": "drop"}],
     "qers": [{"id": 1, "gate_up": "closed"}]}]})";

const AddCases kSessionCases{
    {.fuzz = {{"session_downlink", kUsers, 2, edit},
              {"session_downlink", R"({"table": "nobody"})", 1, edit},
              {"session_split", R"({"table": "users", "by": "flow", "bearers": 2})", 4},
              {"session_split", R"({"table": "users", "by": "group"})", 2},
              {"session_hold", R"({"table": "users", "hold_pkts": 50, "session_pkts": 20})"},
              {"session_enforce", R"({"table": "users"})"}},
     .cost = add_session_costs}};

}  // namespace
}  // namespace batchplane::cases
