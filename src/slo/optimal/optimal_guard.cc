// SPDX-License-Identifier: BSD-3-Clause
#include "slo/optimal/optimal_guard.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {
constexpr size_t kMaxPoints = 8;
constexpr double kWorse = 0.01;     // of a rate: what is slower by this is left
constexpr double kBetter = 0.01;    // and what is to be tried must promise so much more
constexpr double kRateShare = 0.3;  // of what one period says of a point
constexpr double kLateShare = 0.05;
constexpr double kMostlyKept = 0.6;
constexpr double kMinSigmas = 1;
constexpr double kSigmasAPeriod = 0.25;
constexpr double kMaxSigmas = 2.5;
constexpr double kPeriodsBefore = 3;  // that what is known of late packets in general counts for
constexpr uint32_t kSlowGrowth = 2;
constexpr uint32_t kLateGrowth = 8;
constexpr double kOtherWork = 0.05;
constexpr uint32_t kMaxLeftOut = 50;  // periods below saturation
constexpr uint32_t kMinWait = 4;      // periods between tries, after one that failed
constexpr uint32_t kMaxWait = 5000;
constexpr double kMinProbeShare = 0.1;
constexpr double kMaxTrust = 1.1;
constexpr double kTrustReturn = 0.02;  // a period, of what it lost
constexpr double kNoiseShare = 0.1;    // of what one period says of it
constexpr double kNoiseFactor = 2;     // mean deviations

bool is_bypassed(const std::vector<uint32_t>& triggers_pkts) {
  return std::ranges::all_of(triggers_pkts, [](uint32_t pkts) { return pkts == 0; });
}
bool is_other(double now_ns, double before_ns) {
  return std::abs(now_ns - before_ns) > kOtherWork * before_ns;
}
}  // namespace

size_t RateGuard::find(const std::vector<uint32_t>& triggers_pkts) const {
  const auto at = std::ranges::find(points_, triggers_pkts, &OperatingPoint::triggers_pkts);
  return static_cast<size_t>(at - points_.begin());
}

void RateGuard::forget() {
  points_.clear();
  patience_ = kMinWait;
  left_ = 0;
  trust_ = 1;
  probe_share_ = kMaxProbeShare;
  is_trying_ = false;
  choice_ = Choice::kSolved;
}

const OperatingPoint* RateGuard::best() const {
  const auto at = std::ranges::max_element(points_, {}, &OperatingPoint::rate);
  return at == points_.end() ? nullptr : &*at;
}

double RateGuard::bypassed_rate() const {
  for (const OperatingPoint& point : points_) {
    if (is_bypassed(point.triggers_pkts)) return point.rate;
  }
  return 0;
}

// What did not carry more, or not within the promises, is not tried again soon; later and later.
void RateGuard::judge_try(const Period& period, double best_before) {
  const bool is_better = period.rate >= (1 + kBetter) * best_before;
  const bool is_worse = is_late_ || period.rate < (1 - kWorse) * best_before;
  if (!is_late_ && is_better) {
    patience_ = std::max(kMinWait, patience_ / 2);
    probe_share_ = kMaxProbeShare;
  } else if (is_trying_ && is_worse) {
    left_ = patience_;
    patience_ = std::min((is_late_ ? kLateGrowth : kSlowGrowth) * patience_, kMaxWait);
    if (choice_ == Choice::kProbe) probe_share_ = std::max(kMinProbeShare, probe_share_ / 2);
  }
  is_trying_ = false;
}

// Whether no flow would be late by chance: the more is known of the point, the less is left to it.
// What single periods show of chance counts beside what is known of late packets in general.
bool RateGuard::is_safe(const OperatingPoint& point) const {
  const double n = point.periods;
  const double sigmas = std::min(kMaxSigmas, kMinSigmas + kSigmasAPeriod * (n - 1));
  for (size_t f = 0; f < chance_.size(); ++f) {
    const double mean = point.late_mean[f];
    const double before = chance_[f] * mean;
    const double variance =
        (kPeriodsBefore * before + n * point.late_variance[f]) / (n + kPeriodsBefore);
    if (mean + sigmas * std::sqrt(variance) > 1) return false;
  }
  return true;
}

// A machine that gets slower, or costs that rise, move what any triggers would carry.
void RateGuard::follow_speed(double factor) {
  for (OperatingPoint& point : points_) point.rate *= factor;
}

void RateGuard::drop_slowest() {
  size_t slowest = points_.size();
  for (size_t i = 0; i < points_.size(); ++i) {
    if (is_bypassed(points_[i].triggers_pkts)) continue;
    if (slowest == points_.size() || points_[i].rate < points_[slowest].rate) slowest = i;
  }
  points_.erase(points_.begin() + static_cast<ptrdiff_t>(slowest));
}

// The point in force takes the period in; it goes, or does not come, where a promise was broken or
// may soon be.
void RateGuard::record(const Period& period, const std::vector<uint64_t>& limits_ns) {
  size_t at = find(seen_);
  if (at == points_.size()) {
    points_.push_back({.triggers_pkts = seen_,
                       .limits_ns = limits_ns,
                       .rate = period.rate,
                       .late_mean = period.late,
                       .late_variance = {}});
    points_[at].late_variance.assign(period.late.size(), 0);
  }
  OperatingPoint& point = points_[at];
  if (point.periods > 0 && point.rate > 0) {
    noise_ += kNoiseShare * (std::abs(period.rate / point.rate - 1) - noise_);
  }
  ++point.periods;
  const double part = std::max(kRateShare, 1.0 / point.periods);
  const double late_part = std::max(kLateShare, 1.0 / point.periods);
  if (point.periods > 1 && point.rate > 0) {
    follow_speed(1 + part * (period.rate / point.rate - 1));
  }
  point.limits_ns = limits_ns;
  point.kept_mean += part * ((period.is_kept ? 1 : 0) - point.kept_mean);
  for (size_t f = 0; f < period.late.size(); ++f) {
    const double off = period.late[f] - point.late_mean[f];
    point.late_mean[f] += late_part * off;
    point.late_variance[f] = (1 - late_part) * (point.late_variance[f] + late_part * off * off);
  }
  is_late_ = !period.is_kept || !is_safe(point);
  // One late period without buffers is the machine's; with many of them it is no choice.
  const bool stays = is_bypassed(point.triggers_pkts) && point.kept_mean > kMostlyKept;
  if (is_late_ && !stays) points_.erase(points_.begin() + static_cast<ptrdiff_t>(at));
  if (points_.size() > kMaxPoints) drop_slowest();
}

// Other traffic makes all of it worthless. Costs are learnt from the batches in force, so that they
// move with triggers, too: what holds nothing keeps every promise that can be kept, and stays to be
// compared with.
void RateGuard::forget_others(const Period& period) {
  if (is_other(period.work_ns, work_ns_)) {
    forget();
  } else if (is_other(period.costs_ns, costs_ns_)) {
    std::erase_if(points_, [](const auto& point) { return !is_bypassed(point.triggers_pkts); });
  } else {
    return;
  }
  work_ns_ = period.work_ns;
  costs_ns_ = period.costs_ns;
}

void RateGuard::observe(const Period& period, const std::vector<uint32_t>& triggers_pkts,
                        const std::vector<uint64_t>& limits_ns) {
  if (period.has_other_slos) forget();
  seen_ = triggers_pkts;
  is_kept_ = period.is_kept;
  is_late_ = false;
  is_left_out_ = !period.is_comparable || period.is_excused || period.has_other_slos;
  if (!period.is_comparable && ++left_out_ > kMaxLeftOut) forget();
  if (is_left_out_) return;
  left_out_ = 0;
  forget_others(period);
  if (seen_ == decided_ && predicted_ > 0) {
    trust_ = std::min(kMaxTrust, period.rate / predicted_);
  }
  // What was wrong once is tried again in the end.
  trust_ += kTrustReturn * (1 - trust_);
  if (left_ > 0) --left_;
  chance_ = period.chance;
  const double best_before = best() != nullptr ? best()->rate : 0;
  record(period, limits_ns);
  judge_try(period, best_before);
}

void RateGuard::decide(Choice choice, const std::vector<uint32_t>& triggers_pkts,
                       double predicted) {
  choice_ = choice;
  decided_ = triggers_pkts;
  predicted_ = predicted;
  is_trying_ = choice != Choice::kMeasured && decided_ != seen_ && best() != nullptr &&
               find(decided_) == points_.size();
}

void RateGuard::set_aside() {
  choice_ = Choice::kSolved;
  decided_.clear();
  predicted_ = 0;
  is_trying_ = false;
}

// Rates that differ by less than this may be the same; none where they hardly vary.
double RateGuard::chance_of_rates() const { return std::max(0.0, kNoiseFactor * noise_ - kBetter); }

bool RateGuard::accepts(const std::vector<uint32_t>& triggers_pkts, double predicted,
                        bool is_first) {
  const OperatingPoint* fastest = best();
  const size_t at = find(triggers_pkts);
  bool is_accepted = is_first || is_left_out_ || fastest == nullptr;
  if (!is_accepted && at < points_.size()) {
    const double max_lost = triggers_pkts == seen_ ? kWorse : kBetter;
    is_accepted = points_[at].rate >= (1 - max_lost - chance_of_rates()) * fastest->rate;
  } else if (!is_accepted) {
    // What was only at risk is followed by what is solved after it, not by a fall.
    is_accepted = (left_ == 0 || (is_late_ && is_kept_)) &&
                  predicted * trust_ > (1 + kBetter - chance_of_rates()) * fastest->rate;
  }
  if (is_accepted) {
    decide(Choice::kSolved, triggers_pkts, predicted);
  } else {
    decide(Choice::kMeasured, fastest->triggers_pkts, 0);
  }
  return is_accepted;
}

bool RateGuard::may_probe() const {
  const OperatingPoint* fastest = best();
  return left_ == 0 && !is_late_ && !is_left_out_ && fastest != nullptr && decided_ == seen_ &&
         fastest->triggers_pkts == seen_;
}

void RateGuard::probe(const std::vector<uint32_t>& triggers_pkts, double predicted) {
  decide(Choice::kProbe, triggers_pkts, predicted);
}

bool RateGuard::retreat(const std::vector<uint32_t>& triggers_pkts, double predicted) {
  if (predicted * trust_ <= (1 + kBetter) * best()->rate) return false;
  decide(Choice::kRetreat, triggers_pkts, predicted);
  return true;
}

}  // namespace batchplane::slo
