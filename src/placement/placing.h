// SPDX-License-Identifier: BSD-3-Clause
// placing.h - where the packets of one module go: as a plan is put into force.
#pragma once

#include <array>
#include <cstdint>

namespace batchplane::placement {

inline constexpr const char* kInline = "inline";  // in place of a device: the module's own worker
inline constexpr uint32_t kMaxPlaces = 7;         // six devices, and inline

// Of each place: its share of the packets, which add up to 1, and packets of a batch.
struct Placing {
  std::array<double, kMaxPlaces> share{};
  std::array<uint32_t, kMaxPlaces> batch_pkts{};
  uint64_t age_limit_ns = 0;
  double refused = 0;  // share dropped at the entry because no device has time for it
};

}  // namespace batchplane::placement
