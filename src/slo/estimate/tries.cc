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
  kept_ = proven_ = {};
  patience_ = kMinPatience;
  left_ = 0;
  last_ns_ = noise_ = 0;
  is_trying_ = has_failed_ = is_in_vain_ = is_broken_ = false;
}

const Tries::Point* Tries::way_back() const {
  if (is_in_vain_) return &kept_;
  return is_broken_ && proven_.pkt_ns > 0 ? &proven_ : nullptr;
}

void Tries::observe(const std::vector<double>& triggers_pkts, bool is_kept, double pkt_ns) {
  if (last_ns_ > 0 && triggers_pkts == last_pkts_) {
    noise_ += kNoiseStep * (std::abs(pkt_ns / last_ns_ - 1) - noise_);
  }
  last_ns_ = pkt_ns;
  last_pkts_ = triggers_pkts;
  const bool was_trying = std::exchange(is_trying_, false);
  is_broken_ = !is_kept;
  is_in_vain_ =
      was_trying && is_kept && kept_.pkt_ns > 0 && pkt_ns > (kNoGain + noise_) * kept_.pkt_ns;
  has_failed_ = is_in_vain_ || (was_trying && !is_kept);
  if (left_ > 0) --left_;
  // Only tries that break an SLO have to become rare.
  if (is_in_vain_) {
    left_ = kMinPatience;
  } else if (has_failed_) {
    left_ = patience_;
    patience_ = std::min(kGrowth * patience_, kMaxPatience);
  } else if (was_trying) {
    patience_ = std::max(patience_ / 2, kMinPatience);
  }
  if (pkt_ns < kFaster * began_ns_ && is_kept && !has_failed_) left_ = 0;
  if (!is_in_vain_) keep({triggers_pkts.begin(), triggers_pkts.end()}, is_kept, pkt_ns);
}

void Tries::keep(std::vector<uint32_t> triggers_pkts, bool is_kept, double pkt_ns) {
  if (!is_kept) {
    kept_ = {};
    if (triggers_pkts == proven_.triggers_pkts) proven_ = {};
    return;
  }
  const bool is_same = triggers_pkts == kept_.triggers_pkts;
  kept_ = {std::move(triggers_pkts), pkt_ns, is_same ? kept_.periods + 1 : 1};
  if (kept_.periods >= kProven) proven_ = kept_;
}

}  // namespace batchplane::slo
