// SPDX-License-Identifier: BSD-3-Clause
// load.h - what comes to a pipeline in a period and what is taken of it.
#pragma once

#include <cstdint>
#include <vector>

#include "slo/estimate/program_view.h"
#include "slo/model/controller.h"

namespace batchplane::slo {

class Load {
 public:
  Load(const Model& model, const Settings& settings);
  // False: nothing came.
  bool update(const Snapshot& snapshot, const ProgramView& view);

  // More comes than is taken, or as much as there is room for.
  [[nodiscard]] bool is_saturated() const { return is_saturated_; }
  // Input came and went within the period, and filled the ring while it came: too little of it to tell.
  [[nodiscard]] bool is_lull() const { return is_saturated_ && least_idle_ > kLullIdle; }
  // Packets per ns that entered, and that came; 0: nobody knows how many would.
  [[nodiscard]] double rate_pkts_per_ns() const { return rate_pkts_per_ns_; }
  [[nodiscard]] double offered_pkts_per_ns() const { return offered_pkts_per_ns_; }
  // Beside what comes, to work off what waits outside within a few periods.
  [[nodiscard]] double drain_pkts_per_ns() const { return drain_pkts_per_ns_; }
  // Packets inside at any time, of closed loops; 0: there is none.
  [[nodiscard]] uint32_t window_pkts() const { return window_pkts_; }
  // Packets that a task polls for each that enters the pipeline.
  [[nodiscard]] const std::vector<double>& visits() const { return visits_; }
  // By task: the worker was never idle; packets that were left in the ring by a poll.
  [[nodiscard]] bool is_always_busy(uint32_t task) const { return is_busy_[task]; }
  [[nodiscard]] double left_pkts(uint32_t task) const { return left_pkts_[task]; }
  // By task: what a packet takes less in full runs than in this period's.
  [[nodiscard]] const std::vector<double>& spared_ns() const { return spared_ns_; }
  // Idle share of the busiest worker's time.
  [[nodiscard]] double least_idle() const { return least_idle_; }

 private:
  static constexpr double kLullIdle = 0.5;

  void compare_with_full_runs(const Snapshot& snapshot, const ProgramView& view);
  bool count_inputs(const Snapshot& snapshot, const ProgramView& view, double& offered_pkts);

  const Model& model_;
  const Settings& settings_;
  std::vector<bool> is_fed_;  // by task: from outside the pipeline
  std::vector<bool> is_busy_;
  std::vector<double> visits_;
  std::vector<double> left_pkts_;
  std::vector<double> spared_ns_;
  std::vector<Smoothed>
      full_ns_;  // by task: a packet's part of what full runs take beside segments
  Smoothed offered_;
  double rate_pkts_per_ns_ = 0;
  double offered_pkts_per_ns_ = 0;
  double waiting_pkts_ = 0;  // outside, at the end of the period
  double drain_pkts_per_ns_ = 0;
  uint32_t window_pkts_ = 0;
  uint32_t full_periods_ = 0;  // in a row, nothing known to wait outside
  bool was_known_ = false;     // how much comes
  bool is_saturated_ = false;
  double least_idle_ = 1;
};

}  // namespace batchplane::slo
