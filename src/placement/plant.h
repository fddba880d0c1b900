// SPDX-License-Identifier: BSD-3-Clause
// plant.h - applications and devices in virtual time: what a plan comes to when batches meet at devices.
//
// Events are batches. One is full after as long as its packets take to come at random (or is sent at its age
// limit), waits until the device has done those before it, and takes the true law's time, stretched by
// whatever runs beside it. Nothing here is taken from evaluate().
#pragma once

#include <string>
#include <vector>

#include "base/rng.h"
#include "placement/placer.h"

namespace batchplane::placement {

// From a time on. What is negative or empty stays as it was.
struct Change {
  uint64_t at_ns = 0;
  int app = -1;
  double rate_pps = -1;
  std::string policy;
  int device = -1;
  bool is_up = true;
  double watt_cap = -1;
};

struct PlantSpec {
  Problem truth;                // rates: at the start
  std::vector<Change> changes;  // by time
  uint64_t duration_ns = 10'000'000'000;
  uint64_t period_ns = 100'000'000;
  double most_backlog_ns = 20e6;  // of work in front of a device: more is lost
  bool is_random = true;          // arrivals; else evenly spaced
  uint64_t seed = 1;
};

// Of one application in one period.
struct AppRow {
  double offered_pkts = 0;
  double served_pkts = 0;   // came out of a device
  double refused_pkts = 0;  // at the entry, by the plan
  double lost_pkts = 0;     // no room in front of the device, or the device went
  double late_pkts = 0;     // served, after the budget
  double delay_sum_ns = 0;  // over packets served
  double delay_max_ns = 0;
};
struct PeriodRow {
  uint64_t end_ns = 0;
  std::vector<AppRow> apps;
  double joules = 0;
  std::vector<double> busy;  // by device
  Plan plan;                 // in force during it
  std::string reason;
};

// Says what to do from now on; asked at the start, at the end of each period, and at once when a device goes or
// comes or a policy is edited (then `seen` is of the period so far).
class Chooser {
 public:
  virtual ~Chooser() = default;
  virtual const Decision& choose(uint64_t now_ns, const Problem& now,
                                 const std::vector<Seen>& seen) = 0;
};

[[nodiscard]] std::vector<PeriodRow> run_plant(const PlantSpec& spec, Chooser& chooser);

}  // namespace batchplane::placement
