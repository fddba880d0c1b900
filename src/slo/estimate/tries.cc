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

bool is_zero(const std::vector<uint32_t>& triggers_pkts) {
  return std::ranges::all_of(triggers_pkts, [](uint32_t pkts) { return pkts == 0; });
}
}  // namespace

void Tries::forget() {
  kept_ = proven_ = {};
  patience_ = kMinPatience;
  left_ = 0;
  last_ns_ = noise_ = 0;
  is_back_ = false;
  broken_more_ = 0;
  skip();
}

const Tries::Point* Tries::way_back() const {
  if (is_in_vain_) return &kept_;
  if (!is_broken_) return nullptr;
  const Point& back = proven_.periods > 0 ? proven_ : kept_;
  const bool are_these = std::ranges::equal(back.triggers_pkts, last_pkts_);
  return back.periods > 0 && !are_these ? &back : nullptr;
}

void Tries::observe(const std::vector<double>& triggers_pkts, Slos slos, double pkt_ns,
                    bool is_chance) {
  if (last_ns_ > 0 && triggers_pkts == last_pkts_) {
    noise_ += kNoiseStep * (std::abs(pkt_ns / last_ns_ - 1) - noise_);
  }
  last_ns_ = pkt_ns;
  last_pkts_ = triggers_pkts;
  is_broken_ = slos != Slos::kKept;
  if (is_broken_ && !is_chance) ++broken_more_;
  if (!is_broken_ && broken_more_ > 0) --broken_more_;
  const bool was_trying = std::exchange(is_trying_, false);
  const bool is_kept = slos != Slos::kBroken;
  is_in_vain_ =
      was_trying && is_kept && kept_.pkt_ns > 0 && pkt_ns > (kNoGain + noise_) * kept_.pkt_ns;
  has_failed_ = is_in_vain_ || (was_trying && !is_kept);
  be_patient(was_trying);
  if (is_kept && !has_failed_) {
    if (rest_ns_ == 0) rest_ns_ = pkt_ns;
    if (pkt_ns < kFaster * rest_ns_) left_ = 0;
  }
  is_back_ = is_back_ && !is_broken_ && left_ > 0;
  if (!is_in_vain_) keep({triggers_pkts.begin(), triggers_pkts.end()}, pkt_ns);
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

// One broken period of many is chance. Full runs that hold nothing hardly differ: one period proves them.
void Tries::keep(const std::vector<uint32_t>& triggers_pkts, double pkt_ns) {
  const bool is_proven = triggers_pkts == proven_.triggers_pkts;
  if (is_broken_) {
    if (triggers_pkts == kept_.triggers_pkts) kept_ = {};
    if (is_proven && (proven_.periods /= 2) < kProven) proven_ = {};
    return;
  }
  const bool is_same = triggers_pkts == kept_.triggers_pkts;
  kept_ = {triggers_pkts, pkt_ns, is_same ? kept_.periods + 1 : 1};
  if (is_proven) {
    proven_.pkt_ns = pkt_ns;
    proven_.periods = std::min(proven_.periods + 1, kMostProven);
  } else if (kept_.periods >= kProven || is_zero(triggers_pkts)) {
    proven_ = kept_;
  }
}

}  // namespace batchplane::slo
