// SPDX-License-Identifier: BSD-3-Clause
// central.h - one controller over all tasks of a pipeline: triggers, age limits and how much each
// ring between tasks may hold, out of one program. docs/model.md has its equations.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "slo/cores/joint_rate.h"
#include "slo/model/controller.h"
#include "slo/optimal/optimal_view.h"

namespace batchplane::slo {

std::unique_ptr<Controller> make_central(const Model& model, const Settings& settings);

class Central final : public Controller {
 public:
  Central(const Model& model, const Settings& settings);
  [[nodiscard]] const std::string& name() const override { return name_; }
  Decision step(const Snapshot& snapshot) override;
  [[nodiscard]] Explanation explain() const override;

  static constexpr uint32_t kMaxCreditBatches = 8;

 private:
  struct Flow {
    double slo_ns = 0;
    double measured_ns = 0;
    double ratio = 1;    // measured over modelled delay, smoothed
    double care = 0;     // of the SLO: kept back since it was broken
    double ring_ns = 0;  // waited in full rings on its way
    exec::FlowVerdict verdict;
  };

  // central.cc: one function a phase.
  bool join(const Snapshot& snapshot);
  void count_rings(const Snapshot& snapshot);
  void wait_in_rings(double rate_pkts_per_ns);
  void learn(const Snapshot& snapshot);
  void set_budgets(double rate_pkts_per_ns);
  void close_loop();
  void solve();
  void solve_at_credit(uint32_t credit_batches);
  void set_credit(uint32_t batches);
  [[nodiscard]] double lateness() const;
  void limit_ages();
  void change(const Snapshot& snapshot, Decision& decision);
  [[nodiscard]] bool is_worth_moving() const;
  [[nodiscard]] uint32_t credit_of(const exec::ControlInput& input) const;
  // central_explain.cc
  void judge(const Snapshot& snapshot, Decision& decision);
  void judge_flow(const exec::FlowPeriod& period, uint32_t flow);
  void divide(uint32_t flow);
  [[nodiscard]] double pps_per_us(uint32_t flow) const;
  [[nodiscard]] FlowExplanation explain_flow(uint32_t flow) const;
  [[nodiscard]] ModuleExplanation explain_module(uint32_t head) const;

  std::string name_ = "central";
  const Model& model_;
  const Settings settings_;
  OptimalView view_;
  Solver solver_;
  Joint joint_;
  JointSolution found_;
  Evaluation in_force_;  // the model at the triggers of the period
  Evaluation trial_;
  std::vector<Flow> flows_;
  std::vector<double> bounds_ns_;
  std::vector<bool> is_fed_;        // by task: from outside the pipeline
  std::vector<bool> holds_back_;    // by task: its feeders, while its ring is full
  std::vector<bool> is_full_;       // by task: the ring before it never is empty
  std::vector<double> input_pkts_;  // by task: waiting in front of it, outside the pipeline
  std::vector<double> ring_pkts_;   // by task: that wait before it, at the credit
  std::vector<double> ring_ns_;     // and for how long, at a rate
  std::vector<uint64_t> age_ns_;
  std::vector<uint32_t> triggers_;  // decided, by head
  double rate_pkts_per_ns_ = 0;     // that entered in the period
  uint32_t window_pkts_ = 0;        // of closed loops; 0: none
  bool is_saturated_ = false;
  double least_idle_ = 1;  // share of the busiest worker's time
  // By credit in batches: the share of the busiest worker's time that waiting for others takes.
  std::array<double, kMaxCreditBatches + 1> waste_ = {};
  uint32_t credit_batches_ = 0;   // decided
  uint32_t credit_in_force_ = 0;  // since the last step; 0: as the pipeline says
  uint32_t credit_periods_ = 0;   // since it changed
  uint32_t dwell_periods_ = 1;    // that it stays
  bool is_fresh_ = true;          // it did in the last step
};

}  // namespace batchplane::slo
