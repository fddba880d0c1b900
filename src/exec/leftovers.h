// SPDX-License-Identifier: BSD-3-Clause
// leftovers.h - packets that a removed queue, or a queue that is now fed from elsewhere, still had for a
// module: they run before anything that is polled, and before buffers upstream fire.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/watched.h"

namespace batchplane::exec {

// Leftovers of one task in run order: downstream first, so that no packet overtakes another.
template <class Node, class Handle>
class Leftovers {
 public:
  struct Part {
    Node* first = nullptr;
    std::vector<Handle> pkts;
    Watched<size_t> n_done;  // read by the layout of the next graph while this one runs

    [[nodiscard]] uint64_t left_pkts() const { return pkts.size() - n_done.peek(); }
  };

  [[nodiscard]] bool is_any() const { return is_any_; }
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

  // Call while nobody runs the task; allocates. Parts do not move once all have been added.
  void add(Node& first, uint64_t max_pkts) {
    parts_.push_back({.first = &first});
    parts_.back().pkts.reserve(max_pkts);
  }
  [[nodiscard]] Part& at(const Node* first) {
    return *std::ranges::find(parts_, first, [](const Part& part) { return part.first; });
  }
  [[nodiscard]] bool has(const Node* first) const {
    const auto is_there = [&](const Part& part) {
      return part.first == first && part.left_pkts() != 0;
    };
    return std::ranges::any_of(parts_, is_there);
  }
  void begin() { is_any_ = left_pkts() != 0; }
  // Hands out the leftovers of `first`.
  template <class Take>
  void take(const Node* first, Take take_pkt) {
    Part& part = at(first);
    for (; part.n_done < part.pkts.size(); ++part.n_done) take_pkt(part.pkts[part.n_done]);
  }

  // Runs the leftovers in batches while has_room(first), with enter(first, pkts, n). False when nothing was
  // run. Leftovers count as present until may_go_on() lets buffers fire again.
  template <class HasRoom, class Enter, class MayGoOn>
  bool run(uint32_t batch_pkts, HasRoom has_room, Enter enter, MayGoOn may_go_on) {
    bool any = false;
    for (Part& part : parts_) {
      while (part.left_pkts() != 0) {
        if (!has_room(*part.first)) return any;
        const auto n = static_cast<uint32_t>(std::min<uint64_t>(batch_pkts, part.left_pkts()));
        enter(*part.first, part.pkts.data() + part.n_done, n);
        part.n_done += n;
        any = true;
      }
    }
    is_any_ = !may_go_on();
    return any;
  }
  [[nodiscard]] uint64_t left_pkts() const {
    uint64_t pkts = 0;
    for (const Part& part : parts_) pkts += part.left_pkts();
    return pkts;
  }

 private:
  std::vector<Part> parts_;
  bool is_any_ = false;
};

}  // namespace batchplane::exec
