// SPDX-License-Identifier: BSD-3-Clause
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf_pool_ops.h>

#include <algorithm>

#include "base/error.h"
#include "core/packet/eal_state_dpdk.h"
#include "core/packet/packet_pool.h"
#include "core/packet/plain_mempool_dpdk.h"

namespace batchplane {

namespace {
// Large enough that a burst-sized alloc or free rarely reaches the shared pool.
constexpr uint32_t kCachePkts = RTE_MEMPOOL_CACHE_MAX_SIZE;

// On 4 KB pages a default pool puts one packet into each page, for devices that need contiguous bus
// addresses: all packets then map to the same few sets of the L1 cache. Without hugepages no device reads
// this memory, so packets may be packed.
uint32_t layout_flags() { return rte_eal_has_hugepages() != 0 ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG; }

rte_mempool* make_pool(const std::string& name, uint32_t n_pkts, uint32_t cache_pkts,
                       uint32_t room_bytes) {
  rte_mempool* pool = rte_mempool_create_empty(
      name.c_str(), n_pkts, static_cast<uint32_t>(sizeof(rte_mbuf)) + room_bytes, cache_pkts,
      sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, layout_flags());
  if (pool == nullptr) return nullptr;
  rte_pktmbuf_pool_private sizes{};
  sizes.mbuf_data_room_size = static_cast<uint16_t>(room_bytes);
  // Last in first out, if that driver is available: a ring would cycle through all packets of the pool, and
  // more than those in flight do not fit into the L2 cache.
  const bool has_ops = rte_mempool_set_ops_byname(pool, "stack", nullptr) == 0 ||
                       rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr) == 0;
  rte_pktmbuf_pool_init(pool, &sizes);
  if (!has_ops || rte_mempool_populate_default(pool) < 0) {
    rte_mempool_free(pool);
    return nullptr;
  }
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return pool;
}
}  // namespace

PacketPool::PacketPool(const std::string& name, uint32_t n_pkts, uint32_t data_bytes)
    : n_pkts_(n_pkts), data_bytes_(data_bytes) {
  if (!has_eal()) {
    pool_ = make_plain_mempool(n_pkts, kHeadroomBytes + data_bytes);
    return;
  }
  const uint32_t cache = n_pkts >= 4 * kCachePkts ? kCachePkts : 0;
  pool_ = make_pool(name, n_pkts, cache, kHeadroomBytes + data_bytes);
  if (pool_ == nullptr) {
    throw ConfigError("cannot make a pool of " + std::to_string(n_pkts) + " packets of " +
                          std::to_string(data_bytes) + " bytes: " + rte_strerror(rte_errno),
                      "engine.pool_pkts", "give the daemon more memory, or make the pool smaller");
  }
}

PacketPool::~PacketPool() { has_eal() ? rte_mempool_free(pool_) : free_plain_mempool(pool_); }

std::vector<std::span<uint8_t>> PacketPool::memory() {
  std::vector<std::span<uint8_t>> pieces;
  if (!has_eal()) return pieces;
  rte_mempool_mem_iter(
      pool_,
      [](rte_mempool* /*pool*/, void* to, rte_mempool_memhdr* piece, unsigned /*index*/) {
        auto& all = *static_cast<std::vector<std::span<uint8_t>>*>(to);
        all.emplace_back(static_cast<uint8_t*>(piece->addr), piece->len);
      },
      &pieces);
  std::ranges::sort(pieces, {}, &std::span<uint8_t>::data);
  std::vector<std::span<uint8_t>> joined;
  for (const auto& piece : pieces) {
    if (!joined.empty() && joined.back().data() + joined.back().size() == piece.data()) {
      joined.back() = {joined.back().data(), joined.back().size() + piece.size()};
    } else {
      joined.push_back(piece);
    }
  }
  return joined;
}

uint32_t PacketPool::available_pkts() const { return rte_mempool_avail_count(pool_); }

}  // namespace batchplane
