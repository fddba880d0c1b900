// SPDX-License-Identifier: BSD-3-Clause
// turns.h - weighted choice of the next packet's flow, in turn or at random. Generator and simulator make the
// same choices from the same seed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace batchplane::exec {

enum class Order : uint8_t { kRoundRobin, kRandom };

// Maximum number of turns in a cycle.
inline constexpr uint32_t kMaxTurns = 1U << 22;

// Small integers in proportion to `weights`; exact where such exist, otherwise rounded.
inline std::vector<uint32_t> whole_weights(const std::vector<double>& weights) {
  const double least = *std::ranges::min_element(
      weights, {}, [](double w) { return w > 0 ? w : std::numeric_limits<double>::infinity(); });
  std::vector<uint32_t> whole(weights.size());
  for (uint32_t factor = 1; factor <= 1000; ++factor) {
    uint64_t total = 0;
    bool is_exact = true;
    for (size_t i = 0; i < weights.size() && is_exact; ++i) {
      const double scaled = weights[i] / least * factor;
      whole[i] = static_cast<uint32_t>(std::min(std::round(scaled), 1e9));
      is_exact = std::abs(scaled - whole[i]) < 1e-6;
      total += whole[i];
    }
    if (is_exact && total <= kMaxTurns) return whole;
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double turns = std::min<double>(kMaxTurns, 1024.0 * static_cast<double>(weights.size()));
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto rounded = static_cast<uint32_t>(std::round(weights[i] / sum * turns));
    whole[i] = weights[i] > 0 ? std::max(1U, rounded) : 0;
  }
  return whole;
}

// Owner: one thread.
class Turns {
 public:
  Turns(Order order, uint64_t seed) : order_(order), rng_(seed) {}

  // Weights must not be empty, negative or all 0. Restarts the cycle; allocates.
  void set_weights(const std::vector<double>& weights) {
    if (order_ == Order::kRoundRobin) {
      make_turns(weights);
    } else {
      make_columns(weights);
    }
  }

  // use(i, item) for the next n items. Works on copies: `use` may store to memory that the compiler cannot
  // tell from a member, which would force a reload each time.
  template <class Use>
  void each_next(uint32_t n, Use&& use) {
    if (order_ == Order::kRoundRobin) {
      const uint32_t* const turns = turns_.data();
      const size_t n_turns = turns_.size();
      size_t turn = turn_;
      for (uint32_t i = 0; i < n; ++i) {
        use(i, turns[turn]);
        turn = turn + 1 == n_turns ? 0 : turn + 1;
      }
      turn_ = turn;
      return;
    }
    Rng rng = rng_;
    const Column* const columns = columns_.data();
    const size_t n_columns = columns_.size();
    for (uint32_t i = 0; i < n; ++i) use(i, draw(rng, columns, n_columns));
    rng_ = rng;
  }

 private:
  // Alias method: the high part of one random draw picks a column, the low part one of its sides.
  struct Column {
    uint32_t threshold;  // of 2^32
    uint32_t other;
  };

  static uint32_t draw(Rng& rng, const Column* columns, size_t n_columns) {
    const uint64_t product = (rng.next() >> 32) * n_columns;
    const auto i = static_cast<uint32_t>(product >> 32);
    return static_cast<uint32_t>(product) < columns[i].threshold ? i : columns[i].other;
  }

  // Spreads each item's turns evenly over the cycle; equal weights give 0, 1, 2, ...
  void make_turns(const std::vector<double>& weights) {
    const std::vector<uint32_t> whole = whole_weights(weights);
    std::vector<std::pair<double, uint32_t>> positions;
    for (uint32_t i = 0; i < whole.size(); ++i) {
      for (uint32_t k = 0; k < whole[i]; ++k) positions.emplace_back((k + 0.5) / whole[i], i);
    }
    std::ranges::sort(positions);
    turns_.clear();
    for (const auto& [position, item] : positions) turns_.push_back(item);
    turn_ = 0;
  }

  void make_columns(const std::vector<double>& weights) {
    const double mean =
        std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
    std::vector<double> level(weights.size());
    std::vector<uint32_t> small;
    std::vector<uint32_t> large;
    for (uint32_t i = 0; i < weights.size(); ++i) {
      level[i] = weights[i] / mean;
      (level[i] < 1 ? small : large).push_back(i);
    }
    columns_.assign(weights.size(), {});
    for (uint32_t i = 0; i < weights.size(); ++i) columns_[i] = {0xffffffffU, i};
    while (!small.empty() && !large.empty()) {
      const uint32_t poor = small.back();
      const uint32_t rich = large.back();
      small.pop_back();
      columns_[poor] = {static_cast<uint32_t>(level[poor] * 4294967295.0), rich};
      level[rich] -= 1 - level[poor];
      if (level[rich] < 1) {
        large.pop_back();
        small.push_back(rich);
      }
    }
  }

  Order order_;
  Rng rng_;
  std::vector<uint32_t> turns_;
  size_t turn_ = 0;
  std::vector<Column> columns_;
};

}  // namespace batchplane::exec
