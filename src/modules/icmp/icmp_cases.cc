// SPDX-License-Identifier: BSD-3-Clause
// icmp_cases.cc - inputs for fuzzing and measuring icmp_echo and icmp_error.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_icmp_costs(std::vector<CostCase>& all) {
  CostCase error = plain("icmp_error, time exceeded", "icmp_error",
                         {{"errors_per_s", 10'000'000}, {"burst", 1'000'000}});
  error.drop_reason = "ttl_expired";
  // kRouterMac is a group address, and no error may be sent about a frame to a group.
  error.frame = [](uint32_t i) { return udp_frame(host_mac(0), flow_address(i % kGates)); };
  error.check = [](Packet& pkt, uint32_t, uint32_t) {
    return expect_byte(pkt, net::kEthBytes + net::kIpv4Bytes, 11);
  };
  all.push_back(std::move(error));
  CostCase echo = plain("icmp_echo, reply", "icmp_echo");
  echo.gates = 2;
  echo.frame = [](uint32_t i) { return ping_frame(i); };
  echo.check = [](Packet& pkt, uint32_t gate, uint32_t) {
    const std::string wrong = expect_gate(gate, 0);
    return wrong.empty() ? expect_byte(pkt, net::kEthBytes + net::kIpv4Bytes, 0) : wrong;
  };
  all.push_back(std::move(echo));
}

const AddCases kIcmpCases{
    {.fuzz = {{"icmp_echo", "{}", 2},
              {"icmp_error", R"({"table": "main", "errors_per_s": 10000000, "burst": 1000})"},
              {"icmp_error", R"({"errors_per_s": 1000, "burst": 1})"}},
     .cost = add_icmp_costs}};

}  // namespace
}  // namespace batchplane::cases
