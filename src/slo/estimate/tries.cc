// SPDX-License-Identifier: BSD-3-Clause
#include "slo/estimate/tries.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace batchplane::slo {
namespace {
constexpr double kNoGain = 1.01;  // times the packet time before the move
constexpr double kNoiseStep = 0.1;
constexpr uint32_t kGrowth = 4;  // factor on the patience after a failed try
}  // namespace

void Tries::forget() {
  kept_ns_ = 0;
  patience_ = kMinPatience;
  left_ = 0;
  last_ns_ = noise_ = 0;
  is_trying_ = has_failed_ = is_in_vain_ = false;
}

void Tries::observe(const std::vector<double>& triggers_pkts, bool is_kept, double pkt_ns) {
  if (last_ns_ > 0 && triggers_pkts == last_pkts_) {
    noise_ += kNoiseStep * (std::abs(pkt_ns / last_ns_ - 1) - noise_);
  }
  last_ns_ = pkt_ns;
  last_pkts_ = triggers_pkts;
  const bool was_trying = std::exchange(is_trying_, false);
  is_in_vain_ = was_trying && is_kept && has_kept() && pkt_ns > (kNoGain + noise_) * kept_ns_;
  has_failed_ = is_in_vain_ || (was_trying && !is_kept);
  if (left_ > 0) --left_;
  if (!is_kept) kept_ns_ = 0;
  // Only tries that break an SLO have to become rare.
  if (is_in_vain_) {
    left_ = kMinPatience;
  } else if (has_failed_) {
    left_ = patience_;
    patience_ = std::min(kGrowth * patience_, kMaxPatience);
  } else if (was_trying) {
    patience_ = std::max(patience_ / 2, kMinPatience);
  }
  if (!is_kept || has_failed_) return;
  if (pkt_ns < kFaster * began_ns_) left_ = 0;
  kept_pkts_.assign(triggers_pkts.begin(), triggers_pkts.end());
  kept_ns_ = pkt_ns;
}

}  // namespace batchplane::slo
