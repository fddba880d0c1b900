// SPDX-License-Identifier: BSD-3-Clause
// projection.cc - an orthonormal basis of the rows by Gram-Schmidt with pivoting; the remainder of
// a row shows whether it depends on the rows before it.
#include "slo/papers/projection.h"

#include <algorithm>
#include <cmath>

#include "base/cholesky.h"

namespace batchplane::slo {
namespace {

// Length of a unit row's remainder below which only rounding is left.
constexpr double kDependent = 1e-9;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void subtract(std::vector<double>& from, double factor, const std::vector<double>& what) {
  for (size_t i = 0; i < from.size(); ++i) from[i] -= factor * what[i];
}

// Subtracts the component along `unit`, twice: once would leave rounding errors in proportion to its
// size. Most rows have nothing in common, as one product shows. False: nothing to subtract.
bool take_out(std::vector<double>& v, const std::vector<double>& unit) {
  const double part = dot(v, unit);
  if (part == 0) return false;
  subtract(v, part, unit);
  subtract(v, dot(v, unit), unit);
  return true;
}

std::vector<Row> unit_rows(const std::vector<Row>& rows) {
  std::vector<Row> units = rows;
  for (Row& row : units) {
    const double length = length_of(row);
    for (double& value : row) value = length > 0 ? value / length : 0;
  }
  return units;
}

std::vector<Row> basis_of(std::vector<Row> rest) {
  std::vector<Row> basis;
  std::vector<double> lengths;
  for (const Row& row : rest) lengths.push_back(length_of(row));
  while (!rest.empty()) {
    const auto longest = static_cast<size_t>(std::ranges::max_element(lengths) - lengths.begin());
    if (lengths[longest] <= kDependent) break;
    for (double& value : rest[longest]) value /= lengths[longest];
    basis.push_back(std::move(rest[longest]));
    if (longest + 1 < rest.size()) rest[longest] = std::move(rest.back());
    lengths[longest] = lengths.back();
    rest.pop_back();
    lengths.pop_back();
    for (size_t i = 0; i < rest.size(); ++i) {
      if (take_out(rest[i], basis.back())) lengths[i] = length_of(rest[i]);
    }
  }
  return basis;
}

}  // namespace

double length_of(const std::vector<double>& v) { return std::sqrt(dot(v, v)); }

// In coordinates of the basis Q the rows are C (one row each) and the gradient is c = Q gradient.
// Any multipliers w with C' w = -c will do; the shortest is w = C y with (C' C) y = -c, and C' C
// has full rank because Q spans no more than the rows.
Projection project(const std::vector<Row>& rows, const std::vector<double>& gradient) {
  const std::vector<Row> units = unit_rows(rows);
  const std::vector<Row> basis = basis_of(units);
  Projection result{gradient, std::vector<double>(rows.size(), 0.0)};
  std::vector<double> along(basis.size());
  for (size_t k = 0; k < basis.size(); ++k) {
    along[k] = -dot(basis[k], gradient);
    take_out(result.direction, basis[k]);
  }
  for (double& value : result.direction) value = -value;

  std::vector<Row> coordinates(rows.size(), Row(basis.size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t k = 0; k < basis.size(); ++k) coordinates[i][k] = dot(units[i], basis[k]);
  }
  const size_t n = basis.size();
  std::vector<double> gram(n * n, 0.0);  // its lower half
  for (const Row& row : coordinates) {
    for (size_t k = 0; k < n; ++k) {
      for (size_t j = 0; row[k] != 0 && j <= k; ++j) gram[k * n + j] += row[k] * row[j];
    }
  }
  solve_in_place(gram, along, kDependent * kDependent);
  for (size_t i = 0; i < rows.size(); ++i) result.multipliers[i] = dot(coordinates[i], along);
  return result;
}

}  // namespace batchplane::slo
