// SPDX-License-Identifier: BSD-3-Clause
// cholesky.h - solves systems of equations whose matrix is symmetric and positive definite.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace batchplane {

// Solves matrix * x = vector; x replaces the vector. Reads and overwrites the lower half of the matrix, which
// is stored row by row. False, with the vector as it was, when the matrix is not positive definite; with a
// `least_pivot` above 0 smaller pivots are raised to it instead.
inline bool solve_in_place(std::vector<double>& matrix, std::vector<double>& vector,
                           double least_pivot = 0) {
  const size_t n = vector.size();
  for (size_t r = 0; r < n; ++r) {
    double* const row = &matrix[r * n];
    for (size_t c = 0; c <= r; ++c) {
      double sum = row[c];
      for (size_t k = 0; k < c; ++k) sum -= row[k] * matrix[c * n + k];
      if (r == c) sum = std::fmax(sum, least_pivot);  // raises what is not a number, too
      if (r == c && sum <= 0) return false;
      row[c] = r == c ? std::sqrt(sum) : sum / matrix[c * n + c];
    }
  }
  for (size_t r = 0; r < n; ++r) {
    for (size_t k = 0; k < r; ++k) vector[r] -= matrix[r * n + k] * vector[k];
    vector[r] /= matrix[r * n + r];
  }
  for (size_t r = n; r-- > 0;) {
    for (size_t k = r + 1; k < n; ++k) vector[r] -= matrix[k * n + r] * vector[k];
    vector[r] /= matrix[r * n + r];
  }
  return true;
}

}  // namespace batchplane
