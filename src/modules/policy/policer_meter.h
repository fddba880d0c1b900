// SPDX-License-Identifier: BSD-3-Clause
// policer_meter.h - three-colour markers (RFC 2697, RFC 2698): many meters of one profile, in bulk.
//
// With DPDK a thin wrapper around rte_meter, without it two plain token buckets per meter.
#pragma once

#include <cstdint>
#include <memory>

namespace batchplane {

enum Colour : uint8_t { kGreen, kYellow, kRed };
inline constexpr uint32_t kColours = 3;

// Tokens are added in steps: `bytes` every `period_ns`.
struct TokenStep {
  uint64_t bytes = 1;
  uint64_t period_ns = 1;
};
// The shortest step of 2 us or more that approximates the rate to 1 in 4000.
inline TokenStep token_step(uint64_t bytes_per_s) {
  constexpr uint64_t kSecondNs = 1'000'000'000;
  constexpr uint64_t kMinPeriodNs = 2000;
  const uint64_t bytes = (bytes_per_s * kMinPeriodNs + kSecondNs - 1) / kSecondNs;
  return {bytes, (bytes * kSecondNs + bytes_per_s / 2) / bytes_per_s};
}

// Both markers have a committed bucket. The single-rate one has an excess bucket, which takes what
// overflows from the committed one; the two-rate one has a peak bucket with a rate of its own.
struct MeterProfile {
  bool is_two_rate = false;
  TokenStep committed;
  uint64_t committed_burst_bytes = 0;
  TokenStep peak;                   // two-rate only
  uint64_t second_burst_bytes = 0;  // excess or peak
};

// Owner: one worker for mark(). Everything else: control thread, while no worker uses the meters.
class ColourMeters {
 public:
  // All buckets start full.
  ColourMeters(uint32_t n_meters, const MeterProfile& profile);
  ~ColourMeters();
  ColourMeters(const ColourMeters&) = delete;
  ColourMeters& operator=(const ColourMeters&) = delete;

  // Packet i has bytes[i] and uses meter meters[i]. colours[i] is its colour before (green for
  // colour-blind marking) and after. `profile` may change between calls, but not its kind.
  void mark(const MeterProfile& profile, uint64_t now_ns, const uint32_t* meters,
            const uint32_t* bytes, uint8_t* colours, uint32_t n) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchplane
