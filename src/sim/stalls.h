// SPDX-License-Identifier: BSD-3-Clause
// stalls.h - stalls of a core, as on real machines: Poisson arrivals, lengths drawn from a list.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace batchplane::sim {

struct StallSpec {
  double rate_per_s = 0;
  std::vector<uint64_t> lengths_ns;
};

class Stalls {
 public:
  Stalls() = default;
  Stalls(StallSpec spec, uint64_t seed) : spec_(std::move(spec)), rng_(seed) {
    if (spec_.rate_per_s > 0) next_ns_ = gap_ns();
  }
  // Start of the next stall; never if there are none.
  [[nodiscard]] uint64_t next_ns() const { return next_ns_; }
  // Returns its length and moves on to the next one.
  uint64_t take() {
    const uint64_t length_ns =
        spec_.lengths_ns[rng_.below(static_cast<uint32_t>(spec_.lengths_ns.size()))];
    next_ns_ += 1 + gap_ns();
    return length_ns;
  }

 private:
  uint64_t gap_ns() { return static_cast<uint64_t>(rng_.exponential(1e9 / spec_.rate_per_s)); }

  StallSpec spec_;
  Rng rng_{1};
  uint64_t next_ns_ = ~0ULL;
};

}  // namespace batchplane::sim
