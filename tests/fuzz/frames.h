// SPDX-License-Identifier: BSD-3-Clause
// frames.h - how an input becomes frames with metadata: one format for all targets that take
// packets.
//
//   byte 0     time step: 2 to this power in ns (modulo 36)
//   byte 1     what the packets know: bits 0-1 network header at (0 = unknown, 14, 18, 22),
//              bits 2-3 interface (0, 1, none), bits 4-6 tables that are edited first, bit 7 the
//              packets are marked as those of one of the first rules of a table of sessions
//   bytes 2-3  next-hop id, also the drop reason (modulo what there is)
//   then up to 8 times: length (2 bytes, modulo 2049), then so many bytes, or what there is
#pragma once

#include <span>
#include <vector>

#include "core/module/drop_reason.h"
#include "core/packet/packet.h"
#include "fuzz.h"

namespace batchplane::fuzz {

inline constexpr uint32_t kMaxFrames = 8;
inline constexpr uint32_t kMostFrameBytes = 2048;
inline constexpr uint32_t kMaxNextHops = 64;

struct Frames {
  uint64_t step_ns = 0;
  uint32_t edit = 0;  // 0 = none
  uint32_t mark = 0;  // 0 = none
  PacketMeta meta{};
  std::vector<std::span<const uint8_t>> all;
};

inline Frames cut_frames(const uint8_t* data, size_t size) {
  ByteReader in(data, size);
  Frames frames;
  frames.step_ns = 1ULL << in.u8() % 36;
  const uint8_t knows = in.u8();
  constexpr uint8_t kOffsets[] = {0, 14, 18, 22};
  constexpr uint16_t kInterfaces[] = {0, 1, kNoInterface, kNoInterface};
  frames.meta.l3_offset_bytes = kOffsets[knows & 3];
  frames.meta.in_interface = kInterfaces[knows >> 2 & 3];
  frames.edit = knows >> 4 & 7;
  const uint16_t id = in.u16();
  if (knows >> 7 != 0) frames.mark = 1U << 24 | id % 8;
  frames.meta.next_hop = id % kMaxNextHops;
  frames.meta.drop_reason = static_cast<uint16_t>(id % drop_reasons().size());
  while (!in.is_empty() && frames.all.size() < kMaxFrames) {
    const uint32_t len_bytes = in.u16() % (kMostFrameBytes + 1);
    frames.all.push_back(in.take(len_bytes));
  }
  tally.frames += frames.all.size();
  return frames;
}

}  // namespace batchplane::fuzz
