// SPDX-License-Identifier: BSD-3-Clause
// doubts.h - what was measured but cannot be true. It is replaced, and a line tells what was measured and
// what is used instead.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/cost_law.h"

namespace batchplane::profile {

// One plain line each. Differences within the noise of the times are not told.
using Doubts = std::vector<std::string>;

constexpr double kLeastNoiseNs = 1;  // no time is more certain than this

// 0 for a time below 0. `what` took it: "a poll of 4 packets".
[[nodiscard]] double at_least_0(double ns, double noise_ns, const std::string& what,
                                Doubts& doubts);

// What packets from another core take longer than packets of the same core, and at least 0.
[[nodiscard]] double extra_ns(double far_ns, double near_ns, const std::string& what,
                              Doubts& doubts);

// `whole_ns`, or the time of one of its parts where the part took longer.
[[nodiscard]] double at_least_part(double whole_ns, const std::string& whole, double part_ns,
                                   const std::string& part, Doubts& doubts);

// What the two costs of a line stand for.
struct LineNames {
  std::string per_batch;
  std::string per_pkt;
};

// fit_line's line, of which neither cost is negative.
[[nodiscard]] CostLaw::Line line_of(std::span<const CostLaw::Point> points, double noise_ns,
                                    const LineNames& names, Doubts& doubts);

}  // namespace batchplane::profile
