// SPDX-License-Identifier: BSD-3-Clause
#include "placement/candidates.h"

#include <algorithm>
#include <bit>

namespace batchplane::placement {
namespace {

// Batch sizes on one device, at a share of the rate, that by themselves keep the budget and the
// utilisation limit. A larger batch takes less device time and adds delay.
std::vector<uint32_t> sizes_for(const Problem& problem, size_t a, size_t d, double share) {
  std::vector<uint32_t> sizes;
  const App& app = problem.apps[a];
  const Law& law = problem.laws[a][d];
  const double rate_pps = app.rate_pps * share;
  for (uint32_t b = 1; b <= law.max_batch_pkts; b *= 2) {
    const double ns = law.batch_time_ns(b, app.pkt_bytes);
    const double fill_ns = rate_pps > 0 ? (b - 1) * 1e9 / rate_pps : 0;
    if (fill_ns + ns > app.budget_ns) break;
    const double busy_ns = law.batch_busy_ns(b, app.pkt_bytes);
    if (busy_ns * 1e-9 * rate_pps / b <= problem.most_utilisation) sizes.push_back(b);
  }
  return sizes;
}

// With more devices, pairs share a flow by speed only, until the search shifts parts.
constexpr size_t kFewDevices = 3;
constexpr uint32_t kParts = 8;

// The smallest and the largest size, and sizes at equal steps between them.
std::vector<uint32_t> thinned(const std::vector<uint32_t>& sizes) {
  constexpr size_t kMost = 4;
  if (sizes.size() <= kMost) return sizes;
  std::vector<uint32_t> some;
  for (size_t i = 0; i < kMost; ++i) some.push_back(sizes[i * (sizes.size() - 1) / (kMost - 1)]);
  return some;
}

class Maker {
 public:
  Maker(const Problem& problem, size_t app, double served)
      : problem_(problem), app_(app), served_(served) {
    for (size_t d = 0; d < problem.devices.size(); ++d) {
      if (problem.devices[d].is_up && problem.laws[app][d].is_there) usable_.push_back(d);
    }
  }

  std::vector<Candidate> make() {
    found_.push_back(candidate_from(problem_, app_, Placed{}));
    for (const size_t d : usable_) add_single(d);
    const bool has_few = usable_.size() <= kFewDevices;
    for (size_t i = 0; has_few && i < usable_.size(); ++i) {
      for (size_t j = i + 1; j < usable_.size(); ++j) add_pair(usable_[i], usable_[j]);
    }
    // A part goes to one device at first; the search adds more devices.
    if (served_ < 1 && !has_few) return std::move(found_);
    for (uint32_t set = 1; set < 1U << usable_.size(); ++set) {
      if (std::popcount(set) > 1) add_many(set);
    }
    return std::move(found_);
  }

 private:
  void add_single(size_t d) {
    for (const uint32_t size : sizes_for(problem_, app_, d, served_)) {
      Placed placed;
      placed.share[d] = served_;
      placed.batch_pkts[d] = size;
      found_.push_back(candidate_from(problem_, app_, placed));
    }
  }
  void add_pair(size_t d, size_t e) {
    for (uint32_t k = 1; k < kParts; ++k) {
      const double share = served_ * k / kParts;
      const std::vector<uint32_t> of_e = thinned(sizes_for(problem_, app_, e, served_ - share));
      for (const uint32_t b : thinned(sizes_for(problem_, app_, d, share))) {
        for (const uint32_t c : of_e) {
          Placed placed;
          placed.share[d] = share;
          placed.share[e] = served_ - share;
          placed.batch_pkts[d] = b;
          placed.batch_pkts[e] = c;
          found_.push_back(candidate_from(problem_, app_, placed));
        }
      }
    }
  }
  // Shares by speed at large batches, so that all devices are equally busy.
  void add_many(uint32_t set) {
    double all_speed = 0;
    std::array<double, kMaxDevices> speed{};
    for (size_t i = 0; i < usable_.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      const Law& law = problem_.laws[app_][usable_[i]];
      const uint32_t b = std::min(law.max_batch_pkts, 1024U);
      speed[i] = b / std::max(1.0, law.batch_busy_ns(b, problem_.apps[app_].pkt_bytes));
      all_speed += speed[i];
    }
    for (const bool is_large : {false, true}) {
      Placed placed;
      bool is_possible = true;
      for (size_t i = 0; i < usable_.size() && is_possible; ++i) {
        if ((set >> i & 1) == 0) continue;
        const size_t d = usable_[i];
        placed.share[d] = served_ * speed[i] / all_speed;
        const std::vector<uint32_t> sizes = sizes_for(problem_, app_, d, placed.share[d]);
        is_possible = !sizes.empty();
        if (is_possible) placed.batch_pkts[d] = is_large ? sizes.back() : sizes.front();
      }
      if (is_possible) found_.push_back(candidate_from(problem_, app_, placed));
    }
  }

  const Problem& problem_;
  const size_t app_;
  const double served_;
  std::vector<size_t> usable_;
  std::vector<Candidate> found_;
};

}  // namespace

Candidate candidate_from(const Problem& problem, size_t a, const Placed& placed) {
  const App& app = problem.apps[a];
  Candidate one;
  one.placed = placed;
  one.served_value = app.value * app.rate_pps * placed.served();
  for (size_t d = 0; d < problem.devices.size(); ++d) {
    if (placed.share[d] <= 0) continue;
    one.devices = static_cast<uint8_t>(one.devices | 1U << d);
    const double pkts = placed.batch_pkts[d];
    const double rate_pps = app.rate_pps * placed.share[d];
    one.busy_ns[d] = problem.laws[a][d].batch_busy_ns(pkts, app.pkt_bytes);
    one.longer_ns[d] = problem.laws[a][d].batch_time_ns(pkts, app.pkt_bytes) - one.busy_ns[d];
    one.batches_ps[d] = rate_pps / pkts;
    one.busy[d] = one.busy_ns[d] * 1e-9 * one.batches_ps[d];
    one.fill_ns[d] = rate_pps > 0 ? (pkts - 1) * 1e9 / rate_pps : app.budget_ns;
  }
  return one;
}

std::vector<Candidate> candidates_of(const Problem& problem, size_t app, double served) {
  return Maker(problem, app, served).make();
}

}  // namespace batchplane::placement
