// SPDX-License-Identifier: BSD-3-Clause
// candidates.h - for one application by itself, the ways to place it that can be worth it.
#pragma once

#include <vector>

#include "placement/problem.h"

namespace batchplane::placement {

// One way, and what it asks of each device where it has a share.
struct Candidate {
  Placed placed;
  uint8_t devices = 0;                           // bit d: it has a share of device d
  double served_value = 0;                       // value * rate * share served
  std::array<double, kMaxDevices> batches_ps{};  // a second
  std::array<double, kMaxDevices> batch_ns{};    // a batch, alone
  std::array<double, kMaxDevices> busy{};        // share of the device's time, alone
  std::array<double, kMaxDevices> fill_ns{};     // until a batch is full
};

// `served`: the part of the offered rate that is taken in. Every one keeps budget and utilisation when
// nothing else runs; the first one serves nothing.
[[nodiscard]] std::vector<Candidate> candidates_of(const Problem& problem, size_t app,
                                                   double served);
// A plan's own way, whether or not it is good.
[[nodiscard]] Candidate candidate_from(const Problem& problem, size_t app, const Placed& placed);

}  // namespace batchplane::placement
