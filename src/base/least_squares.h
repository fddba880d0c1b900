// SPDX-License-Identifier: BSD-3-Clause
// least_squares.h - weighted linear least squares for a few unknowns within bounds.
#pragma once

#include <algorithm>
#include <array>

namespace batchplane {

// Fits y = sum of x[a] * unknown[a].
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

  // Coordinate descent from `start` until no unknown changes; unknowns that no row constrains keep their
  // start.
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
  static constexpr int kMaxRounds = 20'000;  // a few ms: nearly collinear unknowns converge slowly

  std::array<Row, kUnknowns> square_{};
  Row right_{};
};

}  // namespace batchplane
