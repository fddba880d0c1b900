// SPDX-License-Identifier: BSD-3-Clause
// plain_mempool_dpdk.h - a pool with DPDK's interface over plain memory, for where its environment
// was not started.
#pragma once

#include <rte_mempool.h>

#include <cstdint>

namespace batchplane {

// Packets are made as they are asked for: memory follows those under way. One thread.
[[nodiscard]] rte_mempool* make_plain_mempool(uint32_t n_pkts, uint32_t room_bytes);
void free_plain_mempool(rte_mempool* pool);

}  // namespace batchplane
