// SPDX-License-Identifier: BSD-3-Clause
// plain_mempool_dpdk.h - a mempool in plain memory with DPDK's interface, for use without an initialised EAL.
#pragma once

#include <rte_mempool.h>

#include <cstdint>

namespace batchplane {

// Allocates packets on demand, so memory grows with the packets in flight. Single thread.
[[nodiscard]] rte_mempool* make_plain_mempool(uint32_t n_pkts, uint32_t room_bytes);
void free_plain_mempool(rte_mempool* pool);

}  // namespace batchplane
