// SPDX-License-Identifier: BSD-3-Clause
// plant.h - applications and devices in virtual time: measures a plan when batches compete for
// devices.
//
// Events are batches. A batch is full once its packets have arrived (at random), or is sent at its
// age limit. It waits until the device has done earlier batches, and takes the true law's time,
// stretched by whatever runs beside it. No code is shared with evaluate().
#pragma once

#include <string>
#include <vector>

#include "base/rng.h"
#include "placement/placer.h"

namespace batchplane::placement {

// A change at a given time. Negative or empty fields stay as they were.
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
  double most_backlog_ns = 20e6;  // work queued in front of a device: more is lost
  bool is_random = true;          // arrivals; else evenly spaced
  uint64_t seed = 1;
};

// One application in one period.
struct AppRow {
  double offered_pkts = 0;
  double served_pkts = 0;   // came out of a device
  double refused_pkts = 0;  // at the entry, by the plan
  double lost_pkts = 0;     // no room in front of the device, or the device failed
  double late_pkts = 0;     // served after the budget
  double delay_sum_ns = 0;  // over packets served
  double delay_max_ns = 0;
};
struct PeriodRow {
  uint64_t end_ns = 0;
  std::vector<AppRow> apps;
  double joules = 0;
  std::vector<double> busy;  // by device
  Plan plan;                 // in force during the period
  std::string reason;
};

// Chooses plans. Asked at the start and at the end of each period, and at once when a device fails
// or returns or a policy is edited (`seen` then covers the period so far).
class Chooser {
 public:
  virtual ~Chooser() = default;
  virtual const Decision& choose(uint64_t now_ns, const Problem& now,
                                 const std::vector<Seen>& seen) = 0;
};

[[nodiscard]] std::vector<PeriodRow> run_plant(const PlantSpec& spec, Chooser& chooser);

}  // namespace batchplane::placement
