// SPDX-License-Identifier: BSD-3-Clause
// napt_cases.cc - inputs for fuzzing napt, with tables small enough to overflow, and for
// benchmarking it with a few connections and with millions.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

constexpr uint32_t kFew = 16;
constexpr uint32_t kMillion = 1'000'000;

std::string expect_source(Packet& pkt, uint8_t first_byte) {
  return expect_byte(pkt, net::kEthBytes + net::kIpSrc, first_byte);
}

CostCase napt(const std::string& label, uint32_t flows, const char* externals) {
  CostCase one = plain(label, "napt",
                       {{"external", List{externals}},
                        {"max_connections", flows < 32768 ? 65536 : 1'100'000},
                        {"udp_timeout_ns", int64_t{86'400'000'000'000}}});
  one.gates = 3;
  one.flows = flows;
  one.feed = Feed::kFlows;
  return one;
}

void add_napt_costs(std::vector<CostCase>& all) {
  CostCase few = with_target(napt("napt, 16 connections", kFew, "30.0.0.1"), 15, 9);
  few.check = [](Packet& pkt, uint32_t gate, uint32_t) {
    const std::string wrong = expect_gate(gate, 0);
    return wrong.empty() ? expect_source(pkt, 30) : wrong;
  };
  all.push_back(few);
  CostCase flood = napt("napt, flood of new connections", kMillion, "30.0.0.0/27");
  flood.params["max_connections"] = 16384;
  flood.params["when_full"] = "evict_transitory";
  flood.note = "nearly each packet opens one, and the oldest transitory one ends for it";
  all.push_back(flood);
  for (const bool is_return : {false, true}) {
    const std::string way = is_return ? ", inbound" : "";
    const auto check = [is_return](Packet&, uint32_t gate, uint32_t) {
      return expect_gate(gate, is_return ? 1 : 0);
    };
    CostCase some = napt("napt, 4096 connections" + way, 4096, "30.0.0.1");
    CostCase many = napt("napt, 1 M connections" + way, kMillion, "30.0.0.0/27");
    for (CostCase* one : {&some, &many}) {
      one->is_return = is_return;
      one->check = check;
      one->note = one == &some ? "at batch 32 at most 20 ns per packet are wanted"
                               : "at batch 32 at most 90 ns per packet are wanted";
      all.push_back(*one);
    }
  }
}

const AddCases kNaptCases{
    {.fuzz = {{"napt",
               R"({"external": ["10.0.2.0/24", "10.0.0.2"], "unmapped": "local",
                   "max_connections": 16, "max_fragments": 4, "when_full": "evict_transitory",
                   "filtering": "address_dependent", "udp_short_ports": [53]})",
               3},
              {"napt",
               R"({"external": ["10.0.0.0/26"], "max_connections": 512, "max_per_host": 8,
                   "port_min": 1, "port_max": 300, "filtering": "address_and_port_dependent"})",
               2},
              {"napt",
               R"({"external": ["10.0.2.7"], "max_connections": 64, "port_min": 1000,
                   "port_max": 1010, "when_full": "evict_transitory", "tcp_loose": false})",
               2}},
     .cost = add_napt_costs}};

}  // namespace
}  // namespace batchplane::cases
