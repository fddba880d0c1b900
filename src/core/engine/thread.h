// SPDX-License-Identifier: BSD-3-Clause
// thread.h - registers a thread with the packet backend for the lifetime of the object.
#pragma once

#if BATCHPLANE_DPDK
#include <rte_lcore.h>
#endif

namespace batchplane {

// Needed by threads that allocate or free packets: without it DPDK gives them no mempool cache. Threads that
// are EAL lcores already are left alone.
class [[maybe_unused]] PacketThread {
 public:
#if BATCHPLANE_DPDK
  PacketThread() : is_mine_(rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0) {}
  ~PacketThread() {
    if (is_mine_) rte_thread_unregister();
  }

 private:
  bool is_mine_;

 public:
#else
  // Not trivial, so that an object kept only for its lifetime raises no warning.
  PacketThread() {}   // NOLINT(modernize-use-equals-default)
  ~PacketThread() {}  // NOLINT(modernize-use-equals-default)
#endif
  PacketThread(const PacketThread&) = delete;
  PacketThread& operator=(const PacketThread&) = delete;
};

}  // namespace batchplane
