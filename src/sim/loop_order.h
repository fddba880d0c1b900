// SPDX-License-Identifier: BSD-3-Clause
// loop_order.h - whose loop is next among many workers, and which idle workers got something to do.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace batchplane::sim {

// The worker whose next loop begins first; of several, the one with the lowest number. A tree of
// winners, since one worker in turn changes its time. Who wins is as good as random, so nothing
// branches on it, and no loads wait for it: each place keeps a copy of its winner's time.
class LoopOrder {
 public:
  void resize(uint32_t n_workers) {
    n_leaves_ = std::bit_ceil(n_workers);
    places_.assign(2ULL * n_leaves_, {});
    for (uint32_t i = 0; i < n_leaves_; ++i) places_[n_leaves_ + i].worker = i;
    for (uint32_t i = n_leaves_; i-- > 1;) places_[i] = places_[2ULL * i];
  }
  void set(uint32_t worker, uint64_t ticks) {
    Place winner{worker, ticks};
    uint32_t i = n_leaves_ + worker;
    for (; i != 1; i /= 2) {
      places_[i] = winner;
      const Place& other = places_[i ^ 1];
      const uint64_t all_if_lost = 0 - static_cast<uint64_t>(other.order() < winner.order());
      winner.worker ^= (winner.worker ^ other.worker) & all_if_lost;
      winner.ticks ^= (winner.ticks ^ other.ticks) & all_if_lost;
    }
    places_[1] = winner;
  }
  [[nodiscard]] uint32_t first() const { return static_cast<uint32_t>(places_[1].worker); }
  [[nodiscard]] uint64_t ticks_of(uint32_t worker) const {
    return places_[n_leaves_ + worker].ticks;
  }

 private:
  struct Place {
    uint64_t worker = 0;
    uint64_t ticks = ~0ULL;
    [[nodiscard]] unsigned __int128 order() const {
      return static_cast<unsigned __int128>(ticks) << 64 | worker;
    }
  };

  uint32_t n_leaves_ = 0;
  std::vector<Place> places_;  // [1] is the root, the second half are the workers
};

// Workers whose next event may have come closer through another worker's loop, and when something
// reaches them.
class Woken {
 public:
  static constexpr uint64_t kUnknown = 0;

  void resize(uint32_t n_workers) {
    at_ns_.assign(n_workers, kNotIn);
    workers_.clear();
  }
  void add(uint32_t worker, uint64_t at_ns) {
    if (at_ns_[worker] == kNotIn) workers_.push_back(worker);
    at_ns_[worker] = std::min(at_ns_[worker], at_ns);
  }
  template <class Use>
  void take_all(Use use) {
    for (const uint32_t worker : workers_) use(worker, std::exchange(at_ns_[worker], kNotIn));
    workers_.clear();
  }

 private:
  static constexpr uint64_t kNotIn = ~0ULL;

  std::vector<uint64_t> at_ns_;
  std::vector<uint32_t> workers_;
};

}  // namespace batchplane::sim
