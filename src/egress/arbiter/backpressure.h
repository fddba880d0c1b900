// SPDX-License-Identifier: BSD-3-Clause
// backpressure.h - tells clients which flows have full queues, so that they drop those packets
// themselves.
//
// Without it, an arbiter under a flood spends its time taking packets only to refuse them, and
// mailboxes full of such packets have no room for other flows of the same client.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace batchplane::egress {

class Backpressure {
 public:
  explicit Backpressure(uint32_t flows) : is_full_(flows), full_at_pkts_(flows, 0) {}

  // Any client. The flag rarely changes, so reading it causes no cache line transfers.
  [[nodiscard]] bool is_full(uint32_t flow) const noexcept {
    return is_full_[flow].load(std::memory_order_relaxed);
  }

  // Arbiter: begins a round. Equal flows get room at the same time; if all were told at once,
  // taking the packets they then send would keep the arbiter from releasing.
  void begin_round() noexcept { invited_left_pkts_ = kInvitedPkts; }
  // The flow's queue was full, or was the longest when the store was full. A flow without packets
  // is not marked, because no departure would ever clear the mark.
  void note_refused(uint32_t flow, uint32_t backlog_pkts) noexcept {
    if (backlog_pkts == 0 || is_full(flow)) return;
    full_at_pkts_[flow] = backlog_pkts;
    is_full_[flow].store(true, std::memory_order_relaxed);
    ++n_full_;
  }
  // A packet of the flow was released, or dropped by its queue. The departure of the last packet is
  // the last chance to signal room.
  void note_left(uint32_t flow, uint32_t backlog_pkts) noexcept {
    if (n_full_ == 0 || !is_full(flow)) return;
    const uint32_t room_pkts = std::min(kRoomPkts, full_at_pkts_[flow] / 4);
    const bool has_room = backlog_pkts + room_pkts <= full_at_pkts_[flow];
    if (backlog_pkts != 0 && (!has_room || room_pkts > invited_left_pkts_)) return;
    invited_left_pkts_ -= std::min(room_pkts, invited_left_pkts_);
    is_full_[flow].store(false, std::memory_order_relaxed);
    --n_full_;
  }

 private:
  static constexpr uint32_t kRoomPkts = 32;
  static constexpr uint32_t kInvitedPkts = 64;  // room signalled per round

  std::vector<std::atomic<bool>> is_full_;
  std::vector<uint32_t> full_at_pkts_;
  uint32_t n_full_ = 0;
  uint32_t invited_left_pkts_ = 0;
};

}  // namespace batchplane::egress
