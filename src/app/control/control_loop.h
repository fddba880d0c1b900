// SPDX-License-Identifier: BSD-3-Clause
// control_loop.h - period by period: counts of the engine, estimates of costs, a controller's step,
// its decision into the engine; and everything that is told about it.
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
#include "slo/model/cost_estimate.h"

namespace batchplane::app {

inline constexpr const char* kNoController = "none";

// What a user asks for.
struct ControlChoice {
  std::string name = kNoController;
  uint64_t period_ns = 10'000'000;
  Value settings;                            // as given; null = defaults
  std::map<std::string, CostLaw> costs;      // profiled, by module; may be empty
  std::string costs_file;                    // what the user took them from; empty: not given
  std::string costs_origin;                  // in words
  std::string label;                         // remote: what decides, as its user calls it
  uint64_t answer_limit_ns = 1'000'000'000;  // remote: a later answer is told
  uint64_t client = 0;                       // remote: the connection that will decide
};

// What a pipeline's `controller` asks for. Throws ConfigErrors; whether there is such a controller
// is for ControlLoop::check to say.
ControlChoice choice_from(const Value& controller);
// The form that choice_from reads, without costs; null where no controller is on, or one that
// only its program can bring back.
Value saved_choice(const ControlChoice& choice);

// Serialised by the caller, like the engine. Nothing here knows of threads or of wall-clock time
// but for measuring its own steps.
class ControlLoop {
 public:
  explicit ControlLoop(Engine& engine);

  [[nodiscard]] bool is_on() const { return controller_ != nullptr; }
  [[nodiscard]] const ControlChoice& choice() const { return choice_; }

  // Throws ConfigError when this choice cannot be; changes nothing.
  void check(const ControlChoice& choice) const;
  // The same for a graph that does not run.
  static void check(const ControlChoice& choice, const Graph& graph);
  // From the next step on. What the controller before had set as age limits goes back to what the
  // pipeline says; with `none` triggers do too.
  void choose(ControlChoice choice);
  // The engine has another graph: model, controller and estimates are made for it.
  void graph_changed();
  // It has the same modules and flows in other tasks: counts and what was before any controller stay.
  void parts_moved();
  // Counts of kept promises begin anew.
  void slo_changed(const std::string& flow);

  // Of a controller that is another program; `client` is its connection. All throw ConfigError.
  // The last period, null when it has the number `after` or a smaller one.
  [[nodiscard]] Value hand_period(uint64_t client, uint64_t after);
  // {"number", "changes"}, or {"number", "fault"}.
  Value decide(uint64_t client, const Value& args);
  void client_gone(uint64_t client);
  [[nodiscard]] const exec::ControlModel& model() const { return model_; }

  // One period. What goes wrong is noted, the last good decision stays in force.
  // `generators`: how often and how long they have been held up since they were started.
  void step(const ControlTap::Gaps& generators = {});
  [[nodiscard]] uint64_t last_step_ns() const { return last_step_ns_; }
  // Parts that are to change workers after the last step; whoever asks carries it out, or does not.
  [[nodiscard]] std::vector<PartMove> take_moves() { return std::exchange(moves_, {}); }
  // What became of them.
  void note_event(const std::string& what) { log_.note_event(period_.now_ns, what, number_); }

  // `flows` is what `show flows` tells: percentiles are taken from there.
  [[nodiscard]] Value show_slo(const Value& flows) const;
  [[nodiscard]] Value show_control() const;
  // What each module is believed to cost, as costs files have it; none before a controller was on.
  [[nodiscard]] Value show_costs() const;
  // The last periods one by one; none without a controller.
  [[nodiscard]] Value show_periods() const;
  // Of one flow or module, or (empty) of all. Throws ConfigError for an unknown name.
  [[nodiscard]] Value explain(const std::string& name) const;

 private:
  struct Original {
    uint32_t trigger_pkts;
    uint64_t age_limit_ns;
    uint32_t weight;  // of a unit, else 0
  };

  [[nodiscard]] bool is_remote() const { return choice_.name == kRemoteController; }
  [[nodiscard]] std::unique_ptr<slo::Controller> make_guard() const;
  void keep_own_ages(exec::Decision& decision) const;
  void check_seat(uint64_t client) const;
  void take_seat(uint64_t client);
  Value put_into_force(const std::vector<exec::BufferChange>& changes);
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
  std::unique_ptr<slo::Controller> controller_;  // into model_
  std::optional<slo::Decomposer> decomposer_;    // over all graphs under one choice
  std::vector<PartMove> moves_;
  std::unique_ptr<slo::CostEstimator> estimator_;
  std::map<std::string, CostLaw> priors_;
  std::map<std::string, Original> originals_;  // before any controller
  std::vector<exec::CreditChange> original_credits_;
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
