// SPDX-License-Identifier: BSD-3-Clause
// icmp6_cases.cc - inputs for fuzzing and measuring icmp6_echo and icmp6_error.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_icmp6_costs(std::vector<CostCase>& all) {
  CostCase error = plain6("icmp6_error, time exceeded", "icmp6_error",
                          {{"errors_per_s", 10'000'000}, {"burst", 1'000'000}});
  error.drop_reason = "hop_limit_expired";
  error.frame = [](uint32_t i) {
    std::vector<uint8_t> frame = udp6_frame(flow_address6(i % kGates));
    frame[0] = 2;  // kRouterMac is a group address; make it unicast
    return frame;
  };
  error.check = [](Packet& pkt, uint32_t, uint32_t) {
    return expect_byte(pkt, net::kEthBytes + net::kIpv6Bytes, 3);
  };
  all.push_back(std::move(error));
  CostCase echo = plain6("icmp6_echo, passed on", "icmp6_echo");
  echo.gates = 3;
  echo.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 1); };
  all.push_back(std::move(echo));
}

const AddCases kIcmp6Cases{
    {.fuzz = {{"icmp6_echo", "{}", 3},
              {"icmp6_error", R"({"table": "main", "errors_per_s": 10000000, "burst": 1000})"},
              {"icmp6_error", R"({"errors_per_s": 1000, "burst": 1})"}},
     .cost = add_icmp6_costs}};

}  // namespace
}  // namespace batchplane::cases
