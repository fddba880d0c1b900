// SPDX-License-Identifier: BSD-3-Clause
// packet.h - a packet and its metadata; the only header that knows how a packet is represented.
//
// Two backends with one interface: DPDK mbufs (BATCHPLANE_DPDK=1) and plain heap memory, on which
// the whole engine builds and runs without DPDK (thread sanitizer, fuzzing, laptops). A packet is one
// contiguous segment of at most kMaxFrameBytes; ports ensure that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/net_headers.h"
#include "base/prefetch.h"

#if BATCHPLANE_DPDK
#include <rte_mbuf.h>
#endif

namespace batchplane {

// A packet's metadata for engine and modules.
struct PacketMeta {
  uint64_t entry_ns;             // entry into the pipeline: ring enqueue, due time, or RX burst
  uint32_t task_entry_delta_ns;  // time from entry_ns to entry into the current task (saturates)
  uint32_t next_hop;             // id given by the last lookup
  uint32_t tunnel_id;
  uint16_t path_state;  // state of the flow automaton, where several states can reach a node
  uint16_t vrf;
  uint16_t in_interface;
  uint8_t l3_offset_bytes = 14;  // untagged Ethernet, until a module finds otherwise
  uint8_t l4_offset_bytes;       // 0 = unknown
  uint16_t drop_reason;          // set when the packet went to a drop gate
  uint8_t trace_id;              // 0 = not traced
  uint8_t flags;
};
static_assert(sizeof(PacketMeta) == 32, "fits the free half of the second mbuf line");

inline constexpr uint8_t kMetaOriginated = 1;  // made by the router itself
inline constexpr uint8_t kMetaMarked = 2;      // mark() holds what a module has set
inline constexpr uint8_t kMetaDeparture = 4;   // departure_ticks() holds what a module has set
inline constexpr uint16_t kNoInterface = 0xffff;

inline constexpr uint32_t kHeadroomBytes = 128;
inline constexpr uint32_t kMaxFrameBytes = 9728;

// Departure times are in steps of 16 ns and wrap after 68 s.
inline constexpr uint32_t kDepartureTickShift = 4;

class PacketPool;

#if BATCHPLANE_DPDK

// The metadata occupies the dynamic fields in the second mbuf cache line; nobody else registers any.
class Packet {
 public:
  static Packet* from(rte_mbuf* mbuf) { return reinterpret_cast<Packet*>(mbuf); }
  [[nodiscard]] rte_mbuf* mbuf() { return &mbuf_; }

  [[nodiscard]] uint8_t* data() { return rte_pktmbuf_mtod(&mbuf_, uint8_t*); }
  [[nodiscard]] uint32_t len_bytes() const { return mbuf_.data_len; }
  [[nodiscard]] uint32_t headroom_bytes() const { return mbuf_.data_off; }
  [[nodiscard]] uint32_t tailroom_bytes() const {
    return static_cast<uint32_t>(mbuf_.buf_len) - mbuf_.data_off - mbuf_.data_len;
  }
  void set_len_bytes(uint32_t len) {
    mbuf_.data_len = static_cast<uint16_t>(len);
    mbuf_.pkt_len = len;
  }
  // Moves the start of the data; the caller has checked headroom or length.
  void push_front(uint32_t n_bytes) {
    mbuf_.data_off = static_cast<uint16_t>(mbuf_.data_off - n_bytes);
    set_len_bytes(len_bytes() + n_bytes);
  }
  void pull_front(uint32_t n_bytes) {
    mbuf_.data_off = static_cast<uint16_t>(mbuf_.data_off + n_bytes);
    set_len_bytes(len_bytes() - n_bytes);
  }
  // A fresh packet of `len` bytes after the standard headroom; two stores.
  void reset(uint32_t len) {
    mbuf_.data_off = kHeadroomBytes;
    mbuf_.ol_flags = 0;
    set_len_bytes(len);
  }
  [[nodiscard]] PacketMeta& meta() {
    return *reinterpret_cast<PacketMeta*>(reinterpret_cast<uint8_t*>(&mbuf_) + 96);
  }
  // A number that modules leave for later modules; 0 until one is set.
  [[nodiscard]] uint32_t mark() {
    return (meta().flags & kMetaMarked) != 0 ? mbuf_.hash.fdir.hi : 0;
  }
  void set_mark(uint32_t mark) {
    mbuf_.hash.fdir.hi = mark;
    meta().flags |= kMetaMarked;
  }
  // The earliest departure: a scheduler that keeps such times does not release the packet before.
  // Only with has_departure(); in ticks that wrap, and so to be read within half a minute.
  [[nodiscard]] bool has_departure() { return (meta().flags & kMetaDeparture) != 0; }
  [[nodiscard]] uint32_t departure_ticks() const { return mbuf_.hash.fdir.lo; }
  void set_departure_ticks(uint32_t ticks) {
    mbuf_.hash.fdir.lo = ticks;
    meta().flags |= kMetaDeparture;
  }
  void prefetch_meta() {
    __builtin_prefetch(&mbuf_);
    __builtin_prefetch(reinterpret_cast<uint8_t*>(&mbuf_) + 64);
  }
  void prefetch_data() { __builtin_prefetch(data()); }

 private:
  rte_mbuf mbuf_;
};
static_assert(sizeof(rte_mbuf) == 128);
static_assert(RTE_PKTMBUF_HEADROOM == kHeadroomBytes);

#else

class Packet {
 public:
  [[nodiscard]] uint8_t* data() { return buffer_ + data_off_; }
  [[nodiscard]] uint32_t len_bytes() const { return len_; }
  [[nodiscard]] uint32_t headroom_bytes() const { return data_off_; }
  [[nodiscard]] uint32_t tailroom_bytes() const { return buffer_bytes_ - data_off_ - len_; }
  void set_len_bytes(uint32_t len) { place(data_off_, len); }
  void push_front(uint32_t n_bytes) { place(data_off_ - n_bytes, len_ + n_bytes); }
  void pull_front(uint32_t n_bytes) { place(data_off_ + n_bytes, len_ - n_bytes); }
  void reset(uint32_t len) { place(kHeadroomBytes, len); }
  [[nodiscard]] PacketMeta& meta() { return meta_; }
  [[nodiscard]] uint32_t mark() { return (meta_.flags & kMetaMarked) != 0 ? mark_ : 0; }
  void set_mark(uint32_t mark) {
    mark_ = mark;
    meta_.flags |= kMetaMarked;
  }
  [[nodiscard]] bool has_departure() const { return (meta_.flags & kMetaDeparture) != 0; }
  [[nodiscard]] uint32_t departure_ticks() const { return departure_ticks_; }
  void set_departure_ticks(uint32_t ticks) {
    departure_ticks_ = ticks;
    meta_.flags |= kMetaDeparture;
  }
  void prefetch_meta() {}
  void prefetch_data() {}

 private:
  friend class PacketPool;
  // Under AddressSanitizer everything outside the data is poisoned.
  void place(uint32_t data_off, uint32_t len);

  PacketMeta meta_{};
  uint8_t* buffer_ = nullptr;
  PacketPool* pool_ = nullptr;
  uint32_t buffer_bytes_ = 0;
  uint32_t mark_ = 0;
  uint32_t departure_ticks_ = 0;
  uint32_t data_off_ = kHeadroomBytes;
  uint32_t len_ = 0;
};

#endif

// The caller has checked that the packet is long enough.
template <HeaderView Header>
[[nodiscard]] inline Header& header_in(Packet& pkt, uint32_t offset_bytes) {
  return header_at<Header>(pkt.data() + offset_bytes);
}

// What modules have noted of a packet besides PacketMeta.
inline void copy_notes(Packet& from, Packet& to) {
  if ((from.meta().flags & kMetaMarked) != 0) to.set_mark(from.mark());
  if (from.has_departure()) to.set_departure_ticks(from.departure_ticks());
}
inline void copy_meta(Packet& from, Packet& to) {
  to.meta() = from.meta();
  copy_notes(from, to);
}

[[nodiscard]] inline uint64_t task_entry_ns(Packet& pkt) {
  const PacketMeta& meta = pkt.meta();
  return meta.entry_ns + meta.task_entry_delta_ns;
}
inline void enter_task(Packet& pkt, uint64_t now_ns) {
  PacketMeta& meta = pkt.meta();
  const uint64_t waited_ns = now_ns - std::min(now_ns, meta.entry_ns);
  meta.task_entry_delta_ns =
      static_cast<uint32_t>(std::min<uint64_t>(waited_ns, std::numeric_limits<uint32_t>::max()));
}

// Prefetches mbuf, metadata and headers without reading any of them first.
inline void prefetch_whole(const Packet* packet) {
  const auto* const pkt = reinterpret_cast<const uint8_t*>(packet);
  prefetch_for_write(pkt);
#if BATCHPLANE_DPDK
  prefetch_for_write(pkt + 64);
  prefetch_for_write(pkt + sizeof(rte_mbuf) + kHeadroomBytes);
#endif
}

}  // namespace batchplane
