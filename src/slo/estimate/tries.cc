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

void Tries::skip() {
  has_failed_ = is_in_vain_ = is_broken_ = is_trying_ = false;
  last_ns_ = 0;
}

const Kept::Point* Tries::way_back() const {
  if (is_in_vain_) return &kept_.last();
  return is_broken_ ? kept_.proven(last_pkts_) : nullptr;
}

void Tries::observe(const Triggers& triggers_pkts, const Outcome& seen) {
  if (last_ns_ > 0 && triggers_pkts == last_pkts_) {
    noise_ += kNoiseStep * (std::abs(seen.pkt_ns / last_ns_ - 1) - noise_);
  }
  last_ns_ = seen.pkt_ns;
  last_pkts_ = triggers_pkts;
  is_broken_ = !seen.is_kept();
  const bool was_trying = std::exchange(is_trying_, false);
  const bool breaks_a_plan = seen.slos == Outcome::Slos::kBroken;
  const double before_ns = kept_.last().pkt_ns;
  is_in_vain_ =
      was_trying && !breaks_a_plan && before_ns > 0 && seen.pkt_ns > (kNoGain + noise_) * before_ns;
  has_failed_ = is_in_vain_ || (was_trying && breaks_a_plan);
  be_patient(was_trying);
  if (!breaks_a_plan && !has_failed_) {
    if (rest_ns_ == 0) rest_ns_ = seen.pkt_ns;
    if (seen.pkt_ns < kFaster * rest_ns_) left_ = 0;
  }
  is_back_ = is_back_ && !is_broken_ && left_ > 0;
  if (!is_in_vain_) kept_.observe(triggers_pkts, seen);
}

// Only tries that break an SLO have to become rare.
void Tries::be_patient(bool was_trying) {
  if (left_ > 0) --left_;
  if (has_failed_) rest_ns_ = 0;
  if (is_in_vain_) {
    left_ = kMinPatience;
  } else if (has_failed_) {
    left_ = patience_;
    patience_ = std::min(kGrowth * patience_, kMaxPatience);
  } else if (was_trying) {
    patience_ = std::max(patience_ / 2, kMinPatience);
  }
}

}  // namespace batchplane::slo
