// SPDX-License-Identifier: BSD-3-Clause
// departures.h - when packets may leave so that each flow keeps a rate: what a module `pace` works out.
//
// As in Linux's EDT model (fq, and Carousel: Saeed et al., 2017). It never holds a packet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "egress/discipline/descriptor.h"
#include "egress/discipline/pace.h"

namespace batchplane::egress {

struct DepartureParams {
  uint64_t rate_bps = 0;  // of each flow; 0: no limit
  uint32_t delay_us = 0;
  uint32_t jitter_us = 0;
  uint32_t horizon_us = 2'000'000;
};

// What a packet needs of the parameters.
struct DepartureRule {
  uint64_t units_per_byte = 0;  // 0: no rate
  uint32_t delay_us = 0;
  uint32_t jitter_us = 0;
  uint32_t horizon_us = 0;  // 0: none
};

// Throws ConfigError.
inline DepartureRule departure_rule(const DepartureParams& params, const std::string& where) {
  if (params.rate_bps != 0 && params.rate_bps < kMinPaceBps) {
    throw ConfigError("the rate is too low", where + ".rate_bps",
                      "0 for none, or at least " + std::to_string(kMinPaceBps));
  }
  if (uint64_t{params.delay_us} + params.jitter_us > params.horizon_us) {
    throw ConfigError("delay_us and jitter_us are more than horizon_us", where,
                      "raise horizon_us: packets that leave later than that are dropped");
  }
  return {.units_per_byte = params.rate_bps == 0 ? 0 : time_units_per_byte(params.rate_bps),
          .delay_us = params.delay_us,
          .jitter_us = params.jitter_us,
          .horizon_us = params.horizon_us};
}

class Departures {
 public:
  static constexpr uint32_t kDefaultFlows = 1024;

  explicit Departures(uint32_t flows) : next_(flows) {}

  [[nodiscard]] size_t n_flows() const { return next_.size(); }
  // Numbers beyond the flows share them.
  [[nodiscard]] uint32_t flow_of(uint32_t number) const noexcept {
    const auto n = static_cast<uint32_t>(next_.size());
    return number < n ? number : number % n;
  }
  void prefetch(uint32_t flow) const noexcept { __builtin_prefetch(&next_[flow], 1); }

  static constexpr uint64_t kBeyondHorizon = ~0ULL;
  // When a packet that has come now may leave; kBeyondHorizon costs its flow nothing.
  uint64_t next_ns(uint32_t flow, uint32_t len_bytes, uint64_t now_ns,
                   const DepartureRule& rule) noexcept {
    FineTime& next = next_[flow];
    uint64_t at_ns = now_ns + rule.delay_us * 1000ULL;
    if (rule.units_per_byte != 0 && next.ceil_ns() > now_ns) at_ns += next.ceil_ns() - now_ns;
    if (rule.jitter_us != 0) at_ns += rng_.below(rule.jitter_us) * 1000ULL;
    if (rule.horizon_us != 0 && at_ns > now_ns + rule.horizon_us * 1000ULL) [[unlikely]]
      return kBeyondHorizon;
    next.raise_to(now_ns);
    next.add_units(len_bytes * rule.units_per_byte);
    return at_ns;
  }

 private:
  std::vector<FineTime> next_;  // when the next packet of each flow may leave
  Rng rng_{1};
};

}  // namespace batchplane::egress
