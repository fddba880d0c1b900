// SPDX-License-Identifier: BSD-3-Clause
// case_tools.h - what the cases of modules are made with.
#pragma once

#include <string>

#include "base/net.h"
#include "cases/cases.h"
#include "cases/frames.h"

namespace batchplane::cases {

inline constexpr uint32_t kGates = 16;

[[nodiscard]] std::string text_of(uint32_t number);

// What a check says of a packet: nothing when it is as expected.
[[nodiscard]] std::string expect_gate(uint32_t gate, uint32_t expected);
[[nodiscard]] std::string expect_byte(Packet& pkt, uint32_t offset, uint8_t expected);
[[nodiscard]] std::string expect_good_sum(Packet& pkt);  // of the IPv4 header

// n routes to the flows, each to gate i modulo kGates.
[[nodiscard]] List flow_routes(uint32_t n);

// Frames of kGates flows, of IPv4 and of IPv6.
[[nodiscard]] CostCase plain(const std::string& label, const std::string& kind, Dict params = {});
[[nodiscard]] CostCase plain6(const std::string& label, const std::string& kind, Dict params = {});
// The bound that the bench holds it to.
[[nodiscard]] CostCase with_target(CostCase c, double per_batch_ns, double per_pkt_ns);

// For live commands by number: a host in 10.0.1.0/24 on one of the two interfaces, and its MAC.
[[nodiscard]] Dict numbered_host(uint32_t id);
[[nodiscard]] std::string numbered_mac(uint32_t id);

}  // namespace batchplane::cases
