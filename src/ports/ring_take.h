// SPDX-License-Identifier: BSD-3-Clause
// ring_take.h - the consumer's half of a hand-over: takes packets out of a BurstRing and makes them
// whole.
#pragma once

#include "base/burst_ring.h"
#include "core/packet.h"

namespace batchplane::ports {

inline PacketMeta fresh_meta(uint64_t entry_ns) {
  PacketMeta meta{};
  meta.entry_ns = entry_ns;
  meta.in_interface = kNoInterface;
  return meta;
}

// Fetches descriptor, metadata and header without reading any of them first.
inline void prefetch_whole(const uint8_t* pkt) {
  prefetch_for_write(pkt);
#if BATCHPLANE_DPDK
  prefetch_for_write(pkt + 64);
  __builtin_prefetch(pkt + sizeof(rte_mbuf) + kHeadroomBytes);
#endif
}

// Up to max packets with fresh descriptor and metadata. The data lines of the packets after these
// are prefetched: they come from the producer's cache, which takes as long as a module or two.
inline uint32_t take_fresh(BurstRing& ring, Packet** pkts, uint32_t max) noexcept {
  const uint32_t n = ring.consume(max, [pkts](uint32_t i, const BurstSlot& slot) {
    Packet* const pkt = slot.packet<Packet>();
    pkts[i] = pkt;
    pkt->reset(slot.len_bytes());
    pkt->meta() = fresh_meta(slot.entry_ns);
  });
  ring.peek(max, [](const BurstSlot& slot) { prefetch_whole(slot.packet<uint8_t>()); });
  return n;
}

}  // namespace batchplane::ports
