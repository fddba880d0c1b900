// SPDX-License-Identifier: BSD-3-Clause
// optimal.h - the controller that solves each period's problem for all triggers and age limits at
// once. docs/model.md has its equations.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "slo/model/controller.h"
#include "slo/optimal/optimal_age.h"
#include "slo/optimal/optimal_guard.h"
#include "slo/optimal/optimal_view.h"
#include "slo/solver/program.h"

namespace batchplane::slo {

std::unique_ptr<Controller> make_optimal(const Model& model, const Settings& settings);

class Optimal final : public Controller {
 public:
  Optimal(const Model& model, const Settings& settings);
  [[nodiscard]] const std::string& name() const override { return name_; }
  Decision step(const Snapshot& snapshot) override;
  [[nodiscard]] Explanation explain() const override;
  [[nodiscard]] const OptimalView& view() const { return view_; }
  // Triggers of the last step, by head.
  [[nodiscard]] const std::vector<uint32_t>& chosen() const { return chosen_; }

 private:
  // What a flow's measured delay says about the model, saturated or not.
  struct Bias {
    double ns = 0;  // measured less modelled, smoothed and clamped
    bool is_known = false;
    bool is_of_held = false;  // learnt while its packets were held
  };
  struct FlowMemory {
    Bias bias;
    Bias other_bias;  // of the regime that it is not in
    bool is_saturated = false;
    double free_budget_ns = 0;      // without the bias
    double seen_turnaround_ns = 0;  // by the model, of what is in force; 0: bias as it is
    double reserve_ns = 0;          // what age limits keep back, after packets were late
    bool was_backlogged = false;    // in the period before
    bool is_excused = false;        // late for a backlog, or the rest of one
    double slo_ns = 0;
    bool has_other_slo = false;  // than in the last step
    double lateness = 0;         // late packets, and chance, over those that may be
    double measured_ns = 0;      // 0: too few packets
    exec::FlowVerdict verdict;
  };
  // Of a saturated task: what its flows' triggers keep back, after packets were late.
  struct Care {
    double share = 0;           // of the SLOs
    double slow_share = 0;      // and what moments of a slow machine ask for
    double slow_step = 0;       // so much at a time, about
    uint32_t patience = 0;      // periods until less is tried; longer each time that this failed
    uint32_t left = 0;          // of them
    uint32_t quiet = 0;         // periods of the last try
    bool is_saturated = false;  // now
  };
  static constexpr uint32_t kCalmPeriods = 3;
  // Of a task, when more came than it carried.
  struct Overload {
    [[nodiscard]] bool is_disturbed() const { return calm < kCalmPeriods; }
    double max_load = 1.15;  // that is planned for
    uint32_t load_left = 0;  // periods until more is
    uint32_t load_patience = 0;
    bool is_full = false;          // the input never was empty
    double load = 0;               // planned, where what comes is known
    double other_pkt_ns = 0;       // then, of a packet's time: what its segments do not explain
    bool is_carrying = false;      // what comes comes before promises
    bool is_known = false;         // what comes, since it was carried
    uint32_t calm = kCalmPeriods;  // periods since a hole, or a slow machine
    uint32_t hopeless_left = 0;    // until stretching is tried again, after it gained nothing
    uint32_t backlogged = 0;       // periods in a row
    uint32_t out = 0;              // periods in a row in which promises could not be kept
    uint32_t tries = 0;
    uint32_t left = 0;  // periods until the next one
    uint32_t patience = 0;
  };
  struct HeadMemory {
    uint32_t cap_pkts = 0;  // triggers that are hardly ever reached are lowered to this
    double rate = 0;        // of the last period
    uint32_t trigger_pkts = 0;
    uint32_t kept_pkts = 0;  // the trigger that last kept its flows' promises at saturation
    uint64_t age_limit_ns = exec::kStrandingAge;
    const char* why = "no traffic";
    uint32_t binding_flow = ~0U;
    double price = 0;  // packets per second that one more microsecond here would buy
  };
  // Time of a packet in a saturated task, and what was expected to become of it.
  struct TaskTime {
    double measured_ns = 0;  // of the last period; 0: none that says something
    double change_ns = 0;    // expected by the last decision
    double holds = 0;        // of each packet, that this decision adds
  };

  // optimal_feedback.cc
  void evaluate_seen();
  void correct_bias(const Snapshot& snapshot);
  [[nodiscard]] double turnaround_of(const Evaluation& at, uint32_t flow) const;
  void scale_bias(const Evaluation& at);
  void leave_out_held_up(const Snapshot& snapshot);
  void cap_unreached(const Snapshot& snapshot);
  [[nodiscard]] bool is_waiting_outside(uint32_t f) const;
  [[nodiscard]] bool is_saturated(uint32_t flow) const;
  // optimal_care.cc
  [[nodiscard]] bool passes(uint32_t flow, uint32_t task) const;
  void reserve(const exec::FlowPeriod& period, uint32_t flow, bool was_for_slo);
  [[nodiscard]] double bound_of(uint32_t flow) const;
  void learn_bias(const Snapshot& snapshot, uint32_t flow);
  void forget_in_backlog(uint32_t flow);
  void take_care();
  void take_care_of(uint32_t task, double lateness);
  void note_kept(uint32_t task, double lateness);
  void allow_for_slow(uint32_t task, double lateness, double over);
  [[nodiscard]] bool is_slow(uint32_t flow) const;
  // optimal_holding.cc
  void learn_holding(const Snapshot& snapshot);
  [[nodiscard]] bool fills_batches(const Snapshot& snapshot, uint32_t task) const;
  void expect_holding();
  [[nodiscard]] double usual_holding_ns() const;
  void bypass_all();
  bool waits_for_whole_period(const Snapshot& snapshot);
  bool look_without(const Snapshot& snapshot);
  // optimal_overload.cc
  void note_overload(const Snapshot& snapshot);
  static void plan_less(Overload& overload);
  static void forget_failures(Overload& overload);
  bool must_carry(uint32_t task);
  bool carry_first();
  void leave_time_for_queues();
  [[nodiscard]] double planned_load(uint32_t task) const;
  bool plans_too_much();
  bool stretch_budgets();
  bool is_worth_stretching(double load_before);
  void solve_stretched(double more);
  // optimal.cc: one function a phase.
  [[nodiscard]] bool is_lull(const Snapshot& snapshot);
  [[nodiscard]] bool is_late_by_more_than_a_batch(const Snapshot& snapshot) const;
  [[nodiscard]] bool is_late_beyond_chance(const exec::FlowPeriod& period) const;
  void note_gaps(const Snapshot& snapshot);
  [[nodiscard]] bool is_disturbed() const { return since_gap_ < kGapsCount; }
  [[nodiscard]] bool is_still_solved();
  void solve();
  void solve_with(Solver& solver, uint32_t rounds);
  bool may_do_without_nested();
  void try_without_nested();
  void evaluate_with_arrivals(const std::vector<double>& triggers_pkts);
  bool fits_as_it_is();
  void keep_what_fits();
  void raise_gently();
  void bypass_where_idle();
  void limit_ages();
  void change(const Snapshot& snapshot, Decision& decision);
  void remember(const Snapshot& snapshot, const Decision& decision);
  // optimal_measured.cc
  void observe_rate(const Snapshot& snapshot);
  void guard_rate();
  void choose(const std::vector<uint32_t>& triggers_pkts);
  const std::vector<double>& go_from_measured(double share);
  bool probe();
  bool retreat();
  // optimal_verdict.cc
  void judge(const Snapshot& snapshot, Decision& decision);
  static void judge_egress(const exec::FlowPeriod& period, exec::FlowVerdict& verdict);
  void judge_flow(const exec::FlowPeriod& period, uint32_t flow);
  void set_feedback();
  [[nodiscard]] double pps_per_us(uint32_t flow) const;
  [[nodiscard]] std::string hint_of(uint32_t flow) const;
  void explain_heads();
  void predict(Decision& decision);
  // optimal_explain.cc
  [[nodiscard]] FlowExplanation explain_flow(uint32_t flow) const;
  [[nodiscard]] ModuleExplanation explain_module(uint32_t head) const;
  [[nodiscard]] MeasuredExplanation explain_guard() const;

  std::string name_ = "optimal";
  const Model& model_;
  const Settings settings_;
  OptimalView view_;
  Solver solver_;
  Solver outer_solver_;     // of buffers that have none before them
  Solver overload_solver_;  // with other budgets
  Solution solution_;       // what was chosen by
  Solution other_solution_;
  std::vector<uint32_t> other_chosen_;
  std::vector<uint32_t> chosen_;  // triggers, by head
  std::vector<uint64_t> limits_ns_;
  std::vector<double> slo_ns_;
  std::vector<double> bound_ns_;  // what age limits keep, by flow; 0 = nothing
  std::vector<double> as_real_;
  std::vector<double> mixed_;
  std::vector<double> feedback_;    // by task: of a shorter time of a packet, on itself
  std::vector<double> seen_scale_;  // by task
  std::vector<exec::FlowPeriod> without_held_up_;
  Evaluation model_now_;  // at the triggers in force during the period
  Evaluation model_chosen_;
  std::vector<bool> is_left_out_;
  std::vector<bool> is_backlogged_;  // flows: late before they were polled
  std::vector<bool> unbounded_;      // flows that set no age limits
  std::vector<bool> is_freed_;       // flows whose promises come second
  std::vector<Overload> overloads_;  // by task
  std::vector<double> care_ns_;      // by flow: what holding keeps back of its budget
  std::vector<Care> cares_;          // by task
  std::vector<TaskTime> times_;      // by task
  std::vector<uint32_t> before_pkts_;
  std::vector<uint32_t> unstretched_;
  static constexpr size_t kHoldingKept = 3;
  std::array<double, kHoldingKept> holding_seen_ns_{};  // what changes told of holding's costs
  uint32_t n_holding_seen_ = 0;
  uint32_t looks_ = 0;  // periods that were waited
  std::vector<FlowMemory> flows_;
  std::vector<HeadMemory> heads_;
  RateGuard guard_;
  std::vector<double> weights_ns_;     // of modules, by which traffic is compared
  std::vector<uint32_t> in_force_;     // during the period, by head
  std::vector<uint64_t> in_force_ns_;  // its age limits
  std::vector<uint32_t> moved_;        // triggers around those
  std::vector<ProgramFlow> kept_flows_;
  // The problem that was solved last, at the triggers chosen then.
  std::vector<double> solved_budget_ns_;
  std::vector<double> solved_delay_ns_;
  std::vector<double> solved_pkt_ns_;  // by task
  uint32_t steps_since_solved_ = 0;
  uint32_t max_unsolved_;
  double outer_load_ = 0;  // with outer buffers alone, when that was tried last
  uint32_t solves_without_outer_ = 0;
  uint32_t steps_ = 0;
  uint32_t next_probe_ = 0;                   // step at which one may be looked for again
  static constexpr uint32_t kGapsCount = 50;  // periods after one
  uint32_t since_gap_ = kGapsCount;
  bool is_rising_ = false;  // more was chosen than one step puts into force
  uint32_t lulls_ = 0;      // periods in a row that were left out
  bool has_decided_ = false;
  bool was_settled_ = false;  // the last step changed no trigger
  bool has_changed_ = false;
};

}  // namespace batchplane::slo
