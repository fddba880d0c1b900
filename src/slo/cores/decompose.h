// SPDX-License-Identifier: BSD-3-Clause
// decompose.h - moves parts of a pipeline to other workers when one worker cannot keep its SLOs,
// and back when it can: the papers' two rules, and one based on loads. docs/controllers.md says
// when each acts.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/engine_costs.h"
#include "slo/model/controller.h"

namespace batchplane::slo {

// As profiled for the built-in costs, until costs are given.
inline constexpr HopCosts kUsualHop{.send_per_pkt_ns = 19, .take_per_pkt_ns = 20};

// Runs beside a controller of buffers, over all models that its moves lead to. Reads no clock.
class Decomposer {
 public:
  explicit Decomposer(const Settings& settings, const HopCosts& hop = kUsualHop)
      : settings_(settings), hop_(hop) {}

  // Called after each period; `snapshot` is of `model`. Returns moves at most every master_periods.
  std::vector<exec::MoveChange> step(const Model& model, const Snapshot& snapshot);

  // A worker is overloaded beyond kFullLoad of its time. A part returns if the worker would be
  // loaded by less than kReturnLoad with it, either of its time or of what it took in when it was
  // full.
  static constexpr double kFullLoad = 0.95;
  static constexpr double kReturnLoad = 0.6;
  // A part moves to a worker with SLO flows only if it leaves them this share of their time.
  static constexpr double kPartDelay = 0.5;

 private:
  struct Part {
    std::string home;    // worker it left
    uint64_t since = 0;  // period
    // Largest rate that its home took in while it was there; 0: it did not leave because of load.
    double full_pkts_per_ns = 0;
  };
  struct View;

  void forget_what_is_back(const View& view);
  void cut_inherent(const View& view);
  void cut_task(const View& view, uint32_t task);
  void move_violating_tasks(const View& view);
  void balance(const View& view);
  bool balance_once(const View& view, uint32_t worker, std::vector<double>& load);
  void bring_back(const View& view);
  void undo_without_gain(const View& view);
  [[nodiscard]] bool is_resting(const View& view, uint32_t module) const;
  [[nodiscard]] bool may_return(const View& view, const std::string& name, const Part& part) const;
  void go_back(const View& view, const std::string& name, const Part& part, const char* reason);
  void move(const View& view, uint32_t module, uint32_t worker, const char* reason);

  const Settings settings_;
  const HopCosts hop_;
  uint64_t n_periods_ = 0;
  std::map<std::string, Part> parts_;         // parts moved by this object, by module
  std::map<std::string, uint64_t> patience_;  // minimum periods that a part stays away
  std::map<std::string, uint64_t> returned_;  // period of its return
  std::vector<exec::MoveChange> moves_;       // of this step
  double rate_before_ = 0;  // packets per ns that entered when the last parts left because of load
  std::vector<std::string> on_trial_;  // those parts
};

}  // namespace batchplane::slo
