// SPDX-License-Identifier: BSD-3-Clause
#include "common/trials.h"

#include <functional>

#include <stdexcept>

#include "base/clock.h"

namespace bench {
namespace {
constexpr uint32_t kResamples = 1000;
}  // namespace

double Result::percentile(double p) const { return bench::percentile(ns_per_pkt, p); }

std::vector<Result> run_interleaved(const std::vector<Contender>& contenders, uint32_t trials,
                                    uint32_t batches_per_trial) {
  std::vector<Result> results;
  for (const Contender& contender : contenders) {
    const std::string wrong = contender.verify();
    if (!wrong.empty()) throw std::runtime_error(contender.name + ": " + wrong);
    if (contender.prepare) contender.prepare();
    contender.run(batches_per_trial / 4 + 1);
    results.push_back({contender.name, {}});
  }
  const batchplane::TscClock& clock = batchplane::TscClock::instance();
  for (uint32_t trial = 0; trial < trials; ++trial) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      if (contenders[i].prepare) contenders[i].prepare();
      const uint64_t before = batchplane::TscClock::cycles();
      const uint64_t pkts = contenders[i].run(batches_per_trial);
      const uint64_t ns = clock.to_ns(batchplane::TscClock::cycles() - before);
      results[i].ns_per_pkt.push_back(static_cast<double>(ns) / static_cast<double>(pkts));
    }
  }
  return results;
}

namespace {

// Median of what `of` makes of both times of a trial.
template <class Of>
Interval paired(const Result& a, const Result& b, Of of) {
  const auto n = static_cast<uint32_t>(a.ns_per_pkt.size());
  return bootstrap(n, kResamples, [&](const std::vector<uint32_t>& trials) {
    std::vector<double> values;
    for (const uint32_t t : trials) values.push_back(of(a.ns_per_pkt[t], b.ns_per_pkt[t]));
    return std::vector<double>{median_of(std::move(values))};
  })[0];
}

}  // namespace

Interval paired_ratio(const Result& a, const Result& b) { return paired(a, b, std::divides()); }
Interval paired_difference(const Result& a, const Result& b) { return paired(a, b, std::minus()); }

Interval time_percentile(const Result& result, double p) {
  const auto n = static_cast<uint32_t>(result.ns_per_pkt.size());
  return bootstrap(n, kResamples, [&](const std::vector<uint32_t>& trials) {
    std::vector<double> times;
    for (const uint32_t t : trials) times.push_back(result.ns_per_pkt[t]);
    return std::vector<double>{percentile(std::move(times), p)};
  })[0];
}

}  // namespace bench
