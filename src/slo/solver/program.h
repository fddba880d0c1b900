// SPDX-License-Identifier: BSD-3-Clause
// program.h - solves a Program: finds triggers of least load (highest rate if a task is saturated)
// with every flow within its budget. docs/model.md justifies each step.
//
// relax:  with turnaround and rates fixed at the last iterate, the problem is separable and
// convex, and its dual has one price per flow. The first solve starts from the largest triggers,
// where turnaround is least, so points that are feasible only at large triggers are found. Later solves start from
// the last point where that leads to a solution, which may be another fixed point.
// round:  round down, bypass where holding does not pay off, then raise by gain per delay.
// search: move single triggers, in small programs also pairs, while the others make room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "slo/model/budget.h"

namespace batchplane::slo {

struct Solution {
  Triggers triggers_pkts;
  std::vector<double> prices;  // by flow: load saved per ns of budget
  // by flow: left out, because no triggers were found that keep its budget
  std::vector<bool> is_infeasible;
  Evaluation model;          // at triggers_pkts
  uint32_t relaxations = 0;  // convex problems solved
  uint32_t tries = 0;        // moves of the search

  [[nodiscard]] size_t n_left_out() const {
    return static_cast<size_t>(std::ranges::count(is_infeasible, true));
  }
};

// The point before rounding, for comparison with other convex solvers.
struct Relaxation {
  std::vector<double> batches_pkts;  // q, or the arriving batch if nothing is held
  std::vector<double> prices;  // by flow: multiplier of its budget, with rates and turnaround fixed
  std::vector<bool> is_short;  // by flow: even this point exceeds its budget
  Evaluation model;            // at batches_pkts
  uint32_t relaxations = 0;    // convex problems solved
};

// Keeps prices and memory between solves. After the first solve of a given size it does not
// allocate.
class Solver {
 public:
  // Sets which flows cross which modules. Call it before the first solve and whenever that changes.
  void prepare(const Program& program);
  const Solution& solve(const Program& program);
  // Solves only the relaxed problem, from the largest triggers, until no trigger moves by more than
  // `settled` (relative): for comparison with other solvers. Allocates; the next solve starts cold.
  Relaxation relaxed(const Program& program, double settled);
  // Forgets prices and the last point: the next solve starts cold.
  void forget() {
    has_point_ = false;
    rest_ = 0;
  }

 private:
  static constexpr double kSettled = 5e-3;  // relative change of a trigger between iterates
  static constexpr uint32_t kMaxIterates = 40;
  // Flows that share modules, directly or through other flows.
  struct Group {
    uint32_t begin = 0;  // into group_flows_
    uint32_t end = 0;
  };

  // program.cc
  void choose_free(const Program& program);
  bool relax_all(const Program& program, bool is_warm);
  void relax(const Program& program);
  bool iterate(const Program& program, bool is_last);
  void start(const Program& program);
  void set_feedback(const Program& program);
  void set_weights(const Program& program);
  void set_penalties(const Program& program);
  [[nodiscard]] bool penalties_are_final(const Program& program) const;
  void set_needs(const Program& program);
  void set_relaxed_rooms(const Program& program);
  double room_of(const Program& program, uint32_t flow, double& min_ns) const;
  bool bypass_dearest(const Program& program, uint32_t flow);
  bool update_emphasis(const Program& program);
  void exclude_short(const Program& program);
  [[nodiscard]] static double excess_of(const Program& program, const Evaluation& at);
  void settle_infeasible(const Program& program);
  void hold_nothing_if_in_time(const Program& program);
  void solve_round(const Program& program);
  void finish(const Program& program);

  // program_dual.cc
  void solve_dual(const Program& program);
  void solve_group(const Group& group);
  double step_price(uint32_t flow);
  struct Held;
  [[nodiscard]] const Held& held_at(uint32_t module, double price);
  void set_free_paths(const Program& program);
  // The modules on the flow's path that may hold.
  [[nodiscard]] std::span<const uint32_t> free_path(uint32_t flow) const {
    return {free_modules_.data() + free_paths_begin_[flow],
            free_modules_.data() + free_paths_begin_[flow + 1]};
  }
  [[nodiscard]] double used_ns(uint32_t flow, double price_change, double& slope);
  void add_price(uint32_t flow, double change);
  [[nodiscard]] double dual_value(const Group& group);

  // program_newton.cc
  void prepare_sets(const Program& program);
  [[nodiscard]] double entry_of(uint32_t module);
  struct Set;
  void see_set(Set& set, uint32_t number);
  bool set_curvature();
  bool solve_by_sets();
  void newton(const Group& group);

  // program_integer.cc
  void round_down(const Program& program);
  bool bypass_unpaid(const Program& program);
  // A trigger that could grow, its new value, and the load saved per ns of budget.
  struct Raise {
    double to = 0;
    double gain = 0;
    double turnaround_ns = 0;  // of every flow of the task
  };
  void evaluate_triggers(const Program& program);
  void set_rooms(const Program& program);
  [[nodiscard]] double fill_increase_ns(const Program& program, uint32_t flow, uint32_t module,
                                        double to) const;
  [[nodiscard]] Raise raise_of(const Program& program, uint32_t module) const;
  void take_room(const Program& program, uint32_t module, const Raise& raise);
  void raise_greedily(const Program& program);
  [[nodiscard]] size_t cheapest_to_lower(const Program& program, uint32_t f) const;
  bool lower_until_fits(const Program& program, size_t& worst);
  void repair(const Program& program);
  [[nodiscard]] bool fits(const Program& program);

  // program_search.cc
  struct Score {
    double excess_ns = 0;
    double load = 0;
  };
  [[nodiscard]] double hope_ns(const Program& program, const ProgramFlow& flow) const;
  bool improves(const Program& program, Score& best);
  bool keeps_if_better(const Program& program, Score& best);
  [[nodiscard]] bool may_pay(const Program& program, uint32_t module, double to) const;
  bool refills(const Program& program, Score& best);
  bool moves_with_partner(const Program& program, uint32_t module, double to, Score& best);
  [[nodiscard]] bool is_thorough(const Score& best) const;
  bool moves(const Program& program, uint32_t module, double to, Score& best);
  bool steps(const Program& program, uint32_t module, int step, Score& best);
  bool moves_one(const Program& program, Score& best);
  void price_again(const Program& program);
  void search(const Program& program);

  // program_alike.cc
  void equalise_alike(const Program& program);
  void equalise(const Program& program, double most);

  // Which flows and modules belong together.
  std::vector<uint32_t> module_flows_;         // flows through each module, module by module
  std::vector<uint32_t> module_flows_begin_;   // size: modules + 1
  std::vector<uint32_t> first_modules_;        // modules of which the flow is the first, by flow
  std::vector<uint32_t> first_modules_begin_;  // size: flows + 1
  std::vector<uint32_t> group_flows_;
  std::vector<Group> groups_;

  // A relaxed point and the triggers made from it.
  struct Point {
    std::vector<double> size;      // q, or a where bypassed
    std::vector<double> triggers;  // integers, 0 = bypassed
    std::vector<double> price;     // by flow
    std::vector<double> emphasis;  // by task: price of its turnaround
    std::vector<uint8_t> is_out;   // by flow: not constrained
  };
  Point point_;
  std::vector<double> last_size_;
  std::vector<uint8_t> is_free_;  // may hold
  std::vector<uint8_t>
      is_pinned_;  // keeps its trigger: bypassed for good, or the one that a move tries
  std::vector<double> module_price_;
  std::vector<double> weight_;     // of 1 / q in the objective, including the emphasis
  std::vector<double> own_price_;  // price of q, in addition to the flows' prices
  // By flow: limit on the sum of delay_slope * q in the relaxed problem; among integers, what is left of the budget.
  std::vector<double> room_ns_;
  std::vector<double> task_room_ns_;
  // By module: service, time away and least fill while bypassed; what the slope of its delay says
  // of its arriving batch; and the fill of the first packet held.
  struct Need {
    double bypassed_ns = 0;
    double slope_ns = 0;
    double first_ns = 0;
  };
  std::vector<Need> needs_;
  struct TurnaroundPrice {
    double sum = 0;
    bool is_penalised = false;
  };
  std::vector<TurnaroundPrice> turnaround_prices_;  // by task
  std::vector<double> first_hold_ns_;   // by flow: room that its first held packet takes
  std::vector<uint8_t> is_short_;       // by flow: over budget even with all its modules bypassed
  std::vector<uint8_t> was_free_;       // is_free_, when what follows was set
  std::vector<uint32_t> free_modules_;  // by flow, those on its path
  std::vector<uint32_t> free_paths_begin_;  // size: flows + 1
  // A module that may hold, in the relaxed problem, and where it is at the price last asked for.
  struct Held {
    double slope = 0;
    double weight = 0;
    double own_price = 0;
    double least = 0;
    double most = 0;
    double price = 0;
    double size = 0;
    double used_ns = 0;  // of the budget of every flow through it
    double entry = 0;    // how fast that falls with the price; 0 at a bound
  };
  std::vector<Held> held_;
  std::vector<double> penalty_;   // by flow: price while it is short
  std::vector<double> feedback_;  // by task: what prices save through shorter fills
  std::vector<double> penalty_feedback_;
  double price_unit_ = 1;
  double part_ = 0.5;  // step length towards the next iterate
  std::vector<uint32_t> active_;

  // The Newton step.
  struct Set {
    uint32_t begin = 0;  // into set_modules_
    uint32_t end = 0;
    uint32_t row = 0;  // row of the matrix, if entry > 0
    double entry = 0;
    bool is_seen = false;
  };
  std::vector<Set> sets_;                  // modules crossed by the same flows
  std::vector<uint32_t> set_modules_;      // modules of the sets, set by set
  std::vector<uint32_t> flow_sets_;        // sets that each flow crosses, flow by flow
  std::vector<uint32_t> flow_sets_begin_;  // size: flows + 1
  std::vector<uint32_t> seen_sets_;
  std::vector<double> own_entry_;  // by active flow
  std::vector<double> matrix_;
  std::vector<double> ranks_;  // by row of the matrix
  std::vector<double> step_;   // by active flow

  std::vector<uint32_t> next_alike_;  // by module: the next one that is alike
  std::vector<double> backup_;
  std::vector<FillSum> fills_;  // by flow
  std::vector<Raise> raises_;   // by module: its best raise at present
  std::vector<double> before_move_;
  double settled_ = kSettled;
  uint32_t max_iterates_ = kMaxIterates;
  bool has_point_ = false;
  bool any_short_ = false;
  bool is_hopeful_ = false;                    // raises count on the relaxed point's rates
  std::vector<double> relaxed_turnaround_ns_;  // by task
  std::vector<double> relaxed_pkt_ns_;         // by task

  Evaluation at_;
  Evaluation trial_;           // at tried_, if it is_tried_
  std::vector<double> tried_;  // triggers
  bool is_tried_ = false;
  Slopes slopes_;
  Slopes search_slopes_;
  size_t tries_left_ = 0;
  double vain_excess_ns_ = 0;  // before the last search that was in vain
  uint32_t rest_ = 0;          // searches left out after it
  Solution solution_;
};

}  // namespace batchplane::slo
