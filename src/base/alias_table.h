// SPDX-License-Identifier: BSD-3-Clause
// alias_table.h - weighted random choice in constant time (Vose's alias method).
#pragma once

#include <cstdint>
#include <vector>

namespace batchplane {

// Immutable after construction.
class AliasTable {
 public:
  // Weights >= 0 with a positive sum; at most 65536 of them.
  explicit AliasTable(const std::vector<double>& weights) : cells_(weights.size()) {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    std::vector<double> share;
    std::vector<uint32_t> small;
    std::vector<uint32_t> large;
    for (uint32_t i = 0; i < weights.size(); ++i) {
      share.push_back(weights[i] / sum * static_cast<double>(weights.size()));
      (share[i] < 1.0 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
      const uint32_t poor = small.back();
      const uint32_t rich = large.back();
      small.pop_back();
      cells_[poor] = {threshold_of(share[poor]), static_cast<uint16_t>(poor),
                      static_cast<uint16_t>(rich)};
      share[rich] -= 1.0 - share[poor];
      if (share[rich] < 1.0) {
        large.pop_back();
        small.push_back(rich);
      }
    }
    // The remaining cells are full, up to rounding.
    for (const auto& rest : {small, large}) {
      for (const uint32_t i : rest) {
        cells_[i] = {~0U, static_cast<uint16_t>(i), static_cast<uint16_t>(i)};
      }
    }
  }

  // The choice for 64 uniform random bits: the upper half selects a cell, the lower half one of its two
  // sides.
  [[nodiscard]] uint16_t pick(uint64_t bits) const {
    const Cell& cell = cells_[((bits >> 32) * cells_.size()) >> 32];
    return static_cast<uint32_t>(bits) < cell.threshold ? cell.own : cell.alias;
  }

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(cells_.size()); }

 private:
  struct Cell {
    uint32_t threshold = 0;
    uint16_t own = 0;
    uint16_t alias = 0;
  };
  static uint32_t threshold_of(double share) { return static_cast<uint32_t>(share * 0x1.0p32); }

  std::vector<Cell> cells_;
};

}  // namespace batchplane
