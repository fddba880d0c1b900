// SPDX-License-Identifier: BSD-3-Clause
// packet_pool.h - allocates and frees packets in bulk, last in first out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/packet/packet.h"

#if BATCHPLANE_DPDK
#include <rte_mempool.h>

#include <algorithm>
#else
#include <mutex>
#endif

namespace batchplane {

// Made on the control thread; alloc and free from any thread registered with the backend.
class PacketPool {
 public:
  // n_pkts packets with room for `data_bytes` after the headroom. Throws ConfigError when memory runs out,
  // with the amount requested.
  PacketPool(const std::string& name, uint32_t n_pkts, uint32_t data_bytes = 2048);
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // All n or none. Data and metadata are undefined: reset() each packet.
  [[nodiscard]] bool alloc_bulk(Packet** pkts, uint32_t n) noexcept;
  // Prefetches the next n packets that this thread will probably get, to be written. Pays off where another
  // core has freed them: their lines come over while this core does something else.
  void prefetch_next(uint32_t n) noexcept;
  // Frees packets of any pools, with few calls per pool.
  static void free_bulk(Packet** pkts, uint32_t n) noexcept;

  [[nodiscard]] uint32_t size_pkts() const { return n_pkts_; }
  [[nodiscard]] uint32_t data_bytes() const { return data_bytes_; }
  // The memory that holds the packets' data, for devices that read it directly; as few pieces as there are.
  // Empty where every packet is allocated by itself.
  [[nodiscard]] std::vector<std::span<uint8_t>> memory();
  // Exact only while nobody allocates. Slow on DPDK: walks the caches.
  [[nodiscard]] uint32_t available_pkts() const;

#if BATCHPLANE_DPDK
  [[nodiscard]] rte_mempool* mempool() { return pool_; }
#endif

 private:
  uint32_t n_pkts_;
  uint32_t data_bytes_;
#if BATCHPLANE_DPDK
  rte_mempool* pool_;
#else
  void give_back(Packet** pkts, uint32_t n) noexcept;
  std::mutex mutex_;  // this backend is for tests: correctness under sanitizers before speed
  std::vector<Packet> packets_;
  std::unique_ptr<uint8_t[]> buffers_;  // one after another
  std::vector<Packet*> free_;
#endif
};

#if BATCHPLANE_DPDK
inline bool PacketPool::alloc_bulk(Packet** pkts, uint32_t n) noexcept {
  return rte_mempool_get_bulk(pool_, reinterpret_cast<void**>(pkts), n) == 0;
}

inline void PacketPool::prefetch_next(uint32_t n) noexcept {
  const rte_mempool_cache* const cache = rte_mempool_default_cache(pool_, rte_lcore_id());
  if (cache == nullptr) return;
  for (uint32_t i = 1; i <= std::min(n, cache->len); ++i) {
    prefetch_whole(static_cast<Packet*>(cache->objs[cache->len - i]));
  }
}

inline void PacketPool::free_bulk(Packet** pkts, uint32_t n) noexcept {
  uint32_t start = 0;
  while (start < n) {
    rte_mempool* pool = pkts[start]->mbuf()->pool;
    uint32_t end = start + 1;
    while (end < n && pkts[end]->mbuf()->pool == pool) ++end;
    rte_mempool_put_bulk(pool, reinterpret_cast<void**>(pkts + start), end - start);
    start = end;
  }
}
#endif

}  // namespace batchplane
