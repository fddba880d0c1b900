// SPDX-License-Identifier: BSD-3-Clause
// program.h - solves a Program: the triggers of least load (or highest rate, where a task is
// saturated) with every flow within its budget. docs/model.md says why each step is right.
//
// relax:  with turnaround and rates as they are at the last iterate the problem is separable and
//         convex; its dual has one price a flow. Iterates start from the largest triggers, where
//         turnaround is least, so that what is feasible only at large triggers is found.
// round:  down, bypass where holding does not pay, then up again by gain per delay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "slo/model/budget.h"

namespace batchplane::slo {

struct Solution {
  std::vector<uint32_t> triggers_pkts;
  std::vector<double> prices;       // by flow: load saved per ns of budget
  std::vector<bool> is_infeasible;  // by flow: left out, no triggers found that keep its budget
  Evaluation model;                 // at triggers_pkts
  uint32_t relaxations = 0;         // convex problems solved
};

// The point before rounding, as another convex solver would find it.
struct Relaxation {
  std::vector<double> batches_pkts;  // q, or the arriving batch where nothing is held
  std::vector<double> prices;        // by flow, of its budget, rates and turnaround as they are
  std::vector<bool> is_short;        // by flow: not even this point keeps its budget
  Evaluation model;                  // at batches_pkts
  uint32_t relaxations = 0;          // convex problems solved
};

// Keeps prices and memory between solves; after the first solve of a size nothing is allocated.
class Solver {
 public:
  // Which flows cross which modules; to be called when that changes, and before the first solve.
  void prepare(const Program& program);
  const Solution& solve(const Program& program);
  [[nodiscard]] const Solution& solution() const { return solution_; }
  // The relaxed problem alone, from the largest triggers, until no trigger moves by more than this
  // relative change: for comparison with other solvers. Allocates; the next solve is a cold one.
  Relaxation relaxed(const Program& program, double settled);
  // Forgets prices and the last point: the next solve is a cold one.
  void forget() { has_point_ = false; }

 private:
  static constexpr double kSettled = 5e-3;  // relative change of a trigger between iterates
  static constexpr uint32_t kMaxIterates = 40;
  // Flows that share modules, directly or through others.
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
  void set_budgets(const Program& program);
  double room_of(const Program& program, uint32_t flow, double& min_ns) const;
  bool bypass_dearest(const Program& program, uint32_t flow);
  bool update_emphasis(const Program& program);
  void exclude_short(const Program& program);
  [[nodiscard]] double excess_ns(const Program& program) const;
  void settle_infeasible(const Program& program);
  void solve_round(const Program& program);
  void finish(const Program& program);

  // program_dual.cc
  void solve_dual(const Program& program);
  void set_implied(const Program& program, const Group& group);
  void solve_group(const Program& program, const Group& group);
  double step_price(const Program& program, uint32_t flow);
  [[nodiscard]] double used_ns(const Program& program, uint32_t flow, double price_change,
                               double& slope) const;
  [[nodiscard]] double size_at(uint32_t module, double price) const;
  void add_price(const Program& program, uint32_t flow, double change);
  [[nodiscard]] double dual_value(const Program& program, const Group& group) const;

  // program_newton.cc
  void prepare_sets(const Program& program);
  [[nodiscard]] double entry_of(const Program& program, uint32_t module) const;
  double set_entry(const Program& program, uint32_t set);
  bool set_curvature(const Program& program);
  bool solve_by_sets();
  bool newton(const Program& program, const Group& group);

  // program_integer.cc
  void round_down(const Program& program);
  bool bypass_unpaid(const Program& program);
  [[nodiscard]] double loss_of_holding(const Program& program, uint32_t module) const;
  [[nodiscard]] bool may_hold_twice(const Program& program) const;
  bool bypass_outpriced(const Program& program);
  void drop_dear(const Program& program);
  void keep_point();
  void restore_point();
  // A trigger that could grow: to what, and load saved per ns of budget.
  struct Raise {
    double to = 0;
    double gain = 0;
    double turnaround_ns = 0;  // of every flow of the task
  };
  void set_rooms(const Program& program);
  [[nodiscard]] double fill_increase_ns(const Program& program, uint32_t flow, uint32_t module,
                                        double to) const;
  [[nodiscard]] Raise raise_of(const Program& program, uint32_t module) const;
  void take_room(const Program& program, uint32_t module, const Raise& raise);
  bool raise_once(const Program& program);
  void raise_greedily(const Program& program);
  [[nodiscard]] size_t cheapest_to_lower(const Program& program, uint32_t f) const;
  bool lower_until_fits(const Program& program, size_t& worst);
  void repair(const Program& program);
  [[nodiscard]] bool fits(const Program& program);

  // program_polish.cc
  struct Score {
    double excess_ns = 0;
    double load = 0;
  };
  bool polish(const Program& program, bool is_rescue);
  void descend(const Program& program, Score& best);
  bool moves_one(const Program& program, Score& best);
  bool moves_and_refills(const Program& program, uint32_t module, Score& best);
  bool moves_with_partner(const Program& program, uint32_t module, Score& best);
  bool improves(const Program& program, Score& best);

  // Which flows share what.
  std::vector<uint32_t> module_flows_;        // flows through each module, one after the other
  std::vector<uint32_t> module_flows_begin_;  // size: modules + 1
  std::vector<uint32_t> group_flows_;
  std::vector<Group> groups_;

  // The relaxed point and its prices.
  std::vector<double> size_;  // q, or a where bypassed
  std::vector<double> last_size_;
  std::vector<double> triggers_;    // integers, 0 = bypassed
  std::vector<uint8_t> is_free_;    // may hold
  std::vector<uint8_t> is_pinned_;  // bypassed whatever the prices say
  std::vector<double> price_;       // by flow
  std::vector<double> module_price_;
  std::vector<double> weight_;     // of 1 / q in the objective, emphasis included
  std::vector<double> own_price_;  // of q, besides the flows' prices
  std::vector<double> room_ns_;    // by flow: what delay_slope * q may add up to
  std::vector<double> task_room_ns_;
  std::vector<double> first_hold_ns_;  // by flow: what its first held packet takes of its room
  std::vector<uint8_t> is_short_;      // by flow: not even bypassing all its modules would do
  std::vector<uint8_t> is_out_;        // by flow: no constraint
  std::vector<uint8_t> is_implied_;    // by flow: kept whenever another one is
  std::vector<uint64_t> held_by_;      // by flow: stands for the set of its modules that may hold
  std::vector<double> emphasis_;       // by task: price of its turnaround
  std::vector<double> penalty_;        // by flow: price while it is short
  std::vector<double> feedback_;       // by task: what prices save by shorter fills
  std::vector<double> penalty_feedback_;
  double price_unit_ = 1;
  double part_ = 0.5;  // of the way to the next iterate that is gone
  std::vector<uint32_t> active_;

  // The Newton step.
  struct Set {
    uint32_t begin = 0;  // into set_modules_
    uint32_t end = 0;
    uint32_t row = 0;  // of the matrix, where entry > 0
    double entry = 0;
    bool is_seen = false;
  };
  std::vector<Set> sets_;                  // modules that the same flows share
  std::vector<uint32_t> set_modules_;      // of the sets, one after the other
  std::vector<uint32_t> flow_sets_;        // sets that each flow crosses, one after the other
  std::vector<uint32_t> flow_sets_begin_;  // size: flows + 1
  std::vector<uint32_t> seen_sets_;
  std::vector<double> own_entry_;  // by active flow
  std::vector<double> matrix_;
  std::vector<double> ranks_;  // by row of the matrix
  std::vector<double> step_;   // by active flow

  std::vector<double> backup_;
  // A relaxed point with the triggers that were made of it.
  struct Point {
    std::vector<double> triggers;
    std::vector<double> size;
    std::vector<double> price;
    std::vector<double> module_price;
    std::vector<double> emphasis;
    std::vector<double> penalty;
    std::vector<uint8_t> is_free;
    std::vector<uint8_t> is_short;
  };
  Point kept_;
  std::vector<FillSum> fills_;  // by flow
  std::vector<Raise> raises_;   // by module: the best that it could do now
  std::vector<double> before_move_;
  std::vector<double> descended_;
  double settled_ = kSettled;
  uint32_t max_iterates_ = kMaxIterates;
  bool has_point_ = false;
  bool any_short_ = false;
  bool is_rescue_ = false;

  Evaluation at_;
  Evaluation trial_;
  Slopes slopes_;
  Solution solution_;
};

}  // namespace batchplane::slo
