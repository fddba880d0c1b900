// SPDX-License-Identifier: BSD-3-Clause
// burst_ring.h - hands packets from one core to another without the producer touching their
// headers.
//
// A slot holds all that the consumer needs to write the packet's descriptor and metadata itself: so
// the producer dirties the line with the packet's data and a quarter of a ring line, nothing else.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/spsc_ring.h"

namespace batchplane {

struct BurstSlot {
  uint64_t word;      // pointer in the low 48 bits, length in bytes above
  uint64_t entry_ns;  // when the packet entered, or was due

  static BurstSlot make(const void* pkt, uint32_t len_bytes, uint64_t entry) {
    return {reinterpret_cast<uint64_t>(pkt) | uint64_t{len_bytes} << 48, entry};
  }
  template <class Packet>
  [[nodiscard]] Packet* packet() const {
    return reinterpret_cast<Packet*>(word & ((1ULL << 48) - 1));
  }
  [[nodiscard]] uint32_t len_bytes() const { return static_cast<uint32_t>(word >> 48); }
};

// Offers a line that this core has written to the cache that the cores share: another core fetches
// it from there sooner than out of this one's. CPUs without the instruction take it for a
// no-operation.
inline void offer_line(const void* line) {
  asm volatile(".byte 0x0f, 0x1c, 0x00" : : "a"(line) : "memory");  // cldemote (%rax)
}

using BurstRing = SpscRing<BurstSlot>;

// What the producer tells of packets that are not in the ring. One writer, the producer.
struct ProducerCounts {
  std::atomic<uint64_t> lost_pkts{0};     // given up: too late when there was room again
  std::atomic<uint64_t> backlog_pkts{0};  // due, and waiting for room
};

}  // namespace batchplane
