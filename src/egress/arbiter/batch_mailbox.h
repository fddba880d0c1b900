// SPDX-License-Identifier: BSD-3-Clause
// batch_mailbox.h - a mailbox for clients that hand over batches: one index write per batch.
#pragma once

#include <cstdint>

#include "base/spsc_ring.h"
#include "egress/discipline/descriptor.h"

namespace batchplane::egress {

class BatchMailbox {
 public:
  explicit BatchMailbox(uint32_t capacity_pkts) : ring_(capacity_pkts) {}

  [[nodiscard]] uint32_t capacity_pkts() const { return ring_.capacity(); }

  // Client. Returns the number of packets that fit.
  uint32_t put(const Descriptor* pkts, uint32_t n) noexcept { return ring_.enqueue(pkts, n); }
  bool put(const Descriptor& pkt) noexcept { return ring_.enqueue(&pkt, 1) == 1; }

  // Arbiter.
  uint32_t take(Descriptor* pkts, uint32_t max) noexcept { return ring_.dequeue(pkts, max); }
  void clear() noexcept {}  // take() frees the slots
  [[nodiscard]] bool is_empty() const noexcept { return ring_.size() == 0; }

  [[nodiscard]] uint64_t taken_pkts() const { return ring_.consumed(); }
  [[nodiscard]] uint64_t put_pkts() const { return ring_.produced(); }

 private:
  SpscRing<Descriptor> ring_;
};

}  // namespace batchplane::egress
