// SPDX-License-Identifier: BSD-3-Clause
// ring_take.h - the consumer's side: takes packets out of a BurstRing and fills in their mbuf and metadata.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/burst_ring.h"
#include "core/packet/packet.h"

namespace batchplane::ports {

constexpr PacketMeta fresh_meta(uint64_t entry_ns) {
  PacketMeta meta{};
  meta.entry_ns = entry_ns;
  meta.in_interface = kNoInterface;
  return meta;
}

// The same in place, word by word: a whole struct would be copied through the stack, in pieces that the CPU
// cannot forward to the wider loads.
inline void write_fresh_meta(PacketMeta& meta, uint64_t entry_ns) {
  constexpr auto kWords =
      std::bit_cast<std::array<uint64_t, sizeof(PacketMeta) / 8>>(fresh_meta(0));
  auto* const to = reinterpret_cast<uint8_t*>(&meta);
  static_assert(offsetof(PacketMeta, entry_ns) == 0);
  std::memcpy(to, &entry_ns, 8);
  for (size_t i = 1; i < kWords.size(); ++i) std::memcpy(to + i * 8, &kWords[i], 8);
}

// Takes up to max packets, with fresh mbuf and metadata. Prefetches the data lines of the packets after
// these: they come from the producer's cache, which takes as long as a module or two.
inline uint32_t take_fresh(BurstRing& ring, Packet** pkts, uint32_t max) noexcept {
  const uint32_t n = ring.consume(max, [pkts](uint32_t i, const BurstSlot& slot) {
    Packet* const pkt = slot.packet<Packet>();
    pkts[i] = pkt;
    pkt->reset(slot.len_bytes());
    write_fresh_meta(pkt->meta(), slot.entry_ns);
  });
  ring.peek(max, [](const BurstSlot& slot) { prefetch_whole(slot.packet<Packet>()); });
  return n;
}

}  // namespace batchplane::ports
