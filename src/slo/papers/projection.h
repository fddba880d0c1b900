// SPDX-License-Identifier: BSD-3-Clause
// projection.h - projects a gradient onto the subspace that a set of active constraints leaves
// free.
#pragma once

#include <cstddef>
#include <vector>

namespace batchplane::slo {

using Row = std::vector<double>;  // one constraint: row * change <= 0 while active

struct Projection {
  std::vector<double> direction;    // -gradient, minus its components along the rows
  std::vector<double> multipliers;  // one for each row: gradient + sum multiplier * row/|row|
                                    // + direction = 0, the shortest such vector
};

// Rows may repeat or be linearly dependent; a zero row gets multiplier 0. Multipliers are for rows
// scaled to length one, so that delays in ns and bounds in packets are comparable.
Projection project(const std::vector<Row>& rows, const std::vector<double>& gradient);

double length_of(const std::vector<double>& v);

}  // namespace batchplane::slo
