// SPDX-License-Identifier: BSD-3-Clause
// optimal.h - the controller that solves for all triggers, age limits and ring credits at once in
// each period, for one or many tasks. docs/model.md has its equations.
//
// One step: the offered load (Load) and the costs (ProgramView) form a Program; measured delays
// (FlowDelay) determine how much of each SLO it may use; its solution is adopted if it is worth a
// change.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "slo/estimate/alike.h"
#include "slo/estimate/flow_delay.h"
#include "slo/estimate/load.h"
#include "slo/estimate/program_view.h"
#include "slo/estimate/rings.h"
#include "slo/estimate/tries.h"
#include "slo/model/controller.h"
#include "slo/solver/joint_rate.h"
#include "slo/solver/program.h"

namespace batchplane::slo {

std::unique_ptr<Controller> make_optimal(const Model& model, const Settings& settings);

class Optimal final : public Controller {
 public:
  Optimal(const Model& model, const Settings& settings);
  [[nodiscard]] const std::string& name() const override { return name_; }
  Decision step(const Snapshot& snapshot) override;
  [[nodiscard]] Explanation explain() const override;
  [[nodiscard]] const ProgramView& view() const { return view_; }
  // Triggers of the last step, by head.
  [[nodiscard]] const Triggers& chosen() const { return chosen_; }

 private:
  struct Flow {
    FlowDelay delay;
    double ring_ns = 0;       // wait in full rings between tasks
    bool is_waiting = false;  // late before it was polled: more arrived than was taken
    // sends beyond its share of a link: its packets wait there anyway
    bool is_beyond_share = false;
    bool is_left_out = false;  // no triggers were found that keep its SLO
    // The period says nothing about its triggers: of a backlog, or what is left of it, beyond its share of a link,
    // of a new ring credit, or of a stall of the machine.
    bool is_excused = false;
    exec::FlowVerdict verdict;
  };

  struct Search {
    Solver solver;
    Triggers chosen;  // found last
  };

  // optimal.cc: a step, and what becomes of its plan.
  [[nodiscard]] bool passes_over_lull(const Snapshot& snapshot);
  void follow_gain(double gain);
  [[nodiscard]] bool should_come_back(const Kept::Point& back) const;
  void keep_what_fits();
  void mix(const Evaluation& now, Triggers& triggers_pkts) const;
  void take(Triggers triggers_pkts);
  // Whether SLOs are kept: by the model (keeps_budget), by what was measured (is_any_late, stays_late,
  // is_fine_as_it_is), or by both, of the triggers in force (keeps_slo).
  [[nodiscard]] bool keeps_budget(const Evaluation& at, uint32_t flow) const;
  [[nodiscard]] bool keep_budgets(const Evaluation& at) const;
  [[nodiscard]] bool keeps_slo(const Evaluation& now, uint32_t flow) const;
  [[nodiscard]] bool keep_slos(const Evaluation& now) const;
  void evaluate_at(const Triggers& triggers_pkts, Evaluation& out);
  [[nodiscard]] bool looks_without() const;
  void bypass_where_idle();
  void change(const Snapshot& snapshot, Decision& decision);
  void change_stage(const Snapshot& snapshot, uint32_t head, Decision& decision);
  // optimal_learn.cc: what a period tells.
  void learn(const Snapshot& snapshot);
  [[nodiscard]] double waits_beside_ns(uint32_t flow) const;
  [[nodiscard]] double beside_ns(uint32_t flow) const;
  [[nodiscard]] double modelled_now_ns(uint32_t flow) const;
  bool learn_place(const exec::FlowPeriod& period, uint32_t flow);
  void share_ratios();
  void learn_margin();
  [[nodiscard]] FlowDelay::How how(uint32_t flow) const;
  [[nodiscard]] bool is_without_modules(uint32_t flow) const;
  [[nodiscard]] bool is_held_up(const Snapshot& snapshot, uint32_t flow) const;
  [[nodiscard]] bool is_any_excused() const;
  void observe(const Snapshot& snapshot);
  // optimal_plan.cc: triggers and ring credits.
  void solve();
  [[nodiscard]] bool is_any_late() const;
  [[nodiscard]] bool stays_late() const;
  [[nodiscard]] bool is_stuck() const;
  [[nodiscard]] bool take_credit_back();
  [[nodiscard]] bool gains_with(uint32_t credit_batches);
  void carry();
  [[nodiscard]] bool is_fine_as_it_is() const;
  void give_up_margins();
  void plan_stretched(double stretch);
  void plan(uint32_t credit_batches);
  // take() is for triggers alone. These bring the rate, weights and budgets of the plan: of the one at hand, of
  // one given up for it, and of the one at hand with other triggers.
  void adopt_plan();
  void restore(JointSolution found);
  void adopt_triggers(Triggers triggers_pkts);
  void plan_nested(double rate_pkts_per_ns);
  [[nodiscard]] bool is_settled_by_full_outer();
  void solve_with(Search& search, double rate_pkts_per_ns);
  void wait_in_rings(double rate_pkts_per_ns);
  void wait_for_runs(bool is_all_carried);
  void set_budgets(double rate_pkts_per_ns);
  void close_loop();
  [[nodiscard]] double cost_of(const Evaluation& at) const;
  [[nodiscard]] double best_rate();
  [[nodiscard]] bool carries(const Evaluation& at) const;
  [[nodiscard]] double may_take_ns(uint32_t flow) const;
  [[nodiscard]] double lateness() const;
  // optimal_limits.cc: how old packets may get.
  void set_bounds();
  void reserve(const Evaluation& at);
  [[nodiscard]] double load_of(uint32_t task) const;
  [[nodiscard]] double cut_load();
  [[nodiscard]] double queued_rings();
  [[nodiscard]] double least_slo_ns() const;
  void limit_ages();
  // optimal_verdict.cc
  void judge(const Snapshot& snapshot, Decision& decision);
  void judge_flow(const Snapshot& snapshot, uint32_t flow, double feedback, double busiest_ns);
  void divide(const Snapshot& snapshot, uint32_t flow);
  [[nodiscard]] double feedback() const;
  [[nodiscard]] double pps_per_us(uint32_t flow, double feedback, double busiest_ns) const;
  [[nodiscard]] std::string heaviest_on_way(const Snapshot& snapshot, uint32_t flow) const;
  [[nodiscard]] std::string hint_of(const Snapshot& snapshot, uint32_t flow) const;
  void predict(Decision& decision);
  // optimal_explain.cc
  [[nodiscard]] FlowExplanation explain_flow(uint32_t flow) const;
  [[nodiscard]] ModuleExplanation explain_module(uint32_t head) const;
  [[nodiscard]] uint32_t commanded_pkts(uint32_t head) const;
  [[nodiscard]] const char* why(uint32_t head, bool is_bound) const;

  std::string name_ = "optimal";
  const Model& model_;
  const Settings settings_;
  ProgramView view_;
  Alike alike_;
  Load load_;
  Rings rings_;
  Search all_;
  Search outer_;  // for buffers that have no others before them
  Margin margin_;
  Tries tries_;
  Joint joint_;
  // Of the plan: its prices, and the flows left out. chosen_ may be other triggers, of keep_what_fits().
  JointSolution found_;
  Evaluation in_force_;  // the model at the period's triggers, rate and arrivals
  Evaluation at_;        // the model at the chosen triggers, in the plan's program
  Evaluation trial_;
  std::vector<Flow> flows_;
  Triggers chosen_;                  // by head
  std::vector<uint64_t> limits_ns_;  // age limits, by head
  // longest time in the task that age limits may allow, by flow; 0: it sets no limits
  std::vector<double> bounds_ns_;
  // Factor on all SLOs, without margins: the smallest with which triggers carry the load, or 1 where margins
  // would leave flows out. 0: SLOs less their margins.
  double stretch_ = 0;
  bool has_decided_ = false;
  bool is_try_ = false;         // the chosen triggers are a try, for a gain
  uint32_t lulls_ = 0;          // in a row
  uint32_t late_in_a_row_ = 0;  // periods that broke SLOs of the plan, since the credit changed
  double last_gain_ = 0;        // cost of the triggers in force over that of the best
  double gain_noise_ = 0;       // its mean change from period to period at rest
  bool has_moved_ = false;      // the last decision moved triggers
};

}  // namespace batchplane::slo
