// SPDX-License-Identifier: BSD-3-Clause
#include "placement/choosers.h"

#include <algorithm>
#include <stdexcept>

#include "placement/solve.h"

namespace batchplane::placement {
namespace {

// A hundred times the placer's effort.
constexpr uint32_t kOracleEffort = 100 * kEffort;

// Each application at its highest rate over the whole run.
Problem at_peak(const PlantSpec& spec, Problem problem) {
  for (const Change& change : spec.changes) {
    if (change.app < 0) continue;
    double& rate = problem.apps[static_cast<size_t>(change.app)].rate_pps;
    rate = std::max(rate, change.rate_pps);
  }
  return problem;
}

// The largest batch that keeps the budget when a batch of every application waits before it.
uint32_t batch_for(const Problem& problem, size_t a, size_t d, double share) {
  const App& app = problem.apps[a];
  const Law& law = problem.laws[a][d];
  const auto n = static_cast<double>(problem.apps.size());
  uint32_t best = 1;
  for (uint32_t b = 1; b <= law.max_batch_pkts; b *= 2) {
    const double rate_pps = std::max(1.0, app.rate_pps * share);
    const double fill_ns = (b - 1) * 1e9 / rate_pps;
    if (fill_ns + n * law.batch_time_ns(b, app.pkt_bytes) <= app.budget_ns) best = b;
  }
  return best;
}

class Fixed : public Chooser {
 public:
  explicit Fixed(Plan plan) { decision_.plan = std::move(plan); }
  const Decision& choose(uint64_t /*now_ns*/, const Problem& now,
                         const std::vector<Seen>& /*seen*/) override {
    decision_.outcome = evaluate(now, decision_.plan);
    decision_.age_limit_ns = age_limits_ns(now, decision_.plan, decision_.outcome);
    decision_.reason = "fixed";
    return decision_;
  }

 protected:
  Decision decision_;
};

Plan on_all(const Problem& problem) {
  Plan plan(problem.apps.size());
  for (size_t a = 0; a < plan.size(); ++a) {
    double all = 0;
    std::array<double, kMaxDevices> speed{};
    for (size_t d = 0; d < problem.devices.size(); ++d) {
      if (!problem.laws[a][d].is_there) continue;
      const uint32_t b = std::min(1024U, problem.laws[a][d].max_batch_pkts);
      speed[d] = b / problem.laws[a][d].batch_time_ns(b, problem.apps[a].pkt_bytes);
      all += speed[d];
    }
    for (size_t d = 0; d < problem.devices.size(); ++d) {
      if (speed[d] <= 0) continue;
      plan[a].share[d] = speed[d] / all;
      plan[a].batch_pkts[d] = batch_for(problem, a, d, plan[a].share[d]);
    }
  }
  return plan;
}

Plan on_one(const Problem& problem, const std::string& name) {
  const auto device = std::ranges::find(problem.devices, name, &Device::name);
  if (device == problem.devices.end()) throw std::invalid_argument("no device " + name);
  const auto d = static_cast<size_t>(device - problem.devices.begin());
  Plan plan(problem.apps.size());
  for (size_t a = 0; a < plan.size(); ++a) {
    if (!problem.laws[a][d].is_there) continue;
    plan[a].share[d] = 1;
    plan[a].batch_pkts[d] = batch_for(problem, a, d, 1);
  }
  return plan;
}

class OfPlacer final : public Chooser {
 public:
  OfPlacer(const Problem& profiled, const PlacerSettings& settings) : placer_(profiled, settings) {}
  const Decision& choose(uint64_t now_ns, const Problem& now,
                         const std::vector<Seen>& seen) override {
    for (size_t a = 0; a < now.apps.size(); ++a) placer_.set_policy(a, now.apps[a].policy);
    for (size_t d = 0; d < now.devices.size(); ++d) {
      placer_.set_device_up(d, now.devices[d].is_up);
    }
    placer_.set_watt_cap(now.watt_cap);
    return placer_.step(now_ns, seen);
  }

 private:
  Placer placer_;
};

class Oracle final : public Fixed {
 public:
  Oracle() : Fixed({}) {}
  const Decision& choose(uint64_t now_ns, const Problem& now,
                         const std::vector<Seen>& seen) override {
    const bool is_same = !decision_.plan.empty() && now.apps.size() == before_.size() &&
                         std::ranges::equal(now.apps, before_, [](const App& x, const App& y) {
                           return x.rate_pps == y.rate_pps && x.policy == y.policy;
                         });
    if (!is_same || has_event(now)) decision_.plan = solve(now, {}, kOracleEffort);
    before_ = now.apps;
    devices_ = now.devices;
    cap_ = now.watt_cap;
    return Fixed::choose(now_ns, now, seen);
  }

 private:
  [[nodiscard]] bool has_event(const Problem& now) const {
    return now.watt_cap != cap_ ||
           !std::ranges::equal(now.devices, devices_,
                               [](const Device& x, const Device& y) { return x.is_up == y.is_up; });
  }
  std::vector<App> before_;
  std::vector<Device> devices_;
  double cap_ = 0;
};

class Nba final : public Fixed {
 public:
  explicit Nba(const Problem& profiled) : Fixed({}), problem_(profiled) {
    const size_t n = profiled.apps.size();
    first_share_.assign(n, 0.5);
    step_.assign(n, kStep);
    before_.assign(n, 0);
  }
  const Decision& choose(uint64_t now_ns, const Problem& now,
                         const std::vector<Seen>& seen) override {
    if (decision_.plan.empty() || now_ns - moved_ns_ >= kEveryNs) {
      for (size_t a = 0; a < seen.size() && !decision_.plan.empty(); ++a) move(a, seen[a]);
      moved_ns_ = now_ns;
    }
    decision_.plan.assign(now.apps.size(), Placed{});
    for (size_t a = 0; a < now.apps.size(); ++a) {
      problem_.apps[a].rate_pps = seen[a].rate_pps;
      for (size_t d = 0; d < std::min<size_t>(2, now.devices.size()); ++d) {
        const double share = d == 0 ? first_share_[a] : 1 - first_share_[a];
        if (share < kStep / 2 || !problem_.laws[a][d].is_there) continue;
        decision_.plan[a].share[d] = share;
        decision_.plan[a].batch_pkts[d] = batch_for(problem_, a, d, share);
      }
    }
    return Fixed::choose(now_ns, now, seen);
  }

 private:
  static constexpr double kStep = 0.05;
  static constexpr uint64_t kEveryNs = 200'000'000;

  // Moves by the backlog's growth: this chooser sees only throughput.
  void move(size_t a, const Seen& seen) {
    if (seen.waiting_pkts > before_[a]) step_[a] = -step_[a];
    before_[a] = seen.waiting_pkts;
    first_share_[a] = std::clamp(first_share_[a] + step_[a], 0.0, 1.0);
  }

  Problem problem_;
  std::vector<double> first_share_;
  std::vector<double> step_;
  std::vector<double> before_;
  uint64_t moved_ns_ = 0;
};

}  // namespace

std::unique_ptr<Chooser> make_chooser(const std::string& name, const PlantSpec& spec,
                                      const Problem& profiled, const PlacerSettings& settings) {
  if (name == "placer") return std::make_unique<OfPlacer>(profiled, settings);
  if (name == "oracle") return std::make_unique<Oracle>();
  if (name == "nba") return std::make_unique<Nba>(profiled);
  const Problem peak = at_peak(spec, profiled);
  if (name == "all") return std::make_unique<Fixed>(on_all(peak));
  if (name == "static") return std::make_unique<Fixed>(solve(peak, {}, kOracleEffort));
  if (name.starts_with("alone:")) return std::make_unique<Fixed>(on_one(peak, name.substr(6)));
  throw std::invalid_argument("nobody is called " + name);
}

}  // namespace batchplane::placement
