// SPDX-License-Identifier: BSD-3-Clause
// session_queue.h - buffers packets until their users can be reached: one queue per session that
// has packets waiting, in memory allocated once.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/packet/packet.h"
#include "modules/common/tally.h"
#include "modules/session/session_rules.h"

namespace batchplane::session {

// Owner: one worker. n_held(): any thread.
class SessionQueues {
 public:
  explicit SessionQueues(uint32_t max_pkts);

  [[nodiscard]] uint32_t max_pkts() const { return static_cast<uint32_t>(entries_.size()); }
  [[nodiscard]] uint32_t n_held() const { return static_cast<uint32_t>(n_held_.value()); }
  [[nodiscard]] uint32_t n_queues() const { return static_cast<uint32_t>(active_.size()); }
  [[nodiscard]] bool is_full() const { return free_entry_ == kNone; }

  // The session's queue; kNone when it has none.
  [[nodiscard]] uint32_t find(uint32_t session) const;
  [[nodiscard]] uint32_t size_pkts(uint32_t queue) const { return queues_[queue].n_pkts; }
  [[nodiscard]] bool holds_rule(uint32_t queue, uint32_t slot) const;
  // The i-th non-empty queue; i < n_queues().
  [[nodiscard]] uint32_t active(uint32_t i) const { return active_[i]; }

  // Must not be called when full. Returns the queue.
  uint32_t push(uint32_t session, Packet* pkt);
  // Oldest first: removes the packets that `take` accepts. False if `take` ran out of room.
  enum class Taken : uint8_t { kYes, kNo, kNoRoom };
  template <class Take>
  bool sift(uint32_t queue, Take take) {
    uint32_t before = kNone;
    for (uint32_t at = queues_[queue].first; at != kNone;) {
      const uint32_t next = entries_[at].next;
      const Taken taken = take(entries_[at].pkt);
      if (taken == Taken::kNoRoom) return false;
      if (taken == Taken::kYes) {
        unlink(queue, before, at);
      } else {
        before = at;
      }
      at = next;
    }
    if (queues_[queue].n_pkts == 0) remove(queue);
    return true;
  }
  // Whether the queue was reported to the control plane.
  [[nodiscard]] bool is_told(uint32_t queue) const { return queues_[queue].is_told; }
  void set_told(uint32_t queue, bool is_told) { queues_[queue].is_told = is_told; }
  void give_up(const std::function<void(Packet*)>& take);

 private:
  struct Entry {
    Packet* pkt = nullptr;
    uint32_t next = kNone;
  };
  struct Queue {
    uint32_t session = kNone;
    uint32_t first = kNone;
    uint32_t last = kNone;
    uint32_t n_pkts = 0;
    uint32_t next_in_bucket = kNone;
    uint32_t position = 0;  // in active_
    bool is_told = false;
  };
  [[nodiscard]] uint32_t bucket_of(uint32_t session) const {
    return session & static_cast<uint32_t>(buckets_.size() -
                                           1);  // session numbers are consecutive: no hash needed
  }
  uint32_t add_queue(uint32_t session);
  void unlink(uint32_t queue, uint32_t before, uint32_t at);
  void remove(uint32_t queue);

  std::vector<Entry> entries_;
  std::vector<Queue> queues_;  // one per packet of capacity; free ones are linked by next_in_bucket
  std::vector<uint32_t> buckets_;
  std::vector<uint32_t> active_;
  uint32_t free_entry_ = kNone;
  uint32_t free_queue_ = kNone;
  Tally n_held_;
};

}  // namespace batchplane::session
