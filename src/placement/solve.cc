// SPDX-License-Identifier: BSD-3-Clause
// solve.cc - chooses one candidate for each application, then shifts parts and trades time between
// applications, and places some of them anew, as long as its effort allows.
#include "placement/solve.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/rng.h"
#include "placement/candidates.h"

namespace batchplane::placement {
namespace {

constexpr double kPromising = 1.3;        // times the best score: within it, worth more time
constexpr uint32_t kMostOut = 4;          // applications taken out at once
constexpr double kLeastShare = 1 / 64.0;  // a smaller rest moves along with a shift
constexpr double kImpossible = std::numeric_limits<double>::infinity();

// Computes the same as evaluate(), on candidates, without allocating.
class Judge {
 public:
  explicit Judge(const Problem& problem)
      : problem_(problem),
        n_apps_(problem.apps.size()),
        n_devices_(problem.devices.size()),
        most_w_(most_watts(problem)) {
    for (const App& app : problem.apps) offered_ += app.value * app.rate_pps;
    for (size_t d = 0; d < n_devices_; ++d) {
      if (!problem.devices[d].is_up) down_ |= 1U << d;
    }
    if (!problem.slowdown.empty()) fill_worst();
  }

  [[nodiscard]] double score(const Candidate* const* chosen) const {
    std::array<double, kMaxDevices> round_ns{};
    std::array<double, kMaxDevices> busy{};
    std::array<Jitter, kMaxDevices> jitter{};
    double own[kMaxApps][kMaxDevices];
    double longer_ns[kMaxApps][kMaxDevices];
    for (size_t a = 0; a < n_apps_; ++a) {
      const Candidate& one = *chosen[a];
      if ((one.devices & down_) != 0) return kImpossible;
      for (uint32_t left = one.devices; left != 0; left &= left - 1) {
        const auto d = static_cast<size_t>(std::countr_zero(left));
        const double factor = worst_.empty() ? 1 : slowdown(chosen, a, d);
        round_ns[d] += one.busy_ns[d] * factor;
        longer_ns[a][d] = one.longer_ns[d] * factor;
        own[a][d] = one.busy[d] * factor;
        busy[d] += own[a][d];
        jitter[d].add(one.batches_ps[d], one.busy_ns[d] * factor, one.placed.batch_pkts[d]);
      }
    }
    std::array<double, kMaxDevices> device_w{};
    double watts = 0;
    for (size_t d = 0; d < n_devices_; ++d) {
      if (busy[d] > problem_.most_utilisation + 1e-9) return kImpossible;
      const Device& device = problem_.devices[d];
      device_w[d] = round_ns[d] > 0 ? device.idle_w + (device.active_w - device.idle_w) * busy[d]
                                    : device.off_w;
      watts += device_w[d];
      round_ns[d] += jitter[d].wait_ns(busy[d]);
    }
    if (problem_.watt_cap > 0 && watts > problem_.watt_cap) return kImpossible;
    double served = 0;
    double cost = 0;
    for (size_t a = 0; a < n_apps_; ++a) {
      const Candidate& one = *chosen[a];
      const App& app = problem_.apps[a];
      double delay_ns = 0;
      double own_w = 0;
      double busiest = 0;
      for (uint32_t left = one.devices; left != 0; left &= left - 1) {
        const auto d = static_cast<size_t>(std::countr_zero(left));
        delay_ns = std::max(delay_ns, one.fill_ns[d] + round_ns[d] + longer_ns[a][d]);
        busiest = std::max(busiest, busy[d]);
        if (busy[d] > 0) own_w += (device_w[d] - problem_.devices[d].off_w) * own[a][d] / busy[d];
      }
      if (delay_ns > app.budget_ns * (1 + 1e-12)) return kImpossible;
      served += one.served_value;
      cost += app.policy == Policy::kPower     ? own_w / most_w_
              : app.policy == Policy::kLatency ? delay_ns / app.budget_ns
                                               : busiest;
    }
    return kServedWeight * (1 - (offered_ > 0 ? served / offered_ : 1)) + cost;
  }

 private:
  // worst_[b][set][a][d]: slow-down of a on d while b uses the devices of `set`.
  void fill_worst() {
    const size_t n_sets = size_t{1} << n_devices_;
    worst_.assign(n_apps_ * n_sets * n_apps_ * n_devices_, 1);
    for (size_t b = 0; b < n_apps_; ++b) {
      for (size_t set = 1; set < n_sets; ++set) {
        const auto e = static_cast<size_t>(std::countr_zero(set));
        const size_t rest = set & (set - 1);
        for (size_t a = 0; a < n_apps_; ++a) {
          for (size_t d = 0; d < n_devices_ && a != b; ++d) {
            worst_[index(b, set, a, d)] =
                std::max(worst_[index(b, rest, a, d)], problem_.slowdown_of(a, d, b, e));
          }
        }
      }
    }
  }
  [[nodiscard]] size_t index(size_t b, size_t set, size_t a, size_t d) const {
    return (((b << n_devices_) + set) * n_apps_ + a) * n_devices_ + d;
  }
  [[nodiscard]] double slowdown(const Candidate* const* chosen, size_t a, size_t d) const {
    double factor = 1;
    for (size_t b = 0; b < n_apps_; ++b) {
      if (b != a) factor *= worst_[index(b, chosen[b]->devices, a, d)];
    }
    return factor;
  }

  const Problem& problem_;
  const size_t n_apps_;
  const size_t n_devices_;
  const double most_w_;
  uint32_t down_ = 0;  // devices
  double offered_ = 0;
  std::vector<double> worst_;
};

class Search {
 public:
  Search(const Problem& problem, const Judge& judge,
         const std::vector<std::vector<Candidate>>& candidates, uint32_t most_tried)
      : problem_(problem), judge_(judge), candidates_(candidates), most_tried_(most_tried) {}

  // Improves a plan until no single application can do better.
  double improve(std::vector<Candidate>& plan) {
    begin(plan);
    for (double before = kImpossible; has_time();) {
      for (size_t a = 0; a < plan.size(); ++a) answer(a);
      for (size_t a = 0; a < plan.size(); ++a) shift(a);
      for (size_t a = 0; a < plan.size(); ++a) trade(a);
      if (best_ >= before) break;
      before = best_;
    }
    return best_;
  }
  // Takes some applications out, puts one of them anywhere, and lets the others respond as well as
  // they can. A score near `least` is worth more time.
  double shake(std::vector<Candidate>& plan, double least, Rng& rng) {
    begin(plan);
    const auto n = static_cast<uint32_t>(plan.size());
    const uint32_t first = rng.below(n);
    const uint32_t n_out = 1 + rng.below(std::min(n, kMostOut));
    const uint32_t step = n > 2 ? 1 + rng.below(n - 1) : 1;
    for (uint32_t i = 0; i < n_out; ++i) {
      const size_t a = (first + i * step) % n;
      take(a, candidates_[a].front());
    }
    best_ = judge_.score(chosen_.data());
    const Candidate forced = anywhere(first, rng);
    take(first, forced);
    const double score = judge_.score(chosen_.data());
    if (score < kImpossible) {
      best_ = score;
    } else {
      take(first, candidates_[first].front());
    }
    for (uint32_t i = 1; i <= n_out; ++i) answer((first + i * step) % n);
    answer(first);
    return best_ > kPromising * least ? best_ : improve(plan);
  }
  [[nodiscard]] bool has_time() const { return n_tried_ < most_tried_; }

 private:
  void begin(std::vector<Candidate>& plan) {
    plan_ = &plan;
    chosen_.clear();
    for (const Candidate& one : plan) chosen_.push_back(&one);
    best_ = judge_.score(chosen_.data());
  }
  bool is_better(size_t a, const Candidate& one) {
    ++n_tried_;
    const Candidate* const was = chosen_[a];
    chosen_[a] = &one;
    const double score = judge_.score(chosen_.data());
    chosen_[a] = was;
    if (score >= best_) return false;
    best_ = score;
    return true;
  }
  void take(size_t a, const Candidate& one) { (*plan_)[a] = one; }

  // One of its candidates, or a mixture of two.
  Candidate anywhere(size_t a, Rng& rng) const {
    const auto any = [&]() -> const Candidate& {
      return candidates_[a][rng.below(static_cast<uint32_t>(candidates_[a].size()))];
    };
    const Candidate& one = any();
    const Candidate& other = any();
    if (rng.below(2) == 0 || one.devices == other.devices) return one;
    Placed way;
    const double weight = (1 + rng.below(7)) / 8.0;
    for (size_t d = 0; d < problem_.devices.size(); ++d) {
      way.share[d] = weight * one.placed.share[d] + (1 - weight) * other.placed.share[d];
      way.batch_pkts[d] = std::max(one.placed.batch_pkts[d], other.placed.batch_pkts[d]);
    }
    return candidate_from(problem_, a, way);
  }
  // Takes the application's best candidate, given all the others.
  bool answer(size_t a) {
    const Candidate* best = nullptr;
    for (const Candidate& one : candidates_[a]) {
      const bool is_less = one.served_value < chosen_[a]->served_value && best_ < kImpossible;
      if (is_less && &one != candidates_[a].data()) break;
      if (is_better(a, one)) best = &one;
    }
    if (best != nullptr) take(a, *best);
    return best != nullptr;
  }
  // Tries other batch sizes on a device, and moving a part of the packets to another device.
  void shift(size_t a) {
    for (bool has_gained = true; has_gained && has_time();) {
      has_gained = false;
      const Placed from = (*plan_)[a].placed;
      for (size_t d = 0; d < problem_.devices.size(); ++d) {
        if (from.share[d] <= 0) continue;
        for (uint32_t b = 1; b <= problem_.laws[a][d].max_batch_pkts; b *= 2) {
          Placed to = from;
          to.batch_pkts[d] = b;
          has_gained |= try_way(a, to);
        }
        for (size_t e = 0; e < problem_.devices.size(); ++e) {
          if (e != d && can_use(a, e)) has_gained |= shift_between(a, from, d, e);
        }
      }
      for (size_t e = 0; from.served() < 1 - 1e-9 && e < problem_.devices.size(); ++e) {
        if (can_use(a, e)) has_gained |= serve_more(a, from, e);
      }
    }
  }
  bool shift_between(size_t a, const Placed& from, size_t d, size_t e) {
    bool has_gained = false;
    const bool is_new = from.share[e] <= 0;
    for (const double part : {1 / 32.0, 1 / 8.0, 1 / 2.0}) {
      const double moved = from.share[d] - part < kLeastShare ? from.share[d] : part;
      Placed to = from;
      to.share[d] -= moved;
      to.share[e] += moved;
      if (to.share[d] < 1e-9) to.share[d] = to.batch_pkts[d] = 0;
      const uint32_t most = problem_.laws[a][e].max_batch_pkts;
      const uint32_t first = is_new ? 1 : std::max(1U, from.batch_pkts[e] / 4);
      const uint32_t last = is_new ? most : std::min(most, from.batch_pkts[e] * 4);
      for (uint32_t b = first; b <= last; b *= 2) {
        to.batch_pkts[e] = b;
        for (uint32_t cut = 1; cut <= 4; cut *= 2) {
          to.batch_pkts[d] = from.batch_pkts[d] / cut;
          if (to.share[d] > 0 && to.batch_pkts[d] == 0) break;
          has_gained |= try_way(a, to);
          if (to.share[d] <= 0) break;
        }
      }
      if (moved >= from.share[d]) break;
    }
    return has_gained;
  }
  // Trades device time: smaller batches here for larger ones of another application.
  void trade(size_t a) {
    for (size_t b = 0; b < plan_->size(); ++b) {
      for (size_t d = 0; b != a && d < problem_.devices.size(); ++d) {
        for (bool has_gained = true; has_gained && has_time();) {
          has_gained = trade_on(a, b, d);
        }
      }
    }
  }
  bool trade_on(size_t a, size_t b, size_t d) {
    const Placed was_a = (*plan_)[a].placed;
    const Placed was_b = (*plan_)[b].placed;
    if (was_a.share[d] <= 0 || was_b.share[d] <= 0) return false;
    for (uint32_t down = 2; down <= 4; down *= 2) {
      for (uint32_t up = 2; up <= 4; up *= 2) {
        Placed less = was_a;
        Placed more = was_b;
        less.batch_pkts[d] /= down;
        more.batch_pkts[d] *= up;
        if (less.batch_pkts[d] == 0 || more.batch_pkts[d] > problem_.laws[b][d].max_batch_pkts)
          continue;
        const Candidate kept = (*plan_)[a];
        take(a, candidate_from(problem_, a, less));
        if (try_way(b, more)) return true;
        take(a, kept);
      }
    }
    return false;
  }
  [[nodiscard]] bool can_use(size_t a, size_t e) const {
    return problem_.laws[a][e].is_there && problem_.devices[e].is_up;
  }
  // Places packets that were refused so far.
  bool serve_more(size_t a, const Placed& from, size_t e) {
    bool has_gained = false;
    for (const double part : {1 / 64.0, 1 / 8.0, 1 / 2.0, 1.0}) {
      Placed to = from;
      to.share[e] += std::min(part, 1 - from.served());
      const uint32_t most = problem_.laws[a][e].max_batch_pkts;
      for (uint32_t b = std::max(1U, from.batch_pkts[e] / 2); b <= most; b *= 2) {
        to.batch_pkts[e] = b;
        has_gained |= try_way(a, to);
      }
    }
    return has_gained;
  }
  bool try_way(size_t a, const Placed& way) {
    n_tried_ += 2;  // making a candidate takes longer than scoring one
    const Candidate one = candidate_from(problem_, a, way);
    if (!is_better(a, one)) return false;
    take(a, one);
    return true;
  }

  const Problem& problem_;
  const Judge& judge_;
  const std::vector<std::vector<Candidate>>& candidates_;
  std::vector<Candidate>* plan_ = nullptr;
  std::vector<const Candidate*> chosen_;
  double best_ = kImpossible;
  const uint32_t most_tried_;
  uint32_t n_tried_ = 0;
};

// The empty candidate first, then those that serve most.
std::vector<std::vector<Candidate>> all_candidates(const Problem& problem, bool with_parts) {
  std::vector<std::vector<Candidate>> all(problem.apps.size());
  for (size_t a = 0; a < problem.apps.size(); ++a) {
    all[a] = candidates_of(problem, a, 1);
    for (const double part : {1 / 2.0, 1 / 4.0, 1 / 8.0}) {
      if (!with_parts) break;
      const std::vector<Candidate> some = candidates_of(problem, a, part);
      all[a].insert(all[a].end(), some.begin() + 1, some.end());
    }
  }
  return all;
}

double search(const Problem& problem, const Plan& start, bool with_parts, uint32_t most_tried,
              Plan& plan) {
  const Judge judge(problem);
  const auto candidates = all_candidates(problem, with_parts);
  Search search(problem, judge, candidates, most_tried);
  Rng rng(1);
  std::vector<Candidate> best_plan;
  double best = kImpossible;
  const auto keep = [&](double score, std::vector<Candidate>& from) {
    if (score >= best) return;
    best = score;
    best_plan = std::move(from);
  };
  if (start.size() == problem.apps.size()) {
    std::vector<Candidate> from;
    for (size_t a = 0; a < start.size(); ++a) from.push_back(candidate_from(problem, a, start[a]));
    const double score = search.improve(from);
    keep(score, from);
  }
  std::vector<Candidate> none;
  for (const auto& of_app : candidates) none.push_back(of_app.front());
  const double score = search.improve(none);
  keep(score, none);
  while (search.has_time()) {
    std::vector<Candidate> from = best_plan;
    const double shaken = search.shake(from, best, rng);
    keep(shaken, from);
  }
  plan.clear();
  for (const Candidate& one : best_plan) plan.push_back(one.placed);
  return best;
}

}  // namespace

Plan solve(const Problem& problem, const Plan& start, uint32_t effort) {
  const auto size = static_cast<uint32_t>(problem.apps.size() * problem.devices.size());
  // Slow-down factors double the work per try.
  const uint32_t each = problem.slowdown.empty() ? 1 : 2;
  const uint32_t most_tried = effort / std::max(1U, size * each);
  Plan plan;
  const double best = search(problem, start, false, most_tried, plan);
  // When everything is served, the score is the sum of the policies' costs, at most 1 each.
  if (best <= static_cast<double>(problem.apps.size())) return plan;
  Plan in_parts;
  return search(problem, plan, true, most_tried, in_parts) < best ? in_parts : plan;
}

}  // namespace batchplane::placement
