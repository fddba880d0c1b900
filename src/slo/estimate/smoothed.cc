// SPDX-License-Identifier: BSD-3-Clause
#include "slo/estimate/smoothed.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {
constexpr double kMinDeviation = 0.03;  // relative; smaller ones are chance, whatever the count
constexpr double kManyEvents = 1000;    // smaller counts fluctuate by more than the margin
constexpr double kStep = 0.5;           // step of a smoothed value towards the measured one
constexpr double kSlowStep = 0.2;       // the same, of values that vary more
}  // namespace

void Smoothed::follow(double measured, double events, double sigmas) {
  if (!std::isfinite(measured)) return;
  const double chance = std::max(kMinDeviation, sigmas / std::sqrt(std::max(1.0, events)));
  const bool is_chance = is_known && std::abs(measured - value) <= chance * std::abs(value);
  const double step = events < kManyEvents ? kSlowStep : kStep;
  value += (is_chance ? step : 1) * (measured - value);
  is_known = true;
}

}  // namespace batchplane::slo
