// SPDX-License-Identifier: BSD-3-Clause
#include "slo/optimal/flow_delay.h"

#include <algorithm>
#include <cmath>

#include "exec/percentiles.h"
#include "exec/promise.h"

namespace batchplane::slo {
namespace {
constexpr double kMinRatio = 0.4;
constexpr double kMaxRatio = 4;
constexpr double kRatioStep = 0.25;      // of the ratio towards the measured one
constexpr double kLateStep = 0.5;   // and after a period in which the SLO was broken
constexpr double kSpreadStep = 0.1;   // of the deviation towards what a period shows
constexpr double kFaded = 0.1;     // a period
constexpr double kRestUp = 0.02;      // and where triggers rest
constexpr double kRestDown = 0.005;
constexpr double kOutlier = 4;      // deviations: one period says no more than that
constexpr double kViolated = 0.004;  // share of periods that may be broken
constexpr double kSigmas = 2;
constexpr double kSigmaOfMean = 1.25;  // standard over mean absolute deviation, normal
constexpr double kCareUp = 0.01;       // of the SLO, after a broken period
constexpr double kCareDown = kCareUp * kViolated / (1 - kViolated);
constexpr double kMaxMargin = 0.4;
constexpr double kNearSlo = 0.75;      // a percentile is this near the SLO
constexpr double kFewAllowed = 10;     // late packets of a period: fewer are chance
constexpr double kLateTogether = 8;    // of them in a batch

// Buckets by parts of the SLO say exactly how many packets lie below it: next to it they are finer
// than what is told, and agree with what is late.
double percentile_ns(const exec::FlowPeriod& period, double percentile) {
  const auto told_ns = static_cast<double>(period.delay_ns);
  const auto slo_ns = static_cast<double>(period.slo_ns);
  if (percentile <= 0 || percentile >= 1 || slo_ns <= 0) return told_ns;
  const double wanted_pkts = percentile * static_cast<double>(period.pkts);
  const double ratio = exec::SloBuckets::ratio_above(wanted_pkts, period.slo_buckets);
  return ratio >= kNearSlo && ratio <= 1 + 1 - kNearSlo ? ratio * slo_ns : told_ns;
}

}  // namespace

void FlowDelay::set_slo(uint64_t slo_ns, const Settings& settings) {
  const auto now_ns = static_cast<double>(slo_ns);
  has_other_slo_ = now_ns != slo_ns_;
  slo_ns_ = now_ns;
  is_late_ = false;
  if (!has_other_slo_) return;
  care_ = 0;
  deviation_ = settings.tolerance / (kSigmas * kSigmaOfMean);
}

void FlowDelay::forget() {
  is_late_ = false;
  measured_ns_ = 0;
  if (ratio_ > 1) ratio_ += kFaded * (1 - ratio_);
}

double FlowDelay::margin() const {
  return std::min(kMaxMargin, kSigmas * kSigmaOfMean * deviation_ + care_);
}

// A model errs most after triggers have moved; that it is right where they rest says little of the
// next move.
void FlowDelay::follow(double ratio, bool has_moved) {
  const double change = ratio / ratio_ - 1;
  const double seen = std::min(std::abs(change), kOutlier * std::max(deviation_, 1e-3));
  const double rest = seen > deviation_ ? kRestUp : kRestDown;
  deviation_ += (has_moved ? kSpreadStep : rest) * (seen - deviation_);
  const double step = std::max(is_late_ ? kLateStep : kRatioStep, 1.0 / (1 + ++periods_));
  ratio_ *= 1 + step * change;
}

void FlowDelay::learn(const exec::FlowPeriod& period, double modelled_ns, const How& how,
                      const Settings& settings) {
  const double allowed = exec::allowed_late_pkts(period.pkts, settings.percentile);
  const bool is_broken = exec::is_slo_broken(period, settings.percentile);
  const bool is_chance = settings.percentile > 0 && allowed < kFewAllowed &&
                         static_cast<double>(period.late_pkts) <=
                             allowed + std::sqrt(kLateTogether * std::max(allowed, 1.0));
  is_late_ = is_broken && !is_chance && !has_other_slo_;
  if (!how.has_no_margin) care_ = std::max(0.0, care_ + (is_late_ ? kCareUp : -kCareDown));
  const bool has_enough =
      exec::has_percentile(period.pkts, std::min(settings.percentile, 0.999));
  measured_ns_ = has_enough ? percentile_ns(period, settings.percentile) : 0;
  if (measured_ns_ <= 0 || modelled_ns <= 0) return;
  const double ratio = std::clamp(measured_ns_ / modelled_ns, kMinRatio, kMaxRatio);
  if (ratio <= ratio_ ? !how.holds : how.is_cut && !is_late_) return;
  if (is_known_) {
    follow(ratio, how.has_moved);
  } else {
    ratio_ = ratio;
    is_known_ = how.holds;
    // By chance alone a percentile of so few packets is off by so much.
    const double p = std::clamp(settings.percentile, 0.5, 0.99);
    const double chance =
        std::sqrt(p * (1 - p) * kLateTogether / static_cast<double>(period.pkts));
    deviation_ = std::max(deviation_, chance / kSigmaOfMean);
  }
}

}  // namespace batchplane::slo
