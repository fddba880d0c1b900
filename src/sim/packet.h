// SPDX-License-Identifier: BSD-3-Clause
// packet.h - a packet without bytes, and the pool that packets come from and return to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace batchplane::sim {

inline constexpr uint32_t kUntraced = ~0U;

struct Packet {
  uint64_t entry_ns = 0;       // due time, or time put into the ring
  uint64_t task_entry_ns = 0;  // time put where the present task polls it; age limits count from it
  uint64_t polled_ns = 0;      // taken out of its ring by the present task
  uint32_t flow = 0;           // traffic flow, over all generators
  uint32_t size_bytes = 0;     // on the wire
  uint32_t trace_id = kUntraced;
  uint32_t departure_ticks = 0;  // if has_departure
  uint16_t path_state = 0;
  uint16_t task = 0;
  bool has_departure = false;

  // Without the checksum, which is on the wire only.
  [[nodiscard]] uint32_t len_bytes() const {
    constexpr uint32_t kFcsBytes = 4;
    return std::max(size_bytes, kFcsBytes + 1) - kFcsBytes;
  }
};

// Grows with the packets in flight and never shrinks; last in, first out. Owner: one simulation.
class PacketPool {
 public:
  Packet* take() {
    if (free_.empty()) grow();
    Packet* const pkt = free_.back();
    free_.pop_back();
    return pkt;
  }
  void put(Packet* pkt) { free_.push_back(pkt); }
  [[nodiscard]] uint64_t in_use_pkts() const { return blocks_.size() * kBlockPkts - free_.size(); }
  [[nodiscard]] uint64_t size_pkts() const { return blocks_.size() * kBlockPkts; }

 private:
  static constexpr size_t kBlockPkts = 1024;
  void grow() {
    blocks_.push_back(std::make_unique<Packet[]>(kBlockPkts));
    free_.reserve(blocks_.size() * kBlockPkts);
    for (size_t i = kBlockPkts; i-- > 0;) free_.push_back(&blocks_.back()[i]);
  }

  std::vector<std::unique_ptr<Packet[]>> blocks_;
  std::vector<Packet*> free_;
};

}  // namespace batchplane::sim
