// SPDX-License-Identifier: BSD-3-Clause
#include "slo/estimate/flow_delay.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "exec/percentiles.h"
#include "exec/promise.h"
#include "slo/model/budget.h"

namespace batchplane::slo {
namespace {
constexpr double kMinRatio = 0.4;  // of measured over modelled delay: beyond, no model helps
constexpr double kMaxRatio = 4;
constexpr double kRatioStep = 0.25;  // step of the ratio towards the measured one
constexpr double kLateStep = 0.5;    // the same step after a period that broke the SLO
constexpr double kFaded = 0.1;       // part of a learned ratio that fades per period of backlog
constexpr double kNearSlo = 0.75;    // of the SLO: from here on a percentile is near it
constexpr double kManyLate = 10;     // packets more than are allowed: no chance

constexpr double kMovedStep = 0.3;     // step of the error after moves towards the last one
constexpr double kFadedMoves = 0.001;  // part of it that fades per period at rest
constexpr double kOfMoves = 2;         // times the mean error after moves is kept free
constexpr double kNoiseUp = 0.05;      // step of the error at rest towards a larger one
constexpr double kNoiseDown = 0.02;
constexpr double kSigmaOfMean = 1.25;  // standard over mean absolute deviation of a normal value
constexpr double kMaxCare = 0.25;      // of the SLO
constexpr double kLateByLittle = 0.1;  // of the SLO: beyond, the machine is to blame
constexpr double kCareUp = 0.01;       // of the SLO, added after a broken period
constexpr double kMinRest = 0.01;      // of the SLO, free while triggers rest
constexpr double kMaxRest = 0.1;       // more noise than that is left to care
constexpr double kMaxOfMoves = 0.15;   // of the SLO, free for errors of moves
constexpr double kMaxPerChange = 0.5;  // error of a move, per change of delay
constexpr double kLeastChange = 0.1;   // of a delay: errors of smaller changes count as of this one

bool has_percentile(const exec::FlowPeriod& period, double percentile) {
  return exec::has_percentile(period.pkts, std::min(percentile, 0.999));
}

// SLO buckets count how many packets lie below parts of the SLO: just below it they agree with the late packets,
// which the reported percentile need not. Beyond it they are a quarter of the SLO wide.
double delay_ns(const exec::FlowPeriod& period, double percentile) {
  const auto told_ns = static_cast<double>(period.delay_ns);
  const auto slo_ns = static_cast<double>(period.slo_ns);
  if (percentile <= 0 || percentile >= 1 || slo_ns <= 0) return told_ns;
  const double wanted_pkts = percentile * static_cast<double>(period.pkts);
  const double ratio = exec::SloBuckets::ratio_above(wanted_pkts, period.slo_buckets);
  if (ratio < kNearSlo || !std::isfinite(ratio)) return told_ns;
  return ratio > 1 ? std::max(told_ns, slo_ns) : ratio * slo_ns;
}

// Says something about the delay, or how late it is.
bool tells(const exec::FlowPeriod& period, double percentile) {
  const double allowed = exec::allowed_late_pkts(period.pkts, percentile);
  return has_percentile(period, percentile) ||
         static_cast<double>(period.late_pkts) > allowed + kManyLate;
}
}  // namespace

bool is_surely_late(const exec::FlowPeriod& period, double percentile) {
  return exec::is_slo_broken(period, percentile) && (percentile >= 1 || tells(period, percentile));
}

double percentile_ns(const exec::FlowPeriod& period, double percentile) {
  return has_percentile(period, percentile) ? delay_ns(period, percentile) : 0;
}

void FlowDelay::begin(uint64_t slo_ns) {
  const auto now_ns = static_cast<double>(slo_ns);
  if (now_ns != slo_ns_) sum_ = {};
  has_other_slo_ |= now_ns != slo_ns_;
  slo_ns_ = now_ns;
  is_late_ = false;
  measured_ns_ = usual_ns_ = 0;
  error_.reset();
  error_of_change_.reset();
}

void FlowDelay::forget() {
  if (ratio_ > 1) ratio_ += kFaded * (1 - ratio_);
}

void FlowDelay::add(const exec::FlowPeriod& period, double modelled_ns, double percentile) {
  if (sum_.pkts == 0 || has_percentile(period, percentile)) {
    sum_ = period;
    modelled_sum_ns_ = modelled_ns;
    return;
  }
  sum_.pkts += period.pkts;
  sum_.late_pkts += period.late_pkts;
  sum_.delay_sum_ns += period.delay_sum_ns;
  for (uint32_t b = 0; b < exec::SloBuckets::kCount; ++b) {
    sum_.slo_buckets[b] += period.slo_buckets[b];
  }
  const double share = static_cast<double>(period.pkts) / static_cast<double>(sum_.pkts);
  modelled_sum_ns_ = std::lerp(modelled_sum_ns_, modelled_ns, share);
  const auto before_ns = static_cast<double>(sum_.delay_ns);
  const auto told_ns = static_cast<double>(period.delay_ns);
  // Near the SLO its buckets say more than this.
  sum_.delay_ns = static_cast<uint64_t>(percentile >= 1 ? std::max(before_ns, told_ns)
                                                        : std::lerp(before_ns, told_ns, share));
}

void FlowDelay::learn(const exec::FlowPeriod& period, double modelled_ns, const How& how,
                      double percentile) {
  if (period.pkts == 0 || modelled_ns <= 0) return;
  add(period, modelled_ns, percentile);
  // Delays under triggers planned for another SLO are not late for this one.
  is_late_ = is_surely_late(percentile >= 1 ? period : sum_, percentile) && !has_other_slo_;
  usual_ns_ = periods_ > 0 ? modelled_ns * ratio_ : 0;
  if (!tells(sum_, percentile)) return;
  measured_ns_ = usual_ns_ = delay_ns(sum_, percentile);
  modelled_ns = modelled_sum_ns_;
  sum_ = {};
  const double last_ns = std::exchange(last_ns_, measured_ns_);
  double ratio = std::clamp(measured_ns_ / modelled_ns, kMinRatio, kMaxRatio);
  // Without buffers all runs may be alike: a shorter delay then says little about runs with
  // buffers, where runs of a single task make the delay.
  if (!how.holds && !how.crosses) ratio = std::max(ratio, std::min(1.0, ratio_));
  if (ratio > ratio_ && how.is_cut && !is_late_) return;
  const double error = ratio / ratio_ - 1;
  if (periods_ > 0 && how.holds) {
    const double told_ns = modelled_ns * ratio_;
    error_ = error;
    const double change_ns = std::max(std::abs(told_ns - last_ns), kLeastChange * last_ns);
    error_of_change_ = (measured_ns_ - told_ns) / change_ns;
  }
  double step = is_late_ ? kLateStep : kRatioStep;
  if (how.holds) {
    step = std::max(step, 1.0 / ++periods_);
  } else if (!std::exchange(has_seen_, true)) {
    step = 1;
  }
  ratio_ *= 1 + step * error;
  if (how.holds) usual_ns_ = modelled_ns * ratio_;
}

bool FlowDelay::is_late_by_little() const {
  return is_late_ && measured_ns_ > 0 && measured_ns_ <= (1 + kLateByLittle) * slo_ns_;
}

Margin::Margin(const Settings& settings)
    : one_flow_sigmas_(sigmas_of(1 - settings.violated_ratio)),
      care_down_(kCareUp * settings.violated_ratio / (1 - settings.violated_ratio)),
      move_error_(settings.tolerance / kOfMoves) {}

void Margin::learn(const Seen& seen) {
  // The largest of n normal values.
  sigmas_ = std::sqrt(one_flow_sigmas_ * one_flow_sigmas_ + 2 * std::log(std::max(1U, seen.flows)));
  if (seen.was_used && seen.tells) {
    care_ = std::clamp(care_ + (seen.is_late ? kCareUp : -care_down_), 0.0, kMaxCare);
  }
  if (seen.errors == 0) return;
  if (seen.has_moved) {
    move_error_ += kMovedStep * (std::min(seen.error, kMaxPerChange) - move_error_);
  } else {
    move_error_ *= 1 - kFadedMoves;
    noise_ += (seen.error > noise_ ? kNoiseUp : kNoiseDown) * (seen.error - noise_);
  }
}

double Margin::at_rest() const {
  return std::clamp(sigmas_ * kSigmaOfMean * noise_, kMinRest, kMaxRest) + care_;
}

double Margin::most_ns(double slo_ns, double now_ns) const {
  const double limit_ns = slo_ns * (1 - at_rest());
  const double per_change = std::min(kMaxPerChange, kOfMoves * move_error_);
  // The limit less the error of the change from `now_ns`.
  const double part = now_ns > limit_ns ? -per_change : per_change;
  const double most_ns = (limit_ns + part * now_ns) / (1 + part);
  return std::max(most_ns, std::min(limit_ns, slo_ns * (1 - kMaxOfMoves - care_)));
}

}  // namespace batchplane::slo
