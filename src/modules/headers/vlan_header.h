// SPDX-License-Identifier: BSD-3-Clause
// vlan_header.h - 802.1Q and 802.1ad tags: where they are, how many, and what follows them.
#pragma once

#include <cstdint>

#include "base/net_headers.h"
#include "core/module/args.h"
#include "core/packet/packet.h"

namespace batchplane::vlan {

inline constexpr uint32_t kTagBytes = net::kVlanTagBytes;
inline constexpr uint16_t kCustomerTag = 0x8100;
inline constexpr uint16_t kServiceTag = 0x88a8;
inline constexpr uint32_t kMaxTags = 8;
inline constexpr uint32_t kVidMask = 0xfff;
inline constexpr uint32_t kNoVid = 0;      // IEEE 802.1Q: a priority tag; the frame is untagged
inline constexpr uint32_t kMaxVid = 4094;  // 4095 is reserved

// The first tag of a frame, if it has one, and what follows it, in memory order.
struct FirstTag {
  // Frames of this length are long enough for the load.
  static constexpr uint32_t kFrameBytes = net::kMacPairBytes + sizeof(uint64_t);

  uint64_t word;

  explicit FirstTag(const uint8_t* frame) : word(load64_raw(frame + net::kMacPairBytes)) {}
  [[nodiscard]] uint32_t type_raw() const { return word & 0xffff; }
  [[nodiscard]] uint32_t vid() const {
    return net::be16(static_cast<uint16_t>(word >> 16)) & kVidMask;
  }
  [[nodiscard]] uint32_t next_type_raw() const { return word >> 32 & 0xffff; }
};

// An EtherType in memory order, read on a little-endian machine.
inline bool is_tag_raw(uint32_t type) { return type == 0x0081 || type == 0xa888; }
inline bool is_tag(uint16_t type) { return type == kCustomerTag || type == kServiceTag; }

struct TagCount {
  uint32_t n = 0;
  bool is_cut = false;  // the frame ends inside the tags, or before its type
};

// Tag `i` of a frame, or what follows the last tag: then only `type` need be readable.
inline const net::VlanTag& tag_at(const uint8_t* frame, uint32_t i) {
  return header_at<net::VlanTag>(frame + net::kMacPairBytes + i * kTagBytes);
}
inline net::VlanTag& tag_at(uint8_t* frame, uint32_t i) {
  return header_at<net::VlanTag>(frame + net::kMacPairBytes + i * kTagBytes);
}

// Stops counting at `max_tags` + 1.
inline TagCount count_tags(const uint8_t* frame, uint32_t len_bytes, uint32_t max_tags) {
  TagCount tags;
  for (;; ++tags.n) {
    tags.is_cut = len_bytes < net::kEthBytes + tags.n * kTagBytes;
    if (tags.is_cut || tags.n > max_tags || !is_tag(tag_at(frame, tags.n).type)) return tags;
  }
}

// Updates the header offsets when bytes are added or removed in front of the network header.
inline void move_headers(PacketMeta& meta, uint32_t l3_offset_bytes, int32_t moved_bytes) {
  const int32_t l4 = meta.l4_offset_bytes + moved_bytes;
  meta.l4_offset_bytes =
      static_cast<uint8_t>(meta.l4_offset_bytes == 0 || l4 < 0 || l4 > 255 ? 0 : l4);
  meta.l3_offset_bytes = static_cast<uint8_t>(l3_offset_bytes);
}

// Copies the MAC addresses; the tags between are up to the caller.
inline void move_addresses(const uint8_t* from, uint8_t* to) {
  header_at<net::Ethernet>(to).set_macs(header_at<net::Ethernet>(from).macs());
}

inline void pop_tags(Packet& pkt, uint32_t n_tags) {
  uint8_t* const data = pkt.data();
  move_addresses(data, data + n_tags * kTagBytes);
  pkt.pull_front(n_tags * kTagBytes);
}

inline bool has_priority_tag(Packet& pkt) {
  if (pkt.len_bytes() < net::kEthBytes + kTagBytes) return false;
  const net::VlanTag& tag = tag_at(pkt.data(), 0);
  return is_tag(tag.type) && (tag.control & kVidMask) == kNoVid;
}

inline ParamSpec max_tags_spec() {
  return {.name = "max_tags",
          .type = ParamType::kInt,
          .unit = "tags",
          .default_value = 2,
          .help = "frames with more tags than this are dropped",
          .min = 1,
          .max = kMaxTags};
}

}  // namespace batchplane::vlan
