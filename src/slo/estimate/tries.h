// SPDX-License-Identifier: BSD-3-Clause
// tries.h - decides when triggers that keep all SLOs are left for a gain, and when they come back.
//
// A model errs most at triggers that were never in force. So after a try that broke an SLO others become rare.
// If it only gained nothing, the triggers before it come back. If the core has become faster since, as a
// shared one may, what failed may now keep the SLOs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "slo/estimate/kept.h"

namespace batchplane::slo {

class Tries {
 public:
  void observe(const Triggers& triggers_pkts, const Outcome& seen);
  // The period says nothing about its triggers, good or bad.
  void skip();
  // To be called when SLOs have changed.
  void forget() { *this = {}; }
  // Results so far, those of the last period included, say nothing about later periods.
  void prove_nothing() { kept_.prove_nothing(); }

  // The last period was a try, and broke an SLO or gained nothing; or just the latter.
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] bool is_in_vain() const { return is_in_vain_; }
  // Triggers that should come back; null: none.
  [[nodiscard]] const Kept::Point* way_back() const;
  // To be called when way_back() goes into force: these triggers stay for a while, as long as they keep the
  // SLOs, though the model has learnt otherwise.
  void come_back() {
    is_back_ = true;
    rest_ns_ = 0;
    left_ = std::max(left_, kMinPatience);
  }
  [[nodiscard]] bool is_back() const { return is_back_; }
  [[nodiscard]] bool may_try() const { return left_ == 0; }
  // The next period is a try.
  void begin() { is_trying_ = true; }

 private:
  void be_patient(bool was_trying);

  static constexpr uint32_t kMinPatience = 16;   // periods: estimates have settled again
  static constexpr uint32_t kMaxPatience = 256;  // so rarely may a try break a period at one speed
  static constexpr double kFaster = 0.9;         // times the packet time after a failed try

  Kept kept_;
  double noise_ = 0;    // mean relative change of the packet time from period to period at rest
  double last_ns_ = 0;  // time per packet in the last period; 0: not known
  Triggers last_pkts_;  // and its triggers
  double rest_ns_ = 0;  // time per packet once SLOs are kept again after a failed try
  uint32_t patience_ = kMinPatience;  // periods between tries, after a failed one
  uint32_t left_ = 0;
  bool is_trying_ = false;
  bool has_failed_ = false;
  bool is_in_vain_ = false;
  bool is_back_ = false;
  bool is_broken_ = false;  // an SLO, in the last period
};

}  // namespace batchplane::slo
