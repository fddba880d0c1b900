// SPDX-License-Identifier: BSD-3-Clause
// tries.h - remembers triggers that kept all SLOs as measured, and decides when to try others for a
// gain.
//
// A model errs most at triggers that were never in force. Triggers that keep all SLOs are left only
// for a gain, and rarely if the last try broke an SLO. If it only gained nothing, they come back. Where an
// SLO is broken, those that kept it for several periods in a row come back. If the core has become
// faster since a failed try, as a shared one may, what failed may now keep the SLOs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace batchplane::slo {

class Tries {
 public:
  struct Point {
    std::vector<uint32_t> triggers_pkts;
    double pkt_ns = 0;     // a packet takes; 0: no such triggers
    uint32_t periods = 0;  // in which all SLOs were kept
  };

  // kLeftOut: only those were broken for which the plan found no triggers.
  enum class Slos { kKept, kLeftOut, kBroken };

  // Records a period with these triggers, and the time per packet. `is_chance`: so few of many flows were late
  // that it may be chance.
  void observe(const std::vector<double>& triggers_pkts, Slos slos, double pkt_ns,
               bool is_chance = false);
  // The period says nothing about its triggers, good or bad.
  void skip() {
    has_failed_ = is_in_vain_ = is_broken_ = is_trying_ = false;
    last_ns_ = 0;
  }
  // To be called when SLOs have changed.
  void forget();
  // What triggers kept so far, the last period included, proves nothing for the next ones.
  void prove_nothing() {
    proven_ = {};
    kept_.periods = 0;
  }

  // The last period was a try, and broke an SLO or gained nothing; or just the latter.
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] bool is_in_vain() const { return is_in_vain_; }
  // Triggers that should come back; null: none.
  [[nodiscard]] const Point* way_back() const;
  // More periods broke an SLO than kept all, for some time: whatever the next triggers promise.
  [[nodiscard]] bool must_go_back() const { return broken_more_ >= kMaxBroken; }
  // They do: they stay for a while, as long as they keep the SLOs, though the model has learnt otherwise.
  void come_back() {
    is_back_ = true;
    broken_more_ = 0;
    left_ = std::max(left_, kMinPatience);
  }
  [[nodiscard]] bool is_back() const { return is_back_; }
  // Mean relative change of the packet time from period to period under the same triggers.
  [[nodiscard]] double noise() const { return noise_; }
  [[nodiscard]] bool may_try() const { return left_ == 0; }
  // The next period is a try.
  void begin() { is_trying_ = true; }

 private:
  void be_patient(bool was_trying);
  void keep(const std::vector<uint32_t>& triggers_pkts, double pkt_ns);

  static constexpr uint32_t kMinPatience = 16;
  static constexpr uint32_t kMaxPatience = 256;  // so rarely may a try break a period at one speed
  static constexpr double kFaster = 0.9;         // times the packet time after a failed try
  static constexpr uint32_t kMaxBroken = 12;     // periods more than kept ones
  static constexpr uint32_t kProven = 8;         // periods in a row
  static constexpr uint32_t kMostProven = 32;    // count: halved by a period that broke an SLO

  Point kept_;    // in the last period that kept all SLOs
  Point proven_;  // for several of them
  double noise_ = 0;
  double last_ns_ = 0;                // time per packet in the last period; 0: not known
  std::vector<double> last_pkts_;     // and its triggers
  double rest_ns_ = 0;                // time per packet once SLOs are kept again after a failed try
  uint32_t patience_ = kMinPatience;  // periods between tries, after a failed one
  uint32_t left_ = 0;
  bool is_trying_ = false;
  bool has_failed_ = false;
  bool is_in_vain_ = false;
  bool is_back_ = false;
  bool is_broken_ = false;    // an SLO, in the last period
  uint32_t broken_more_ = 0;  // periods that broke an SLO, less those that kept all
};

}  // namespace batchplane::slo
