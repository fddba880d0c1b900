// SPDX-License-Identifier: BSD-3-Clause
// candidates.h - the placements of one application, taken by itself, that may be worth choosing.
#pragma once

#include <vector>

#include "placement/problem.h"

namespace batchplane::placement {

// One placement, and its demand on each device where it has a share.
struct Candidate {
  Placed placed;
  uint8_t devices = 0;                           // bit d: it has a share of device d
  double served_value = 0;                       // value * rate * share served
  std::array<double, kMaxDevices> batches_ps{};  // per second
  std::array<double, kMaxDevices> busy_ns{};     // the device's time for a batch, alone
  std::array<double, kMaxDevices> longer_ns{};   // how much longer a batch lasts
  std::array<double, kMaxDevices> busy{};        // share of the device's time, alone
  std::array<double, kMaxDevices> fill_ns{};     // until a batch is full
};

// `served`: share of the offered rate that is admitted. Each candidate meets budget and utilisation
// if nothing else runs; the first one serves nothing.
[[nodiscard]] std::vector<Candidate> candidates_of(const Problem& problem, size_t app,
                                                   double served);
// The application's placement in a plan, whether or not it is good.
[[nodiscard]] Candidate candidate_from(const Problem& problem, size_t app, const Placed& placed);

}  // namespace batchplane::placement
