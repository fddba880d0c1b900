// SPDX-License-Identifier: BSD-3-Clause
// timed_heap.h - a 4-ary heap of flows by virtual time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "egress/discipline/virtual_time.h"

namespace batchplane::egress {

class TimedHeap {
 public:
  explicit TimedHeap(uint32_t capacity) : at_(capacity) { items_.reserve(capacity); }

  [[nodiscard]] bool is_empty() const { return items_.empty(); }
  [[nodiscard]] uint32_t first() const { return items_[0].flow; }
  [[nodiscard]] uint64_t first_time() const { return items_[0].time; }

  void insert(uint32_t flow, uint64_t time) noexcept {
    items_.push_back({time, flow});  // never beyond the reserved size
    up(static_cast<uint32_t>(items_.size() - 1));
  }
  void erase(uint32_t flow) noexcept {
    const uint32_t at = at_[flow];
    const Item last = items_.back();
    items_.pop_back();
    if (at == items_.size()) return;
    items_[at] = last;
    settle(at);
  }
  void replace(uint32_t flow, uint64_t time) noexcept {
    items_[at_[flow]].time = time;
    settle(at_[flow]);
  }

 private:
  struct Item {
    uint64_t time;
    uint32_t flow;
  };
  static constexpr uint32_t kWays = 4;

  void settle(uint32_t at) noexcept {
    if (at != 0 && is_later(items_[(at - 1) / kWays].time, items_[at].time)) {
      up(at);
    } else {
      down(at);
    }
  }
  void place(uint32_t at, const Item& item) noexcept {
    items_[at] = item;
    at_[item.flow] = at;
  }
  void up(uint32_t at) noexcept {
    const Item item = items_[at];
    while (at != 0) {
      const uint32_t parent = (at - 1) / kWays;
      if (!is_later(items_[parent].time, item.time)) break;
      place(at, items_[parent]);
      at = parent;
    }
    place(at, item);
  }
  void down(uint32_t at) noexcept {
    const Item item = items_[at];
    const auto n = static_cast<uint32_t>(items_.size());
    for (;;) {
      const uint32_t child = at * kWays + 1;
      if (child >= n) break;
      uint32_t least = child;
      for (uint32_t c = child + 1; c < std::min(child + kWays, n); ++c) {
        if (is_later(items_[least].time, items_[c].time)) least = c;
      }
      if (!is_later(item.time, items_[least].time)) break;
      place(at, items_[least]);
      at = least;
    }
    place(at, item);
  }

  std::vector<Item> items_;
  // by flow; kept apart from the flows, so that moves touch few cache lines
  std::vector<uint32_t> at_;
};

}  // namespace batchplane::egress
