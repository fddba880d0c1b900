// SPDX-License-Identifier: BSD-3-Clause
// program_view.h - one period's counts as a Program: aggregated costs, shares, arriving batches,
// run times; smoothed over periods as far as they only fluctuate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "slo/model/budget.h"
#include "slo/model/controller.h"
#include "slo/model/model.h"

namespace batchplane::slo {

inline constexpr double kSigmasAt99 = 2.326;  // of a normal distribution, one-sided

// A value that follows counts: at once when they differ by more than chance, else slowly.
struct Smoothed {
  double value = 0;
  bool is_known = false;
  // Chance: so many standard deviations.
  void follow(double measured, double events, double sigmas = 3);
};

class ProgramView {
 public:
  static constexpr uint32_t kNoHead = kNoSegment;

  ProgramView(const Model& model, const Settings& settings);
  // Takes a period in; program() and what follows below stand for it.
  void update(const Snapshot& snapshot);
  // Whether buffers stand behind others, and whether those behind may hold; update() allows it.
  // While they may not, what a batch costs there is a part of what it costs where it is collected:
  // of the first buffer's costs, with the triggers that predict_arrivals() was given last.
  [[nodiscard]] bool has_nested() const;
  void allow_nested(bool is_allowed);
  // Arriving batches as they will be once `triggers_pkts` are in force: batches that are collected
  // upstream arrive larger. True when any moves by more than 10 %.
  bool predict_arrivals(const std::vector<uint32_t>& triggers_pkts);

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] Program& program() { return program_; }
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  [[nodiscard]] uint32_t head_of(uint32_t module) const { return head_of_[module]; }
  // Triggers in force during the period, by head.
  [[nodiscard]] const std::vector<double>& current() const { return current_; }
  // What a single packet's own modules cost, however it is served.
  [[nodiscard]] double min_service_ns(uint32_t flow) const { return min_service_ns_[flow]; }
  // What a packet scheduler behind the graph may take of a flow's time beyond what it took in the period: the
  // flow's promise must hold whatever others begin to send.
  [[nodiscard]] double egress_ns(uint32_t flow) const {
    return std::max(0.0, egress_[flow].most_ns - egress_[flow].took_ns);
  }
  // What it took, on average; and all that it may take, or that where nothing is promised.
  [[nodiscard]] double egress_took_ns(uint32_t flow) const { return egress_[flow].took_ns; }
  [[nodiscard]] double egress_most_ns(uint32_t flow) const { return egress_[flow].most_ns; }
  // Of a segment's modules the one that takes most, and its part of what all take.
  [[nodiscard]] std::pair<uint32_t, double> heaviest(uint32_t head) const;
  // How far beyond a mean run age limits reckon with at saturation, in standard deviations.
  [[nodiscard]] double age_sigmas() const { return age_sigmas_; }
  // Whether a task's input never was empty: more may have come than it took.
  [[nodiscard]] bool is_input_full(const Snapshot& snapshot, uint32_t task) const;

 private:
  void fold_nested(const std::vector<uint32_t>& triggers_pkts);
  void fold_into(uint32_t head, uint32_t before, double weight, uint32_t trigger_pkts);
  void unfold();

  struct Head {
    Smoothed share;
    Smoothed arriving;             // at the triggers in force
    std::vector<uint32_t> before;  // heads whose batches, or parts of them, arrive here
    uint32_t max_pkts = 0;         // that it may hold
    double executed_pkts = 1;      // mean batch
    double batches = 0;
    double pkts = 0;
    double cost_per_batch_ns = 0;  // of the segment alone
    double cost_per_pkt_ns = 0;
    uint32_t heaviest = 0;  // of its modules, in the mean batch
    double heaviest_ns = 0;
    double following_ns = 0;  // work of the period that its firings bring about elsewhere
    Stair stair;
    double extra_ns = 0;  // of the mean batch, beside the line
    // In the period.
    [[nodiscard]] double work_ns() const {
      return batches * (cost_per_batch_ns + extra_ns) + pkts * cost_per_pkt_ns;
    }
  };
  struct Task {
    // Of the period.
    double explained_ns = 0;  // by its segments
    double n_runs = 0;
    double n_releases = 0;
    double n_aged = 0;
    Smoothed rate;
    Smoothed run_pkts;
    Smoothed scale;
    Smoothed aged;
  };

  void lay_out_flows();
  void find_heads_before();
  void aggregate(const Snapshot& snapshot, uint32_t head);
  void set_stair(const Snapshot& snapshot, uint32_t head);
  void update_head(const Snapshot& snapshot, uint32_t head);
  double variance_of_run(uint32_t task);
  void count_task(const Snapshot& snapshot, uint32_t task);
  void update_task(const Snapshot& snapshot, uint32_t task);
  void compare_spread(const exec::TaskPeriod& period, uint32_t task);
  void update_flows(const Snapshot& snapshot);
  void update_egress(const Snapshot& snapshot, uint32_t flow);

  const Model& model_;
  std::vector<Segment> segments_;
  std::vector<uint32_t> head_of_;            // by module: index of the segment that it heads
  std::vector<std::vector<uint32_t>> next_;  // by module, each once
  std::vector<Head> heads_;
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
  std::vector<std::pair<double, double>> parts_;  // of a segment: of batches, of packets
  bool is_folded_ = false;
  double age_sigmas_ = 0;
  double chance_sigmas_ = 3;  // the more counts, the farther chance takes one of them
  Program program_;
};

}  // namespace batchplane::slo
