// SPDX-License-Identifier: BSD-3-Clause
#include "slo/estimate/tries.h"

#include <algorithm>
#include <utility>

namespace batchplane::slo {
namespace {
constexpr double kNoGain = 1.01;  // times the packet time before the move
constexpr uint32_t kGrowth = 4;   // factor on the patience after a failed try
}  // namespace

void Tries::forget() {
  kept_ns_ = 0;
  patience_ = kMinPatience;
  left_ = 0;
  is_trying_ = has_failed_ = false;
}

void Tries::observe(const std::vector<double>& triggers_pkts, bool is_kept, double pkt_ns) {
  const bool was_trying = std::exchange(is_trying_, false);
  has_failed_ = was_trying && has_kept() && (!is_kept || pkt_ns > kNoGain * kept_ns_);
  if (left_ > 0) --left_;
  if (has_failed_) {
    left_ = patience_;
    patience_ = std::min(kGrowth * patience_, kMaxPatience);
    return;
  }
  if (was_trying) patience_ = std::max(patience_ / 2, kMinPatience);
  if (!is_kept) {
    kept_ns_ = 0;
    return;
  }
  kept_pkts_.assign(triggers_pkts.begin(), triggers_pkts.end());
  kept_ns_ = pkt_ns;
}

}  // namespace batchplane::slo
