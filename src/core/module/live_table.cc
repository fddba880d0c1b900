// SPDX-License-Identifier: BSD-3-Clause
// live_table.cc - waits for the workers without a memory barrier in their loops.
#include "core/module/live_table.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/patience.h"

namespace batchplane {
namespace {

bool has_membarrier() {
  static const bool is_registered =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return is_registered;
}

// A worker counts loops with plain stores, which the CPU may still hold in its store buffer while the next
// run already reads tables. Counts read after this call are reliable: each worker has executed a full barrier
// or, where the kernel offers none, far more time has passed than a store buffer takes to drain.
void settle_stores() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (has_membarrier() && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
    return;
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace

void Quiescence::wait() const {
  settle_stores();
  Patience patience;
  for (const Slot& slot : slots_) {
    if (!slot.online.load(std::memory_order_seq_cst)) continue;
    const uint64_t before = slot.loops.load(std::memory_order_acquire);
    while (slot.online.load(std::memory_order_acquire) &&
           slot.loops.load(std::memory_order_acquire) == before) {
      patience.wait();
    }
  }
}

}  // namespace batchplane
