// SPDX-License-Identifier: BSD-3-Clause
// burst_ring.h - hands packets from one core to another without the producer touching their
// headers.
//
// A slot holds everything that the consumer needs to fill in the packet's mbuf and metadata itself. The
// producer therefore dirties only the packet's data line and a quarter of a ring line.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/spsc_ring.h"

namespace batchplane {

struct BurstSlot {
  uint64_t word;      // pointer in the low 48 bits, length in bytes above
  uint64_t entry_ns;  // when the packet entered, or was due to

  static BurstSlot make(const void* pkt, uint32_t len_bytes, uint64_t entry) {
    return {reinterpret_cast<uint64_t>(pkt) | uint64_t{len_bytes} << 48, entry};
  }
  template <class Packet>
  [[nodiscard]] Packet* packet() const {
    return reinterpret_cast<Packet*>(word & ((1ULL << 48) - 1));
  }
  [[nodiscard]] uint32_t len_bytes() const { return static_cast<uint32_t>(word >> 48); }
};

// Demotes a line that this core has written to the shared cache, from which another core fetches it faster
// than from this core's own cache. CPUs without the instruction treat it as a no-op.
inline void offer_line(const void* line) {
  asm volatile(".byte 0x0f, 0x1c, 0x00" : : "a"(line) : "memory");  // cldemote (%rax)
}

using BurstRing = SpscRing<BurstSlot>;

// The producer's counts of packets that are not in the ring. Single writer: the producer.
struct ProducerCounts {
  std::atomic<uint64_t> lost_pkts{0};     // dropped: too late by the time there was room
  std::atomic<uint64_t> backlog_pkts{0};  // due, and waiting for room
};

}  // namespace batchplane
