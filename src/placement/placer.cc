// SPDX-License-Identifier: BSD-3-Clause
#include "placement/placer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "placement/solve.h"

namespace batchplane::placement {
namespace {

// A time ratio beyond these limits tells of a stalled machine, not of a law.
constexpr double kLeastStretch = 0.2;
constexpr double kMostStretch = 5;

}  // namespace

Placer::Placer(Problem problem, PlacerSettings settings)
    : settings_(settings),
      profiled_(problem.laws),
      problem_(std::move(problem)),
      waiting_before_(problem_.apps.size(), 0) {
  // Slow-down factors are learned, so each slot needs one.
  const size_t n = problem_.apps.size() * problem_.devices.size();
  if (problem_.slowdown.empty()) problem_.slowdown.assign(n * n, 1);
  for (double& factor : problem_.slowdown) factor = std::clamp(factor, 1.0, kMostStretch);
  profiled_slowdown_ = problem_.slowdown;
}

void Placer::set_policy(size_t app, Policy policy) {
  if (problem_.apps[app].policy == policy) return;
  problem_.apps[app].policy = policy;
  event_ = "policy";
}
void Placer::set_watt_cap(double watts) {
  if (problem_.watt_cap == watts) return;
  problem_.watt_cap = watts;
  event_ = "policy";
}
void Placer::set_device_up(size_t device, bool is_up) {
  if (problem_.devices[device].is_up == is_up) return;
  problem_.devices[device].is_up = is_up;
  event_ = "device";
}

// Measured rate, plus growth of the backlog, plus headroom.
void Placer::take_rates(uint64_t now_ns, const std::vector<Seen>& seen) {
  const double period_s = std::max(1e-3, static_cast<double>(now_ns - last_ns_) * 1e-9);
  for (size_t a = 0; a < seen.size(); ++a) {
    const double growth = std::max(0.0, seen[a].waiting_pkts - waiting_before_[a]);
    problem_.apps[a].rate_pps = (seen[a].rate_pps + growth / period_s) * (1 + settings_.headroom);
    if (seen[a].pkt_bytes > 0) problem_.apps[a].pkt_bytes = seen[a].pkt_bytes;
    waiting_before_[a] = seen[a].waiting_pkts;
  }
  last_ns_ = now_ns;
}

// How much longer batches took than alone. On a device that works on several at once they take longer beside
// others of their own kind, too. That is no error of the law, as long as the device had time for all of them.
double Placer::own_stretch(const Seen& seen, size_t a, size_t d, double profiled_ns) const {
  const double stretch = seen.batch_ns[d] / profiled_ns;
  const double busy_ns =
      profiled_[a][d].batch_busy_ns(seen.batch_pkts[d], problem_.apps[a].pkt_bytes);
  if (busy_ns >= profiled_ns) return stretch;
  const double most = 1e9 / std::max(1e-9, busy_ns * seen.batches_ps[d]);
  return std::min(stretch, std::max(1.0, most));
}

// Scales a law that is wrong when the application runs alone; errors that appear only beside others
// change their slow-down factors.
void Placer::learn(const std::vector<Seen>& seen) {
  const Plan& plan = decision_.plan;
  for (size_t a = 0; a < plan.size(); ++a) {
    for (size_t d = 0; d < problem_.devices.size(); ++d) {
      if (seen[a].batch_ns[d] <= 0 || plan[a].share[d] <= 0) continue;
      const double profiled_ns =
          profiled_[a][d].batch_time_ns(seen[a].batch_pkts[d], problem_.apps[a].pkt_bytes);
      std::vector<size_t> factors;  // slots of the slow-down factors
      double expected = 1;
      for (size_t b = 0; b < plan.size(); ++b) {
        std::optional<size_t> worst;
        for (size_t e = 0; b != a && e < problem_.devices.size(); ++e) {
          if (plan[b].share[e] <= 0) continue;
          const size_t slot = problem_.slot(a, d, b, e);
          if (!worst || problem_.slowdown[slot] > problem_.slowdown[*worst]) worst = slot;
        }
        if (!worst) continue;
        factors.push_back(*worst);
        expected *= problem_.slowdown[*worst];
      }
      Law& law = problem_.laws[a][d];
      const double scale =
          law.batch_time_ns(seen[a].batch_pkts[d], problem_.apps[a].pkt_bytes) / profiled_ns;
      // Several applications together may slow it more than the limit for one.
      const double most = std::max(kMostStretch, scale * expected);
      const double stretch =
          std::clamp(own_stretch(seen[a], a, d, profiled_ns), kLeastStretch, most);
      if (factors.empty()) {
        const double next = scale * std::pow(stretch / scale, settings_.learning);
        law.batch = profiled_[a][d].batch.times(next);
        continue;
      }
      const double off = stretch / (scale * expected);
      const double each = std::pow(off, settings_.learning / static_cast<double>(factors.size()));
      for (const size_t slot : factors) {
        problem_.slowdown[slot] = std::clamp(problem_.slowdown[slot] * each, 1.0, kMostStretch);
      }
    }
  }
}

void Placer::learn_from(const Placer& other) {
  const auto index_in = [](const auto& all, const std::string& name) {
    const auto it = std::ranges::find(all, name, [](const auto& one) { return one.name; });
    return static_cast<size_t>(it - all.begin());
  };
  const Problem& old = other.problem_;
  std::vector<size_t> app_of;
  std::vector<size_t> device_of;
  for (const App& app : problem_.apps) app_of.push_back(index_in(old.apps, app.name));
  for (const Device& device : problem_.devices) {
    device_of.push_back(index_in(old.devices, device.name));
  }
  const auto is_known = [&](size_t a, size_t d) {
    return app_of[a] < old.apps.size() && device_of[d] < old.devices.size();
  };
  for (size_t a = 0; a < problem_.apps.size(); ++a) {
    for (size_t d = 0; d < problem_.devices.size(); ++d) {
      if (!is_known(a, d) || other.profiled_[app_of[a]][device_of[d]] != profiled_[a][d]) continue;
      problem_.laws[a][d] = old.laws[app_of[a]][device_of[d]];
      for (size_t b = 0; b < problem_.apps.size(); ++b) {
        for (size_t e = 0; e < problem_.devices.size(); ++e) {
          if (!is_known(b, e)) continue;
          const size_t slot = problem_.slot(a, d, b, e);
          const size_t of = old.slot(app_of[a], device_of[d], app_of[b], device_of[e]);
          if (other.profiled_slowdown_[of] != profiled_slowdown_[slot]) continue;
          problem_.slowdown[slot] = old.slowdown[of];
        }
      }
    }
  }
}

bool Placer::is_overloaded(const std::vector<Seen>& seen) const {
  for (size_t a = 0; a < seen.size(); ++a) {
    const App& app = problem_.apps[a];
    const double wait_ns = seen[a].rate_pps > 0 ? seen[a].waiting_pkts * 1e9 / seen[a].rate_pps : 0;
    if (wait_ns > settings_.most_wait * app.budget_ns + 1e9 / std::max(1.0, seen[a].rate_pps))
      return true;
  }
  return false;
}

void Placer::adopt(uint64_t now_ns, Plan plan, const char* reason) {
  decision_.is_changed = plan != decision_.plan;
  decision_.plan = std::move(plan);
  decision_.outcome = evaluate(problem_, decision_.plan);
  decision_.reason = reason;
  if (decision_.is_changed) changed_ns_ = now_ns;
  decision_.age_limit_ns = age_limits_ns(problem_, decision_.plan, decision_.outcome);
}

const Decision& Placer::step(uint64_t now_ns, const std::vector<Seen>& seen) {
  const bool is_first = decision_.plan.empty();
  if (!is_first) learn(seen);
  take_rates(now_ns, seen);
  Plan best = solve(problem_, decision_.plan);
  const char* const event = std::exchange(event_, nullptr);
  if (is_first) {
    adopt(now_ns, std::move(best), "start");
    return decision_;
  }
  const Outcome now = evaluate(problem_, decision_.plan);
  const Outcome then = evaluate(problem_, best);
  const bool must =
      !now.is_feasible || then.served_value > now.served_value + 1e-3 || is_overloaded(seen);
  const double gain = now.cost > 0 ? 1 - then.cost / now.cost : 0;
  const bool has_held = now_ns - changed_ns_ >= settings_.hold_ns;
  if (must || event != nullptr) {
    adopt(now_ns, std::move(best), event != nullptr ? event : "overload");
  } else if (has_held && gain >= settings_.least_gain) {
    adopt(now_ns, std::move(best), "better");
  } else {
    adopt(now_ns, decision_.plan, "hold");
  }
  return decision_;
}

}  // namespace batchplane::placement
