// SPDX-License-Identifier: BSD-3-Clause
// load.h - the load offered to a pipeline in a period, and how much of it the pipeline takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "slo/estimate/program_view.h"
#include "slo/model/controller.h"

namespace batchplane::slo {

class Load {
 public:
  explicit Load(const Model& model);
  // Returns false if nothing arrived.
  bool update(const Snapshot& snapshot, const ProgramView& view);

  // More arrives than is taken, or as much as there is room for.
  [[nodiscard]] bool is_saturated() const { return is_saturated_; }
  // The input stopped for part of the period and filled the ring in the rest: too little to judge
  // by.
  [[nodiscard]] bool is_lull() const { return is_saturated_ && least_idle_ > kLullIdle; }
  // Packets per ns that entered; and that were offered, 0 if unknown.
  [[nodiscard]] double rate_pkts_per_ns() const { return rate_pkts_per_ns_; }
  [[nodiscard]] double offered_pkts_per_ns() const { return offered_pkts_per_ns_; }
  // Extra rate needed to work off what waits outside within a few periods.
  [[nodiscard]] double drain_pkts_per_ns() const { return drain_pkts_per_ns_; }
  // Capacity of the largest ring in front of the pipeline.
  [[nodiscard]] uint64_t ring_pkts() const { return ring_pkts_; }
  // Packets in flight in closed loops; 0 if there is none.
  [[nodiscard]] uint32_t window_pkts() const { return window_pkts_; }
  // By task: packets it polls per packet that enters the pipeline.
  [[nodiscard]] const std::vector<double>& visits() const { return visits_; }
  // By task: whether its worker was never idle or, at saturation, as busy as any; and packets that a poll
  // left in the ring.
  [[nodiscard]] bool sets_pace(uint32_t task) const;
  [[nodiscard]] double left_pkts(uint32_t task) const { return left_pkts_[task]; }
  // By task: packets that a poll may take.
  [[nodiscard]] uint32_t poll_limit_pkts(uint32_t task) const { return poll_limits_pkts_[task]; }
  // By task: time that a packet would take less in full runs than in this period's runs.
  [[nodiscard]] const std::vector<double>& spared_ns() const { return spared_ns_; }
  // By task: share of its own time, without gaps, that its worker worked in the last few periods.
  [[nodiscard]] double work_share(uint32_t task) const {
    return work_[task].work_ns / std::max(1.0, work_[task].own_ns);
  }
  // By task: whether gaps took a tenth of its worker's period or more. A backlog may then be due to the gaps.
  [[nodiscard]] bool has_long_gaps(uint32_t task) const { return has_long_gaps_[task]; }
  // Idle share of the busiest worker's time.
  [[nodiscard]] double least_idle() const { return least_idle_; }

 private:
  static constexpr double kLullIdle =
      0.5;  // of the busiest worker's time: the input stopped meanwhile
  static constexpr uint32_t kFullPeriods = 8;  // in a row, of an input that had room before

  void follow_work(const exec::TaskPeriod& task, uint32_t t);
  [[nodiscard]] double outside_ns(const Snapshot& snapshot, uint32_t task) const;
  void compare_with_full_runs(const Snapshot& snapshot, const ProgramView& view);
  bool count_inputs(const Snapshot& snapshot, const ProgramView& view, double& offered_pkts);

  const Model& model_;
  std::vector<bool> is_fed_;                    // by task: gets packets from outside the pipeline
  std::vector<std::vector<uint32_t>> outside_;  // by task: inputs and modules outside all segments
  std::vector<double> idle_;                    // by task, share of its worker's time
  // Sums over periods, older ones with less weight.
  struct Work {
    double work_ns = 0;
    double own_ns = 0;
  };
  std::vector<Work> work_;  // by task, of its worker
  std::vector<bool> has_long_gaps_;
  std::vector<double> visits_;
  std::vector<double> left_pkts_;
  std::vector<double> spared_ns_;
  std::vector<uint32_t> poll_limits_pkts_;  // by task
  std::vector<Smoothed> full_ns_;  // by task: time per packet outside segments in full runs
  Smoothed offered_;
  double rate_pkts_per_ns_ = 0;
  double offered_pkts_per_ns_ = 0;
  double waiting_pkts_ = 0;  // outside, at the end of the period
  double drain_pkts_per_ns_ = 0;
  uint64_t ring_pkts_ = 0;
  uint32_t window_pkts_ = 0;
  // consecutive full periods with nothing known to wait outside; at the start, more may come, too
  uint32_t full_periods_ = kFullPeriods + 1;
  bool is_saturated_ = false;
  double least_idle_ = 1;
};

}  // namespace batchplane::slo
