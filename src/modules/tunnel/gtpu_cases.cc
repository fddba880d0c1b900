// SPDX-License-Identifier: BSD-3-Clause
// gtpu_cases.cc - inputs for fuzzing and measuring gtpu_encap and gtpu_decap.
#include "cases/users.h"

namespace batchplane::cases {
namespace {

void add_gtpu_costs(std::vector<CostCase>& all) {
  for (const uint32_t users : {8U, 100'000U}) {
    CostCase decap = of_users("gtpu_decap", users, deal_uplink, true);
    decap.gates = 4;
    decap.check = [](Packet& pkt, uint32_t gate, uint32_t) -> std::string {
      return pkt.len_bytes() == 60 ? expect_gate(gate, 0) : "not taken out";
    };
    all.push_back(std::move(decap));
    CostCase encap = of_users("gtpu_encap", users, deal_marked);
    encap.params["local"] = "10.0.0.1";
    encap.check = [](Packet& pkt, uint32_t, uint32_t) {
      const std::string wrong = expect_good_sum(pkt);
      return wrong.empty() ? expect_byte(pkt, 42, 0x30) : wrong;
    };
    all.push_back(std::move(encap));
  }
}

// The users (UEs) are those of session_cases.cc.
const AddCases kGtpuCases{
    {.fuzz = {{"gtpu_decap", R"({"table": "users", "errors_per_s": 1000000, "burst": 100})", 5},
              {"gtpu_decap",
               R"({"any_teid": true, "verify_udp_checksum": false, "local": "10.0.1.1"})", 1},
              {"gtpu_encap", R"({"table": "users", "local": "10.0.2.1"})"},
              {"gtpu_encap",
               R"({"table": "users", "local": "10.0.2.1", "local6": "2001:db8:2::1",
                   "sequence": true, "source_port": 0, "df": false})"}},
     .cost = add_gtpu_costs}};

}  // namespace
}  // namespace batchplane::cases
