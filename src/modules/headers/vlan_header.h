// SPDX-License-Identifier: BSD-3-Clause
// vlan_header.h - 802.1Q and 802.1ad tags: where they are, how many, and what follows them.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/net.h"
#include "core/args.h"
#include "core/packet.h"

namespace batchplane::vlan {

inline constexpr uint32_t kTagBytes = 4;
inline constexpr uint32_t kTypeOffset = 12;  // of a frame's first type, behind the addresses
inline constexpr uint16_t kCustomerTag = 0x8100;
inline constexpr uint16_t kServiceTag = 0x88a8;
inline constexpr uint32_t kMostTags = 8;
inline constexpr uint32_t kVidMask = 0xfff;
inline constexpr uint32_t kMaxVid = 4094;  // 4095 is reserved
// A frame of this length has all that an 8-byte load of its first tag and what follows takes in.
inline constexpr uint32_t kFastBytes = kTypeOffset + 8;

// A type as it lies in memory, read on a little-endian machine.
inline bool is_tag_raw(uint32_t type) { return type == 0x0081 || type == 0xa888; }
inline bool is_tag(uint16_t type) { return type == kCustomerTag || type == kServiceTag; }

struct TagCount {
  uint32_t n = 0;
  bool is_cut = false;  // the frame ends inside the tags, or before its type
};

// Counts up to one more than `most`.
inline TagCount count_tags(const uint8_t* data, uint32_t len_bytes, uint32_t most) {
  TagCount tags;
  for (uint32_t at = kTypeOffset;; at += kTagBytes) {
    tags.is_cut = len_bytes < at + 2;
    if (tags.is_cut || tags.n > most || !is_tag(net::load16(data + at))) return tags;
    ++tags.n;
  }
}

// Fewer or more bytes stand in front of the network header than before.
inline void move_headers(PacketMeta& meta, uint32_t l3_offset_bytes, int32_t moved_bytes) {
  const int32_t l4 = meta.l4_offset_bytes + moved_bytes;
  meta.l4_offset_bytes =
      static_cast<uint8_t>(meta.l4_offset_bytes == 0 || l4 < 0 || l4 > 255 ? 0 : l4);
  meta.l3_offset_bytes = static_cast<uint8_t>(l3_offset_bytes);
}

// The addresses are copied `bytes` towards the front or the back; the tags between are the
// caller's.
inline void move_addresses(const uint8_t* from, uint8_t* to) {
  uint64_t front;
  uint32_t back;
  std::memcpy(&front, from, 8);
  std::memcpy(&back, from + 8, 4);
  std::memcpy(to, &front, 8);
  std::memcpy(to + 8, &back, 4);
}

inline void pop_tags(Packet& pkt, uint32_t n_tags) {
  uint8_t* const data = pkt.data();
  move_addresses(data, data + n_tags * kTagBytes);
  pkt.pull_front(n_tags * kTagBytes);
}

inline ParamSpec max_tags_spec() {
  return {.name = "max_tags",
          .type = ParamType::kInt,
          .unit = "tags",
          .default_value = 2,
          .help = "frames with more tags than this are dropped",
          .min = 1,
          .max = kMostTags};
}

}  // namespace batchplane::vlan
