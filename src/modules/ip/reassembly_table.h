// SPDX-License-Identifier: BSD-3-Clause
// reassembly_table.h - incomplete datagrams: looked up by source, destination, ID, protocol and
// VRF, expired in order of arrival.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/module/context.h"

namespace batchplane {

// One fragment and its range of the payload.
struct FragmentPart {
  Packet* pkt = nullptr;
  uint32_t offset_bytes = 0;
  uint32_t bytes = 0;
};

// Fragments with the same key belong to one datagram (RFC 791, 3.2).
struct DatagramKey {
  uint32_t src = 0;
  uint32_t dst = 0;
  uint16_t id = 0;
  uint16_t vrf = 0;
  uint8_t protocol = 0;
  bool operator==(const DatagramKey&) const = default;
};

struct Datagram {
  static constexpr uint32_t kMaxParts = 64;

  DatagramKey key;
  uint64_t deadline_ns = 0;
  uint32_t received_bytes = 0;
  uint32_t total_bytes = 0;  // of the payload; 0 until the last fragment arrives
  uint32_t n_parts = 0;
  const DropReason* fault = nullptr;  // why it cannot complete; late fragments get the same reason
  uint32_t next = ~0U;                // in its bucket or in the free list
  uint32_t older = ~0U;
  uint32_t newer = ~0U;
  std::array<FragmentPart, kMaxParts> parts;  // sorted by offset
};

// All memory is allocated at construction. Owner: one worker; n_held() any thread.
class ReassemblyTable {
 public:
  static constexpr uint32_t kNone = ~0U;

  ReassemblyTable(uint32_t max_datagrams, uint32_t max_held_pkts);

  Datagram& operator[](uint32_t index) { return datagrams_[index]; }
  [[nodiscard]] uint32_t find(const DatagramKey& key) const;
  // kNone when the table is full.
  uint32_t add(const DatagramKey& key, uint64_t deadline_ns);
  // The datagram must hold no packets.
  void remove(uint32_t index);
  [[nodiscard]] uint32_t oldest() const { return oldest_; }

  enum class Fit : uint8_t { kNew, kDuplicate, kOverlap, kTooMany };
  // Whether the fragment fits without overlap, and at which index (`at`).
  [[nodiscard]] Fit fit(const Datagram& datagram, const FragmentPart& part, uint32_t& at) const;
  void insert(Datagram& datagram, uint32_t at, const FragmentPart& part);
  // `change` may be negative.
  void count_held(int32_t change) {
    n_held_.store(n_held() + static_cast<uint32_t>(change), std::memory_order_relaxed);
  }

  [[nodiscard]] uint32_t n_held() const { return n_held_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint32_t max_held() const { return max_held_; }
  [[nodiscard]] uint32_t capacity() const { return static_cast<uint32_t>(datagrams_.size()); }
  [[nodiscard]] uint32_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] uint32_t bucket_of(const DatagramKey& key) const;

  std::vector<Datagram> datagrams_;
  std::vector<uint32_t> buckets_;
  const uint32_t max_held_;
  uint32_t free_ = kNone;
  uint32_t oldest_ = kNone;
  uint32_t newest_ = kNone;
  std::atomic<uint32_t> size_{0};
  std::atomic<uint32_t> n_held_{0};
};

}  // namespace batchplane
