// SPDX-License-Identifier: BSD-3-Clause
// arrivals.h - arriving batches as measured -> those under other triggers, as what is collected
// upstream arrives larger -> where buffers behind others may not hold, the costs of batches behind,
// as a part of the costs of the buffer where they are collected.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "slo/model/budget.h"

namespace batchplane::slo {

class Arrivals {
 public:
  using Edge = std::pair<uint32_t, uint32_t>;

  // Edges lead from modules of the program to those next behind them; modules from n_segments on
  // are stages: what comes back arrives in polls of at most poll_pkts. Sets ProgramModule::before.
  Arrivals(uint32_t n_segments, const std::vector<Edge>& edges, uint32_t poll_pkts,
           Program& program);
  // Takes in a period as the program has it, and the mean batches that its modules executed.
  void measure(const Program& program, const std::vector<double>& executed_pkts);
  // The rest is as in ProgramView.
  [[nodiscard]] bool has_nested() const;
  void allow_nested(bool is_allowed, Program& program);
  [[nodiscard]] std::optional<Triggers> cheapest_outer(Program& program);
  bool predict(const Triggers& triggers_pkts, Program& program);

 private:
  // What a batch sends into a branch, as last asked for: batches and shares rarely change within a
  // step, and logarithms take time.
  struct Part {
    double batch_pkts = 0;
    double share = 0;
    double part_pkts = 0;

    double of(double batch, double branch_share);
  };
  // A module whose batches, whole or in part, arrive at another one; parts of the batches that it
  // ran, of those that reach it, and of those that it is to collect.
  struct Before {
    uint32_t module = 0;
    double part = 0;  // of its packets; 0 if it has none
    double executed_pkts = 1;
    Part executed;
    Part alone;
    Part collected;
  };
  struct Arriving {
    std::vector<Before> before;
    double now_pkts = 0;  // of the batches before it in the period, if flows come in random order
    ProgramModule measured;  // and max_pkts while the buffer may not hold
  };

  [[nodiscard]] bool is_stage(uint32_t module) const { return module >= n_segments_; }
  [[nodiscard]] bool is_nested(uint32_t module) const;
  [[nodiscard]] double polled_pkts(uint32_t module, double batch_pkts) const;
  void fold_nested(const Triggers& triggers_pkts, Program& program);
  void fold_into(uint32_t module, Before& from, double weight, double trigger_pkts,
                 Program& program);
  void unfold(Program& program) const;

  uint32_t n_segments_;
  double poll_pkts_;
  std::vector<Arriving> modules_;
  std::vector<uint32_t> upstream_first_;
  bool is_folded_ = false;
};

}  // namespace batchplane::slo
