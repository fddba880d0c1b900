// SPDX-License-Identifier: BSD-3-Clause
// load_balancer_flows.h - from a batch of packets to the slots of their flows.
#pragma once

#include "core/module/context.h"
#include "modules/balance/load_balancer_table.h"

namespace batchplane {

// slots[i] = where the backend of packet i is written; of packets that no backend gets, too.
void find_slots(const LoadBalancerTable& table, uint64_t seed, Batch& batch,
                const uint16_t** slots) noexcept;

}  // namespace batchplane
