// SPDX-License-Identifier: BSD-3-Clause
// program_view.h - turns one period's counts into a Program: aggregated costs, shares, arriving
// batches, run times. Values that only fluctuate are smoothed over periods.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "slo/estimate/smoothed.h"
#include "slo/estimate/stages.h"
#include "slo/model/budget.h"
#include "slo/model/controller.h"
#include "slo/model/model.h"

namespace batchplane::slo {

inline constexpr double kSigmasAt99 = 2.326;  // of a normal distribution, one-sided

class ProgramView {
 public:
  static constexpr uint32_t kNoHead = kNoSegment;

  ProgramView(const Model& model, const Settings& settings);
  // Takes in a period; program() and all that follows below then refer to it.
  void update(const Snapshot& snapshot);
  // Whether there are buffers behind other buffers, and whether those behind may hold; update()
  // allows it. While they may not, their costs per batch are part of the costs of the buffer where
  // batches are first collected, for the triggers last given to predict_arrivals().
  [[nodiscard]] bool has_nested() const;
  void allow_nested(bool is_allowed);
  // At saturation no packet can take less time than with these triggers, and the batches that arrive with all
  // first buffers full, as long as buffers behind others hold nothing. Sets those arrivals. Nothing where
  // costs are no lines: fuller batches may then cost more.
  [[nodiscard]] std::optional<std::vector<double>> cheapest_outer();
  // Predicts arriving batches under `triggers_pkts`: batches collected upstream arrive larger. True
  // if any size moves by more than 10 %.
  bool predict_arrivals(const std::vector<uint32_t>& triggers_pkts);

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
  [[nodiscard]] const std::vector<double>& current() const { return current_; }
  // Service of a single packet by the flow's own modules, however it is batched.
  [[nodiscard]] double min_service_ns(uint32_t flow) const { return min_service_ns_[flow]; }
  // How much longer than in the period a packet scheduler behind the graph may hold the flow's
  // packets: the flow's guarantee must hold whatever others begin to send.
  [[nodiscard]] double egress_ns(uint32_t flow) const {
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
  struct Before;
  void fold_nested(const std::vector<uint32_t>& triggers_pkts);
  void fold_into(uint32_t head, Before& from, double weight, uint32_t trigger_pkts);
  void unfold();

  // What a batch sends into a branch, as last asked for: batches and shares rarely change within a
  // step, and logarithms take time.
  struct Part {
    double batch_pkts = 0;
    double share = 0;
    double part_pkts = 0;

    double of(double batch, double branch_share);
  };
  // A head whose batches, whole or in part, arrive at another one; parts of the batches that it
  // ran, of those that reach it, and of those that it is to collect.
  struct Before {
    uint32_t head = 0;
    double part = 0;  // of its packets; 0 if it has none
    Part executed;
    Part alone;
    Part collected;
  };
  // Mean parts of batches that take a branch: flows in random order, or round robin.
  struct Parts {
    double by_chance = 0;
    double in_turn = 0;
    double weight = 0;

    void add(double of, double batch_pkts, double share, Part& part) {
      weight += of;
      by_chance += of * part.of(batch_pkts, share);
      in_turn += of * std::max(1.0, batch_pkts * share);
    }
    // These parts, in traffic in which the parts `others` were measured to be measured_pkts.
    [[nodiscard]] double like(const Parts& others, double measured_pkts) const {
      const double chance = others.by_chance / others.weight;
      const double turn = others.in_turn / others.weight;
      if (measured_pkts >= chance || chance - turn <= 0.01 * chance) {
        return measured_pkts * by_chance / others.by_chance;
      }
      const double order = std::clamp((chance - measured_pkts) / (chance - turn), 0.0, 1.0);
      return (order * in_turn + (1 - order) * by_chance) / weight;
    }
  };
  struct Head {
    Smoothed share;
    Smoothed arriving;  // at the triggers in force
    Smoothed aged;      // share of its releases caused by age
    std::vector<Before> before;
    Parts now;                 // of the batches before it, in the period
    uint32_t max_pkts = 0;     // that the buffer may hold
    double executed_pkts = 1;  // mean batch
    double batches = 0;
    double pkts = 0;
    Releases releases;
    double cost_per_batch_ns = 0;  // of the segment alone
    double cost_per_pkt_ns = 0;
    uint32_t heaviest = 0;  // its most expensive module, for the mean batch
    double heaviest_ns = 0;
    double following_ns = 0;  // work that its firings caused elsewhere in the period
    Stair stair;
    double extra_ns = 0;  // of the mean batch, beyond the line
    void count(const Releases& in_period);
    // Work in the period.
    [[nodiscard]] double work_ns() const {
      return batches * (cost_per_batch_ns + extra_ns) + pkts * cost_per_pkt_ns;
    }
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
  void find_heads_before();
  void find_stages_before(std::vector<std::pair<uint32_t, uint32_t>>& edges);
  void update_stages(const Snapshot& snapshot);
  [[nodiscard]] bool is_nested(uint32_t head) const;
  [[nodiscard]] double polled_pkts(uint32_t head, double batch_pkts) const;
  void aggregate(const Snapshot& snapshot, uint32_t head);
  void set_stair(const Snapshot& snapshot, uint32_t head);
  void update_head(const Snapshot& snapshot, uint32_t head);
  void update_parts(uint32_t head);
  double variance_of_run(uint32_t task);
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
  std::vector<uint32_t> upstream_first_;  // heads
  std::vector<Task> tasks_;
  std::vector<double> current_;
  std::vector<double> min_service_ns_;
  struct Egress {
    double took_ns = 0;
    double most_ns = 0;
  };
  std::vector<Egress> egress_;      // by flow
  std::vector<bool> is_scheduler_;  // by task
  std::vector<double> arriving_now_;
  // by member of a segment: shares of batches and of packets
  std::vector<std::pair<double, double>> parts_;
  bool is_folded_ = false;
  double age_sigmas_ = 0;
  // deviation that still counts as chance: grows with the number of counts
  double chance_sigmas_ = 3;
  Program program_;
};

}  // namespace batchplane::slo
