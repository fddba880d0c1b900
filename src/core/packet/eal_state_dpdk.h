// SPDX-License-Identifier: BSD-3-Clause
// eal_state_dpdk.h - whether DPDK's environment was started, whose memory pools and tables take.
//
// Programs that only look at packets do without: a pool and tables then take plain memory.
#pragma once

#include <rte_eal.h>
#include <rte_tailq.h>

namespace batchplane {

// What is registered before the environment starts is there to be found afterwards only.
[[nodiscard]] inline bool has_eal() { return rte_eal_tailq_lookup("RTE_MEMPOOL") != nullptr; }

}  // namespace batchplane
