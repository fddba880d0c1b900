// SPDX-License-Identifier: BSD-3-Clause
// loop_order.h - whose loop is next among many workers, and which idle workers got something to do.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace batchplane::sim {

// The worker whose next loop begins first; of several, the one with the lowest number. A tree of
// winners, since one worker in turn changes its time.
class LoopOrder {
 public:
  void resize(uint32_t n_workers) {
    n_leaves_ = std::bit_ceil(n_workers);
    ticks_.assign(n_leaves_, ~0ULL);
    winners_.resize(2ULL * n_leaves_);
    for (uint32_t i = 0; i < n_leaves_; ++i) winners_[n_leaves_ + i] = i;
    for (uint32_t i = n_leaves_; i-- > 1;) play(i);
  }
  void set(uint32_t worker, uint64_t ticks) {
    ticks_[worker] = ticks;
    for (uint32_t i = (n_leaves_ + worker) / 2; i != 0; i /= 2) play(i);
  }
  [[nodiscard]] uint32_t first() const { return winners_[1]; }
  [[nodiscard]] uint64_t ticks_of(uint32_t worker) const { return ticks_[worker]; }

 private:
  void play(uint32_t i) {
    const uint32_t left = winners_[2ULL * i];
    const uint32_t right = winners_[2ULL * i + 1];
    winners_[i] = ticks_[right] < ticks_[left] ? right : left;
  }

  uint32_t n_leaves_ = 0;
  std::vector<uint64_t> ticks_;
  std::vector<uint32_t> winners_;  // [1] is the root, the second half are the workers
};

// Workers whose next event may have come closer through another worker's loop.
class Woken {
 public:
  void resize(uint32_t n_workers) {
    is_in_.assign(n_workers, false);
    workers_.clear();
  }
  void add(uint32_t worker) {
    if (is_in_[worker]) return;
    is_in_[worker] = true;
    workers_.push_back(worker);
  }
  template <class Use>
  void take_all(Use use) {
    for (const uint32_t worker : workers_) {
      is_in_[worker] = false;
      use(worker);
    }
    workers_.clear();
  }

 private:
  std::vector<uint8_t> is_in_;
  std::vector<uint32_t> workers_;
};

}  // namespace batchplane::sim
