// SPDX-License-Identifier: BSD-3-Clause
#include "slo/estimate/kept.h"

#include <algorithm>

namespace batchplane::slo {
namespace {
bool hold_nothing(const Triggers& triggers_pkts) {
  return std::ranges::all_of(triggers_pkts, [](double pkts) { return pkts == 0; });
}
}  // namespace

const Kept::Point* Kept::proven(const Triggers& in_force_pkts) const {
  const Point& point = proven_.periods > 0 ? proven_ : last_;
  return point.periods > 0 && point.triggers_pkts != in_force_pkts ? &point : nullptr;
}

// One broken period of many is chance. Full runs that hold nothing hardly differ: one period proves them.
void Kept::observe(const Triggers& triggers_pkts, const Outcome& seen) {
  const bool is_proven = triggers_pkts == proven_.triggers_pkts;
  if (!seen.is_kept()) {
    if (triggers_pkts == last_.triggers_pkts) last_ = {};
    if (is_proven && (proven_.periods /= 2) < kProven) proven_ = {};
    return;
  }
  const bool is_same = triggers_pkts == last_.triggers_pkts;
  last_ = {triggers_pkts, seen.pkt_ns, is_same ? last_.periods + 1 : 1};
  if (is_proven) {
    proven_.pkt_ns = seen.pkt_ns;
    proven_.periods = std::min(proven_.periods + 1, kMostProven);
  } else if (last_.periods >= kProven || hold_nothing(triggers_pkts)) {
    proven_ = last_;
  }
}

}  // namespace batchplane::slo
