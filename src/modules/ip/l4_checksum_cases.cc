// SPDX-License-Identifier: BSD-3-Clause
// l4_checksum_cases.cc - inputs for fuzzing and measuring l4_checksum.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_l4_checksum_costs(std::vector<CostCase>& all) {
  CostCase update =
      plain("l4_checksum update", "l4_checksum", {{"mode", "update"}, {"fill_zero_udp", true}});
  update.check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    const uint8_t* ip = pkt.data() + net::kEthBytes;
    const uint32_t len = net::load16(ip + net::kIpTotalLength) - net::kIpv4Bytes;
    const uint32_t seed = net::checksum_add(ip + net::kIpSrc, 8, net::kProtoUdp + len);
    return net::checksum_finish(net::checksum_add(ip + net::kIpv4Bytes, len, seed)) == 0
               ? ""
               : "the checksum is wrong";
  };
  all.push_back(std::move(update));
  all.push_back(plain("l4_checksum check", "l4_checksum"));
}

const AddCases kL4ChecksumCases{
    {.fuzz = {{"l4_checksum", "{}"},
              {"l4_checksum", R"({"mode": "update", "fill_zero_udp": true})"},
              {"l4_checksum", R"({"allow_zero_udp6": true})"}},
     .cost = add_l4_checksum_costs}};

}  // namespace
}  // namespace batchplane::cases
