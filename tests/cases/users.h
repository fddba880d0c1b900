// SPDX-License-Identifier: BSD-3-Clause
// users.h - cost cases of mobile users: 8 of them, or 100,000, each packet that of a random one.
#pragma once

#include "cases/case_tools.h"

namespace batchplane::cases {

// Gives a packet to one of them. Sums are not mended: nothing here reads them.
void deal_uplink(Packet& pkt, uint32_t user);
void deal_downlink(Packet& pkt, uint32_t user);
void deal_marked(Packet& pkt, uint32_t user);

[[nodiscard]] CostCase of_users(const std::string& kind, uint32_t users,
                                void (*deal)(Packet&, uint32_t), bool is_uplink = false);

}  // namespace batchplane::cases
