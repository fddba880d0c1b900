// SPDX-License-Identifier: BSD-3-Clause
// delay_histogram.h - delay histograms: fine (buckets 3 % wide), and relative to the flow's SLO.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace batchplane::exec {

// Log-linear: 32 buckets an octave, exact below 32 ns, up to 2^40 ns (18 minutes), then clamped.
struct FineBuckets {
  static constexpr uint32_t kPerOctaveLog2 = 5;
  static constexpr uint32_t kCount = (40 - kPerOctaveLog2 + 1) << kPerOctaveLog2;

  static uint32_t index(uint64_t delay_ns) {
    delay_ns = std::min<uint64_t>(delay_ns, (1ULL << 40) - 1);
    const uint32_t msb = 63 - static_cast<uint32_t>(std::countl_zero(delay_ns | 1));
    if (msb < kPerOctaveLog2) return static_cast<uint32_t>(delay_ns);
    const uint32_t shift = msb - kPerOctaveLog2;
    return ((shift + 1) << kPerOctaveLog2) + static_cast<uint32_t>((delay_ns >> shift) & 31);
  }
  // Smallest delay that falls into bucket i.
  static uint64_t lower_ns(uint32_t i) {
    if (i < 32) return i;
    const uint32_t shift = (i >> kPerOctaveLog2) - 1;
    return (32ULL + (i & 31)) << shift;
  }
  // Largest delay in bucket i, capped at delay_max_ns.
  static uint64_t upper_ns(uint32_t i, uint64_t delay_max_ns) {
    return i + 1 < kCount ? std::min(lower_ns(i + 1) - 1, delay_max_ns) : delay_max_ns;
  }
};

// 24 equal buckets up to the SLO, then 7 of a quarter SLO each, then one for everything later.
struct SloBuckets {
  static constexpr uint32_t kWithin = 24;
  static constexpr uint32_t kCount = 32;

  // scale = kWithin * 2^40 / slo_ns; at slo_ns >= 1.
  static uint64_t scale_of(uint64_t slo_ns) { return (uint64_t{kWithin} << 40) / slo_ns; }
  static uint32_t index(uint64_t delay_ns, uint64_t scale) {
    const auto x = static_cast<uint64_t>((static_cast<unsigned __int128>(delay_ns) * scale) >> 40);
    if (x < kWithin) return static_cast<uint32_t>(x);
    return static_cast<uint32_t>(std::min<uint64_t>(kWithin + (x - kWithin) / 6, kCount - 1));
  }
  // Lower edge of bucket i, as a fraction of the SLO.
  static double lower_ratio(uint32_t i) {
    if (i <= kWithin) return static_cast<double>(i) / kWithin;
    return 1 + 0.25 * static_cast<double>(i - kWithin);
  }
  // The delay, as a fraction of the SLO, that wanted_pkts of the packets stay below; packets of a bucket
  // count as spread evenly over it. Infinity in the last bucket, which has no upper edge.
  static double ratio_above(double wanted_pkts, const uint64_t (&pkts)[kCount]) {
    for (uint32_t b = 0; b + 1 < kCount; ++b) {
      const auto here = static_cast<double>(pkts[b]);
      if (here > 0 && wanted_pkts <= here)
        return std::lerp(lower_ratio(b), lower_ratio(b + 1), wanted_pkts / here);
      wanted_pkts -= here;
    }
    return std::numeric_limits<double>::infinity();
  }
};

}  // namespace batchplane::exec
