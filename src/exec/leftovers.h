// SPDX-License-Identifier: BSD-3-Clause
// leftovers.h - what a queue that is gone, or filled from elsewhere than before, had left for a module: it
// comes before anything that is polled, and before what buffers let go that stand further up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/watched.h"

namespace batchplane::exec {

// Of one task, in the order in which they run: downstream first, so that nothing overtakes.
template <class Node, class Handle>
class Leftovers {
 public:
  struct Part {
    Node* first = nullptr;
    std::vector<Handle> pkts;
    Watched<size_t> n_done;  // whoever lays out the next graph looks at it while it runs

    [[nodiscard]] uint64_t left_pkts() const { return pkts.size() - n_done.peek(); }
  };

  [[nodiscard]] bool is_any() const { return is_any_; }
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

  // While nobody runs the task; memory first. Parts stay where they are once all have been added.
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
  // Hands out what is left there.
  template <class Take>
  void take(const Node* first, Take take_pkt) {
    Part& part = at(first);
    for (; part.n_done < part.pkts.size(); ++part.n_done) take_pkt(part.pkts[part.n_done]);
  }

  // In batches, while has_room(first); enter(first, pkts, n). False when that was for none. There are some
  // until buffers may let go again, too: may_go_on().
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
