// SPDX-License-Identifier: BSD-3-Clause
// least_squares.h - weighted least squares of a few unknowns, each within its bounds.
#pragma once

#include <algorithm>
#include <array>

namespace batchplane {

// y is to be the sum of what one of each unknown adds, times the unknown.
template <int kUnknowns>
class LeastSquares {
 public:
  using Row = std::array<double, kUnknowns>;

  void add(const Row& x, double y, double weight) {
    for (int a = 0; a < kUnknowns; ++a) {
      right_[a] += weight * x[a] * y;
      for (int b = 0; b < kUnknowns; ++b) square_[a][b] += weight * x[a] * x[b];
    }
  }

  // One unknown after the other, from `start` on, until none moves; what nothing tells stays.
  [[nodiscard]] Row solve(const Row& start, const Row& low, const Row& high) const {
    Row x = start;
    bool moves = true;
    for (int round = 0; round < kMaxRounds && moves; ++round) {
      moves = false;
      for (int a = 0; a < kUnknowns; ++a) {
        if (square_[a][a] <= 0) continue;
        double left = right_[a];
        for (int b = 0; b < kUnknowns; ++b) left -= b == a ? 0 : square_[a][b] * x[b];
        const double next = std::clamp(left / square_[a][a], low[a], high[a]);
        moves |= next != x[a];
        x[a] = next;
      }
    }
    return x;
  }

 private:
  static constexpr int kMaxRounds = 20'000;  // some ms: unknowns much alike take their time

  std::array<Row, kUnknowns> square_{};
  Row right_{};
};

}  // namespace batchplane
