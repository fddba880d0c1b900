// SPDX-License-Identifier: BSD-3-Clause
// load_balancer_flows.h - finds the Maglev slot for the flow of each packet in a batch.
#pragma once

#include "core/module/context.h"
#include "modules/balance/load_balancer_table.h"

namespace batchplane {

// *slots[i] = backend number of packet i, or one of the first three numbers if it gets no backend.
void find_slots(const LoadBalancerTable& table, uint64_t seed, Batch& batch,
                const uint16_t** slots) noexcept;

}  // namespace batchplane
