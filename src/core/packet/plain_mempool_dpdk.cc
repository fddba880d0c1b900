// SPDX-License-Identifier: BSD-3-Clause
// plain_mempool_dpdk.cc - allocates packets in plain memory on demand, and takes them back.
#include "core/packet/plain_mempool_dpdk.h"

#include <rte_mbuf.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace batchplane {
namespace {

constexpr std::align_val_t kLine{64};

struct FreeMemory {
  void operator()(void* memory) const { ::operator delete(memory, kLine); }
};

struct Store {
  uint32_t room_bytes;
  uint32_t n_unmade;
  std::vector<std::unique_ptr<void, FreeMemory>> made;
  std::vector<void*> free;
};

Store& store_of(const rte_mempool* pool) { return *static_cast<Store*>(pool->pool_data); }

void* make_packet(rte_mempool* pool, Store& store) {
  void* const memory = ::operator new(sizeof(rte_mbuf) + store.room_bytes, kLine);
  store.made.emplace_back(memory);
  auto* const mbuf = static_cast<rte_mbuf*>(std::memset(memory, 0, sizeof(rte_mbuf)));
  mbuf->buf_addr = mbuf + 1;
  mbuf->buf_len = static_cast<uint16_t>(store.room_bytes);
  mbuf->data_off = RTE_PKTMBUF_HEADROOM;
  mbuf->pool = pool;
  mbuf->nb_segs = 1;
  mbuf->port = RTE_MBUF_PORT_INVALID;
  rte_mbuf_refcnt_set(mbuf, 1);
  return mbuf;
}

int nothing_to_do(rte_mempool* /*pool*/) { return 0; }

int put(rte_mempool* pool, void* const* pkts, unsigned n) {
  Store& store = store_of(pool);
  store.free.insert(store.free.end(), pkts, pkts + n);
  return 0;
}

int get(rte_mempool* pool, void** pkts, unsigned n) {
  Store& store = store_of(pool);
  if (store.free.size() + store.n_unmade < n) return -ENOBUFS;
  for (unsigned i = 0; i < n; ++i) {
    if (store.free.empty()) {
      pkts[i] = make_packet(pool, store);
      --store.n_unmade;
    } else {
      pkts[i] = store.free.back();
      store.free.pop_back();
    }
  }
  return 0;
}

unsigned count(const rte_mempool* pool) {
  const Store& store = store_of(pool);
  return static_cast<unsigned>(store.free.size()) + store.n_unmade;
}

int ops_index() {
  static const int kIndex = [] {
    rte_mempool_ops ops{};
    std::strcpy(ops.name, "plain");
    ops.alloc = nothing_to_do;
    ops.enqueue = put;
    ops.dequeue = get;
    ops.get_count = count;
    return rte_mempool_register_ops(&ops);
  }();
  return kIndex;
}

}  // namespace

rte_mempool* make_plain_mempool(uint32_t n_pkts, uint32_t room_bytes) {
  auto store = std::make_unique<Store>(Store{room_bytes, n_pkts, {}, {}});
  auto pool = std::make_unique<rte_mempool>();
  std::strcpy(pool->name, "plain");
  pool->size = n_pkts;
  pool->elt_size = static_cast<uint32_t>(sizeof(rte_mbuf)) + room_bytes;
  pool->ops_index = ops_index();
  pool->pool_data = store.release();
  return pool.release();
}

void free_plain_mempool(rte_mempool* pool) {
  delete &store_of(pool);
  delete pool;
}

}  // namespace batchplane
