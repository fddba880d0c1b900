// SPDX-License-Identifier: BSD-3-Clause
// evaluate.cc - evaluates a plan by the batch laws: utilisation, delay, watts, and the policies'
// cost.
#include <algorithm>
#include <limits>

#include "placement/problem.h"

namespace batchplane::placement {
namespace {

struct Loads {
  // By application and device: the device's time for its batch, and how much longer than that it lasts.
  std::vector<std::array<double, kMaxDevices>> busy_ns;
  std::vector<std::array<double, kMaxDevices>> longer_ns;
  std::vector<double> utilisation;  // by device
  std::vector<double> round_ns;     // by device: one batch of each of its users, and jitter
};

// Slow-down of a on d by all applications that run beside it.
double slowdown(const Problem& problem, const Plan& plan, size_t a, size_t d) {
  if (problem.slowdown.empty()) return 1;
  double factor = 1;
  for (size_t b = 0; b < plan.size(); ++b) {
    if (b == a) continue;
    double worst = 1;
    for (size_t e = 0; e < problem.devices.size(); ++e) {
      if (plan[b].share[e] > 0) worst = std::max(worst, problem.slowdown_of(a, d, b, e));
    }
    factor *= worst;
  }
  return factor;
}

Loads loads_of(const Problem& problem, const Plan& plan) {
  Loads loads;
  loads.busy_ns.resize(plan.size());
  loads.longer_ns.resize(plan.size());
  loads.utilisation.assign(problem.devices.size(), 0);
  loads.round_ns.assign(problem.devices.size(), 0);
  std::vector<Jitter> jitter(problem.devices.size());
  for (size_t a = 0; a < plan.size(); ++a) {
    const App& app = problem.apps[a];
    for (size_t d = 0; d < problem.devices.size(); ++d) {
      if (plan[a].share[d] <= 0) continue;
      const double pkts = plan[a].batch_pkts[d];
      const double factor = slowdown(problem, plan, a, d);
      const double ns = problem.laws[a][d].batch_busy_ns(pkts, app.pkt_bytes) * factor;
      loads.busy_ns[a][d] = ns;
      loads.longer_ns[a][d] = problem.laws[a][d].batch_time_ns(pkts, app.pkt_bytes) * factor - ns;
      loads.utilisation[d] += ns * 1e-9 * app.rate_pps * plan[a].share[d] / pkts;
      loads.round_ns[d] += ns;
      jitter[d].add(app.rate_pps * plan[a].share[d] / pkts, ns, pkts);
    }
  }
  for (size_t d = 0; d < jitter.size(); ++d) {
    loads.round_ns[d] += jitter[d].wait_ns(loads.utilisation[d]);
  }
  return loads;
}

// Each device's watts, divided among its users by their device time.
struct Watts {
  double all = 0;
  std::vector<double> of_app;
};
Watts watts_of(const Problem& problem, const Plan& plan, const Loads& loads) {
  Watts watts;
  watts.of_app.assign(plan.size(), 0);
  for (size_t d = 0; d < problem.devices.size(); ++d) {
    const Device& device = problem.devices[d];
    const double u = loads.utilisation[d];
    const bool is_used = loads.round_ns[d] > 0;
    const double w = is_used ? device.idle_w + (device.active_w - device.idle_w) * std::min(1.0, u)
                             : device.off_w;
    watts.all += w;
    for (size_t a = 0; is_used && a < plan.size(); ++a) {
      if (plan[a].share[d] <= 0) continue;
      const double own = loads.busy_ns[a][d] * 1e-9 * problem.apps[a].rate_pps * plan[a].share[d] /
                         plan[a].batch_pkts[d];
      watts.of_app[a] += (w - device.off_w) * (u > 0 ? own / u : 0);
    }
  }
  return watts;
}

// 0 to 1 in a feasible plan, whatever the policy, so that costs of applications with different
// policies add up.
double cost_of(const Problem& problem, const Placed& placed, size_t a, const Loads& loads,
               double delay_ns, double watts) {
  switch (problem.apps[a].policy) {
    case Policy::kLatency:
      return delay_ns / problem.apps[a].budget_ns;
    case Policy::kPower:
      return watts / most_watts(problem);
    case Policy::kThroughput: {
      double busiest = 0;
      for (size_t d = 0; d < problem.devices.size(); ++d) {
        if (placed.share[d] > 0) busiest = std::max(busiest, loads.utilisation[d]);
      }
      return busiest;
    }
  }
  return 0;
}

}  // namespace

double most_watts(const Problem& problem) {
  double all = 0;
  for (const Device& device : problem.devices) all += std::max(device.active_w, device.off_w);
  return std::max(all, 1e-9);
}

Outcome evaluate(const Problem& problem, const Plan& plan) {
  const Loads loads = loads_of(problem, plan);
  const Watts watts = watts_of(problem, plan, loads);
  Outcome outcome;
  outcome.is_feasible = problem.watt_cap <= 0 || watts.all <= problem.watt_cap;
  outcome.watts = watts.all;
  outcome.utilisation = loads.utilisation;
  outcome.after_fill_ns.assign(plan.size(), 0);
  outcome.delay_ns.assign(plan.size(), 0);
  double offered = 0;
  double served = 0;
  for (size_t d = 0; d < problem.devices.size(); ++d) {
    const bool is_used = loads.round_ns[d] > 0;
    if (is_used && !problem.devices[d].is_up) outcome.is_feasible = false;
    if (loads.utilisation[d] > problem.most_utilisation + 1e-9) outcome.is_feasible = false;
  }
  for (size_t a = 0; a < plan.size(); ++a) {
    const App& app = problem.apps[a];
    offered += app.value * app.rate_pps;
    served += app.value * app.rate_pps * plan[a].served();
    for (size_t d = 0; d < problem.devices.size(); ++d) {
      if (plan[a].share[d] <= 0) continue;
      const double rate_pps = app.rate_pps * plan[a].share[d];
      const double fill_ns =
          rate_pps > 0 ? (plan[a].batch_pkts[d] - 1) * 1e9 / rate_pps : app.budget_ns;
      const double after_fill_ns = loads.round_ns[d] + loads.longer_ns[a][d];
      outcome.delay_ns[a] = std::max(outcome.delay_ns[a], fill_ns + after_fill_ns);
      outcome.after_fill_ns[a] = std::max(outcome.after_fill_ns[a], after_fill_ns);
    }
    if (outcome.delay_ns[a] > app.budget_ns * (1 + 1e-12)) outcome.is_feasible = false;
    outcome.cost += cost_of(problem, plan[a], a, loads, outcome.delay_ns[a], watts.of_app[a]);
  }
  outcome.served_value = offered > 0 ? served / offered : 1;
  return outcome;
}

std::vector<uint64_t> age_limits_ns(const Problem& problem, const Plan& plan,
                                    const Outcome& outcome) {
  std::vector<uint64_t> limits(plan.size(), 0);
  for (size_t a = 0; a < plan.size(); ++a) {
    const double left_ns = problem.apps[a].budget_ns - outcome.after_fill_ns[a];
    limits[a] = static_cast<uint64_t>(std::max(0.0, left_ns));
  }
  return limits;
}

double score(const Outcome& outcome) {
  if (!outcome.is_feasible) return std::numeric_limits<double>::infinity();
  return kServedWeight * (1 - outcome.served_value) + outcome.cost;
}

}  // namespace batchplane::placement
