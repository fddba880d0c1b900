// SPDX-License-Identifier: BSD-3-Clause
// program_view.h - turns one period's counts into a Program: aggregated costs, shares, arriving
// batches, run times. Values that only fluctuate are smoothed over periods.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "slo/estimate/arrivals.h"
#include "slo/estimate/smoothed.h"
#include "slo/estimate/stages.h"
#include "slo/model/budget.h"
#include "slo/model/controller.h"
#include "slo/model/model.h"

namespace batchplane::slo {

inline constexpr double kSigmasAt99 = 2.326;  // of a normal distribution, one-sided

class ProgramView {
 public:
  ProgramView(const Model& model, const Settings& settings);
  // Takes in a period; program() and all that follows below then refer to it.
  void update(const Snapshot& snapshot);
  // Whether there are buffers behind other buffers, and whether those behind may hold; update()
  // allows it. While they may not, their costs per batch are part of the costs of the buffer where
  // batches are first collected, for the triggers last given to predict_arrivals().
  [[nodiscard]] bool has_nested() const { return arrivals_.has_nested(); }
  void allow_nested(bool is_allowed) { arrivals_.allow_nested(is_allowed, program_); }
  // At saturation no packet takes less time than with these triggers and the batches that arrive
  // with all first buffers full, while buffers behind others hold nothing. Sets those arrivals.
  // nullopt where a cost is not linear: fuller batches may then cost more.
  [[nodiscard]] std::optional<Triggers> cheapest_outer() {
    return arrivals_.cheapest_outer(program_);
  }
  // Predicts arriving batches under `triggers_pkts`: batches collected upstream arrive larger. True
  // if any size moves by more than 10 %.
  bool predict_arrivals(const Triggers& triggers_pkts) {
    return arrivals_.predict(triggers_pkts, program_);
  }

  // Batches that a head released in the period.
  struct Releases {
    double all = 0;
    double by_age = 0;
  };
  [[nodiscard]] const Releases& releases(uint32_t head) const { return heads_[head].releases; }

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] Program& program() { return program_; }
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  // The program's modules are the heads of segments, then the stages: by its number in the program, a
  // module's number in the model, and a stage's among stages.
  [[nodiscard]] uint32_t module(uint32_t head) const {
    return is_stage(head) ? stages_.module(stage_of(head)) : segments_[head].head;
  }
  [[nodiscard]] bool is_stage(uint32_t head) const { return head >= segments_.size(); }
  [[nodiscard]] uint32_t stage_of(uint32_t head) const {
    return head - static_cast<uint32_t>(segments_.size());
  }
  [[nodiscard]] const Stages& stages() const { return stages_; }
  [[nodiscard]] uint32_t head_of(uint32_t module) const { return head_of_[module]; }
  // Triggers in force during the period, by head.
  [[nodiscard]] const Triggers& current() const { return current_; }
  // Service of a single packet by the flow's own modules, however it is batched.
  [[nodiscard]] double min_service_ns(uint32_t flow) const { return min_service_ns_[flow]; }
  // How much longer than in the period a packet scheduler behind the graph may hold the flow's
  // packets: the flow's guarantee must hold whatever others begin to send.
  [[nodiscard]] double egress_beyond_mean_ns(uint32_t flow) const {
    return std::max(0.0, egress_[flow].most_ns - egress_[flow].took_ns);
  }
  // Mean time in the scheduler; and its bound, or the mean time where there is no bound.
  [[nodiscard]] double egress_took_ns(uint32_t flow) const { return egress_[flow].took_ns; }
  [[nodiscard]] double egress_most_ns(uint32_t flow) const { return egress_[flow].most_ns; }
  // The most expensive module of a segment, and its share of the segment's cost.
  [[nodiscard]] std::pair<uint32_t, double> heaviest(uint32_t head) const;
  // Standard deviations beyond a mean run that age limits allow for at saturation.
  [[nodiscard]] double age_sigmas() const { return age_sigmas_; }
  // Whether a task's input was never empty, so more may have arrived than it took.
  [[nodiscard]] bool is_input_full(const Snapshot& snapshot, uint32_t task) const;

 private:
  struct Head {
    Smoothed share;
    Smoothed arriving;  // at the triggers in force
    Smoothed aged;      // share of its releases caused by age
    double batches = 0;
    double pkts = 0;
    Releases releases;
    uint32_t heaviest = 0;  // its most expensive module, for the mean batch
    double heaviest_ns = 0;
    Stair stair;
    double extra_ns = 0;  // of the mean batch, beyond the line
    void count(const Releases& in_period);
  };
  struct Task {
    // Counts of the period.
    double explained_ns = 0;  // work inside segments
    double n_runs = 0;
    Releases releases;
    Smoothed rate;
    Smoothed run_pkts;
    Smoothed scale;
    Smoothed bare_scale;
  };

  void lay_out_flows();
  [[nodiscard]] std::vector<Arrivals::Edge> edges() const;
  void update_stages(const Snapshot& snapshot);
  [[nodiscard]] double work_ns(uint32_t head) const;  // in the period
  void aggregate(const Snapshot& snapshot, uint32_t head);
  void set_stair(const Snapshot& snapshot, uint32_t head);
  void update_head(const Snapshot& snapshot, uint32_t head);
  [[nodiscard]] double variance_of_runs(uint32_t task) const;
  void count_task(const Snapshot& snapshot, uint32_t task);
  void update_task(const Snapshot& snapshot, uint32_t task);
  void compare_spread(const exec::TaskPeriod& period, uint32_t task);
  void update_flows(const Snapshot& snapshot);
  void update_egress(const Snapshot& snapshot, uint32_t flow);

  const Model& model_;
  std::vector<Segment> segments_;
  Stages stages_;
  std::vector<uint32_t> head_of_;            // by module: segment that it heads
  std::vector<std::vector<uint32_t>> next_;  // successors by module, each once
  std::vector<Head> heads_;
  std::vector<Task> tasks_;
  Triggers current_;
  std::vector<double> executed_pkts_;  // by head: mean batch
  std::vector<double> min_service_ns_;
  struct Egress {
    double took_ns = 0;
    double most_ns = 0;
  };
  std::vector<Egress> egress_;      // by flow
  std::vector<bool> is_scheduler_;  // by task
  // by member of the segment that aggregate() saw last, for set_stair(): shares of batches and of packets
  std::vector<std::pair<double, double>> parts_;
  double age_sigmas_ = 0;
  // deviation that still counts as chance: grows with the number of counts
  double chance_sigmas_;
  Program program_;
  Arrivals arrivals_;
};

}  // namespace batchplane::slo
