// SPDX-License-Identifier: BSD-3-Clause
// timed_heap.h - a 4-ary heap of flows by virtual time; each flow knows its place (`at`).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "egress/discipline/virtual_time.h"

namespace batchplane::egress {

template <class Flows>
class TimedHeap {
 public:
  explicit TimedHeap(uint32_t capacity) { items_.reserve(capacity); }

  [[nodiscard]] bool is_empty() const { return items_.empty(); }
  [[nodiscard]] uint32_t first() const { return items_[0].flow; }
  [[nodiscard]] uint64_t first_time() const { return items_[0].time; }

  void insert(Flows& flows, uint32_t flow, uint64_t time) noexcept {
    items_.push_back({time, flow});  // never beyond what was reserved
    up(flows, static_cast<uint32_t>(items_.size() - 1));
  }
  void erase(Flows& flows, uint32_t at) noexcept {
    const Item last = items_.back();
    items_.pop_back();
    if (at == items_.size()) return;
    items_[at] = last;
    settle(flows, at);
  }
  void replace(Flows& flows, uint32_t at, uint64_t time) noexcept {
    items_[at].time = time;
    settle(flows, at);
  }

 private:
  struct Item {
    uint64_t time;
    uint32_t flow;
  };
  static constexpr uint32_t kWays = 4;

  void settle(Flows& flows, uint32_t at) noexcept {
    if (at != 0 && is_later(items_[(at - 1) / kWays].time, items_[at].time)) {
      up(flows, at);
    } else {
      down(flows, at);
    }
  }
  void place(Flows& flows, uint32_t at, const Item& item) noexcept {
    items_[at] = item;
    flows[item.flow].at = at;
  }
  void up(Flows& flows, uint32_t at) noexcept {
    const Item item = items_[at];
    while (at != 0) {
      const uint32_t parent = (at - 1) / kWays;
      if (!is_later(items_[parent].time, item.time)) break;
      place(flows, at, items_[parent]);
      at = parent;
    }
    place(flows, at, item);
  }
  void down(Flows& flows, uint32_t at) noexcept {
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
      place(flows, at, items_[least]);
      at = least;
    }
    place(flows, at, item);
  }

  std::vector<Item> items_;
};

}  // namespace batchplane::egress
