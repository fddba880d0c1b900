// SPDX-License-Identifier: BSD-3-Clause
// thread.h - makes a thread known to the packet backend while the object lives.
#pragma once

#if BATCHPLANE_DPDK
#include <rte_lcore.h>
#endif

namespace batchplane {

// Threads that allocate or free packets need one: without it DPDK gives them no cache. Threads that
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
  // Not trivial, so that an object that is only there to live raises no warning.
  PacketThread() {}   // NOLINT(modernize-use-equals-default)
  ~PacketThread() {}  // NOLINT(modernize-use-equals-default)
#endif
  PacketThread(const PacketThread&) = delete;
  PacketThread& operator=(const PacketThread&) = delete;
};

}  // namespace batchplane
