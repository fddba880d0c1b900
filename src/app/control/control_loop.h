// SPDX-License-Identifier: BSD-3-Clause
// control_loop.h - once per period: reads the engine's counts, estimates costs, runs the controller's step
// and applies its decision; and reports about it all.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/control/control_log.h"
#include "app/control/control_remote.h"
#include "app/control/period_history.h"
#include "base/value.h"
#include "core/engine/engine.h"
#include "slo/controllers.h"
#include "slo/cores/decompose.h"
#include "slo/model/cost_pool.h"

namespace batchplane::app {

inline constexpr const char* kNoController = "none";

// A user's choice of a controller.
struct ControlChoice {
  std::string name = kNoController;
  uint64_t period_ns = 10'000'000;
  Value settings;                        // as given; null = defaults
  std::map<std::string, CostLaw> costs;  // profiled, by module; may be empty
  std::optional<HopCosts> hop;           // of the same profile
  std::string costs_file;                // the file from which the user took them; empty: not given
  std::string costs_origin;              // in words
  std::string label;                     // remote: the user's name for the deciding program
  uint64_t answer_limit_ns = 1'000'000'000;  // remote: later answers are reported
  uint64_t client = 0;                       // remote: the connection that will decide
};

// A pipeline's `controller`. Throws ConfigErrors; ControlLoop::check verifies that the controller exists.
ControlChoice choice_from(const Value& controller);
// The form that choice_from reads, without costs; null when no controller is on, or only its own program can
// restart it.
Value saved_choice(const ControlChoice& choice);

// Serialised by the caller, like the engine. Independent of threads and wall-clock time, except that it
// measures its own steps.
class ControlLoop {
 public:
  explicit ControlLoop(Engine& engine);

  [[nodiscard]] bool is_on() const { return controller_ != nullptr; }
  [[nodiscard]] const ControlChoice& choice() const { return choice_; }

  // Throws ConfigError when the choice is impossible; changes nothing.
  void check(const ControlChoice& choice) const;
  // The same for a graph that is not running.
  static void check(const ControlChoice& choice, const Graph& graph);
  // Takes effect with the next step. Age limits set by the previous controller return to those of the
  // pipeline; with `none`, so do triggers.
  void choose(ControlChoice choice);
  // Call when the engine has another graph: makes a new model, controller and estimates.
  void graph_changed();
  // Call when the same modules and flows are in other tasks: keeps counts and the settings from before any
  // controller.
  void parts_moved();
  // Restarts the counts for a flow whose SLO changed.
  void slo_changed(const std::string& flow);

  // For a controller in another program; `client` is its connection. All throw ConfigError.
  // The last period; null when its number is `after` or smaller.
  [[nodiscard]] Value hand_period(uint64_t client, uint64_t after);
  // {"number", "changes", "credits", "polls"}, or {"number", "fault"}.
  Value decide(uint64_t client, const Value& args);
  void client_gone(uint64_t client);
  [[nodiscard]] const exec::ControlModel& model() const { return model_; }

  // Runs one period. Errors are logged, and the last good decision stays in force. `generators`: how often
  // and how long they have been stalled since their start.
  void step(const ControlTap::Gaps& generators = {});
  [[nodiscard]] uint64_t last_step_ns() const { return last_step_ns_; }
  // Parts that should change workers after the last step; the caller may carry out the moves or not.
  [[nodiscard]] std::vector<PartMove> take_moves() { return std::exchange(moves_, {}); }
  // Records the result of the moves.
  void note_event(const std::string& what) { log_.note_event(period_.now_ns, what, number_); }

  // `flows` is the answer of `show flows`, which supplies the percentiles.
  [[nodiscard]] Value show_slo(const Value& flows) const;
  [[nodiscard]] Value show_control() const;
  // Estimated cost of each module, in the format of costs files; empty before a controller was on.
  [[nodiscard]] Value show_costs() const;
  // The last periods one by one; empty without a controller.
  [[nodiscard]] Value show_periods() const;
  // For one flow or module, or (empty) for all. Throws ConfigError for an unknown name.
  [[nodiscard]] Value explain(const std::string& name) const;

 private:
  struct Original {
    uint32_t trigger_pkts;
    uint64_t age_limit_ns;
    uint32_t weight;  // of a unit, otherwise 0
  };

  [[nodiscard]] bool is_remote() const { return choice_.name == kRemoteController; }
  [[nodiscard]] std::unique_ptr<slo::Controller> make_guard() const;
  void keep_own_ages(exec::Decision& decision) const;
  void check_seat(uint64_t client) const;
  void take_seat(uint64_t client);
  Value put_into_force(const exec::Decision& decision);
  void note_activity();
  void watch_program(uint64_t now_ns);
  [[nodiscard]] slo::Settings settings_of(const ControlChoice& choice) const;
  void take_model();
  void skip_period();
  void make_model();
  void make_controller();
  void make_estimator();
  void remember_originals();
  void restore(bool with_triggers);
  void restore_polls();
  void restore_stages();
  void change_polls(const std::vector<exec::PollChange>& changes);
  void change_stages(const std::vector<exec::StageChange>& changes);
  // What the last period tells of a stage; null if the module is none.
  [[nodiscard]] const exec::StagePeriod* stage_of(uint32_t module) const;
  void begin();
  void step_once(const ControlTap::Gaps& generators);
  [[nodiscard]] Value flow_row(uint32_t flow, const slo::Explanation& explained) const;
  [[nodiscard]] Value module_row(uint32_t module, const slo::Explanation& explained) const;
  [[nodiscard]] std::string why_no_buffer(uint32_t module) const;
  [[nodiscard]] Value drifting() const;

  Engine& engine_;
  ControlChoice choice_;
  exec::ControlModel model_;
  slo::Settings settings_;
  std::unique_ptr<slo::Controller> controller_;  // refers to model_
  std::optional<slo::Decomposer> decomposer_;    // for all graphs under one choice
  std::vector<PartMove> moves_;
  std::unique_ptr<slo::CostEstimator> estimator_;
  std::map<std::string, CostLaw> priors_;
  std::map<std::string, Original> originals_;  // settings before any controller
  std::vector<exec::CreditChange> original_credits_;
  std::map<std::string, uint32_t>
      original_polls_;  // by polled module, where a controller has decided
  std::map<std::string, exec::StageChange> original_stages_;  // the same, by stage
  std::set<std::string> touched_;  // modules that a controller has changed
  exec::PeriodSnapshot period_;
  exec::Decision decision_;
  ControlLog log_;
  PeriodHistory history_;
  RemoteSeat seat_;
  std::set<uint32_t> own_ages_;  // modules whose age limit the program has chosen
  uint64_t number_ = 0;          // of the last period, over all controllers and graphs
  uint64_t graph_number_ = 0;    // how often the graph has changed
  uint64_t first_of_graph_ = 1;  // number of its first period
  uint64_t last_step_ns_ = 0;
};

}  // namespace batchplane::app
