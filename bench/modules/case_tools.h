// SPDX-License-Identifier: BSD-3-Clause
// case_tools.h - what the lists of measured modules are made with.
#pragma once

#include <string>
#include <utility>

#include "base/net.h"
#include "modules/frames.h"
#include "modules/rig.h"

namespace bench {

using batchplane::Dict;
using batchplane::List;
using batchplane::Packet;
namespace net = batchplane::net;

inline constexpr uint32_t kGates = 16;

inline std::string text_of(uint32_t number) { return std::to_string(number); }

inline std::string expect_gate(uint32_t gate, uint32_t expected) {
  return gate == expected ? "" : "gate " + text_of(gate) + ", not " + text_of(expected);
}
inline std::string expect_byte(Packet& pkt, uint32_t offset, uint8_t expected) {
  const uint8_t found = pkt.data()[offset];
  return found == expected
             ? ""
             : "byte " + text_of(offset) + " is " + text_of(found) + ", not " + text_of(expected);
}
inline std::string expect_good_sum(Packet& pkt) {
  const uint32_t sum = net::checksum_add(pkt.data() + net::kEthBytes, net::kIpv4Bytes);
  return net::checksum_finish(sum) == 0 ? "" : "the header checksum is wrong";
}

inline ModuleCase plain(const std::string& label, const std::string& kind, Dict params = {}) {
  return {.label = label, .kind = kind, .params = std::move(params), .frame = [](uint32_t i) {
            return udp_frame(kRouterMac, flow_address(i % kGates));
          }};
}
inline ModuleCase with_target(ModuleCase c, double per_batch_ns, double per_pkt_ns) {
  c.has_target = true;
  c.target = {per_batch_ns, per_pkt_ns};
  return c;
}

}  // namespace bench
