// SPDX-License-Identifier: BSD-3-Clause
// placer.h - placement at run time: turns a period's measurements into a plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "placement/problem.h"

namespace batchplane::placement {

struct PlacerSettings {
  double headroom = 0.1;           // of the rate: increase to allow for before the next step
  double least_gain = 0.03;        // of the cost: no change for less
  uint64_t hold_ns = 500'000'000;  // minimum time between changes, unless one is necessary
  double learning = 0.3;           // weight of a period's batches when laws are corrected
  double most_wait = 0.5;          // share of an application's budget: a longer wait is an overload
};

// Measurements of one application in a period.
struct Seen {
  double rate_pps = 0;  // offered
  double pkt_bytes = 0;
  double waiting_pkts = 0;  // in front of its devices, now
  // By device, means over the batches it processed: packets, and time from start to end. 0: none.
  std::array<double, kMaxDevices> batch_pkts{};
  std::array<double, kMaxDevices> batch_ns{};
  std::array<double, kMaxDevices> batches_ps{};
};

struct Decision {
  Plan plan;
  std::vector<uint64_t>
      age_limit_ns;  // by application: a batch is sent when its oldest packet is as old
  Outcome outcome;   // of the plan, at the rates it was made for
  bool is_changed = false;
  std::string reason;  // one of a few words: start, overload, device, policy, better, hold
};

// One owner. step() depends only on its arguments and earlier calls: daemon, simulation and tests
// run the same code.
class Placer {
 public:
  // Profiled laws and slow-downs; applications as at the start.
  Placer(Problem problem, PlacerSettings settings = {});

  // To be called at the end of each period, and at once on events.
  const Decision& step(uint64_t now_ns, const std::vector<Seen>& seen);

  // Copies what another placer learned of applications and devices with the same names and profile.
  void learn_from(const Placer& other);

  void set_policy(size_t app, Policy policy);
  void set_budget(size_t app, double budget_ns) { problem_.apps[app].budget_ns = budget_ns; }
  void set_value(size_t app, double value) { problem_.apps[app].value = value; }
  void set_watt_cap(double watts);
  void set_device_up(size_t device, bool is_up);

  [[nodiscard]] const Decision& decision() const { return decision_; }
  // With learned corrections.
  [[nodiscard]] const Problem& problem() const { return problem_; }

 private:
  void take_rates(uint64_t now_ns, const std::vector<Seen>& seen);
  [[nodiscard]] double own_stretch(const Seen& seen, size_t a, size_t d, double profiled_ns) const;
  void learn(const std::vector<Seen>& seen);
  [[nodiscard]] bool is_overloaded(const std::vector<Seen>& seen) const;
  void adopt(uint64_t now_ns, Plan plan, const char* reason);

  const PlacerSettings settings_;
  const std::vector<std::vector<Law>> profiled_;
  Problem problem_;
  std::vector<double> profiled_slowdown_;
  std::vector<double> waiting_before_;
  uint64_t last_ns_ = 0;
  uint64_t changed_ns_ = 0;
  const char* event_ = nullptr;  // "policy" or "device", since the last step
  Decision decision_;
};

}  // namespace batchplane::placement
