// SPDX-License-Identifier: BSD-3-Clause
// eal_state_dpdk.h - whether DPDK's EAL was initialised: then pools and tables use its memory.
//
// Programs that only inspect packets do without: pools and tables then use plain memory.
#pragma once

#include <rte_eal.h>
#include <rte_tailq.h>

namespace batchplane {

// Tail queues registered before rte_eal_init() can be looked up only after it.
[[nodiscard]] inline bool has_eal() { return rte_eal_tailq_lookup("RTE_MEMPOOL") != nullptr; }

}  // namespace batchplane
