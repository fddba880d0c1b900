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

#include "app/control_log.h"
#include "base/value.h"
#include "core/engine.h"
#include "slo/controller.h"
#include "slo/cost_estimate.h"

namespace batchplane::app {

inline constexpr const char* kNoController = "none";
inline constexpr uint64_t kLeastPeriodNs = 1'000'000;
inline constexpr uint64_t kMostPeriodNs = 1'000'000'000;

// What a user asks for.
struct ControlChoice {
  std::string name = kNoController;
  uint64_t period_ns = 10'000'000;
  Value settings;                                 // as given; null = defaults
  std::map<std::string, exec::ModuleCost> costs;  // profiled, by module; may be empty
  std::string costs_origin;                       // in words
};

// Serialised by the caller, like the engine. Nothing here knows of threads or of wall-clock time
// but for measuring its own steps.
class ControlLoop {
 public:
  explicit ControlLoop(Engine& engine);

  [[nodiscard]] bool is_on() const { return controller_ != nullptr; }
  [[nodiscard]] const ControlChoice& choice() const { return choice_; }

  // Throws ConfigError when this choice cannot be; changes nothing.
  void check(const ControlChoice& choice) const;
  // From the next step on. What the controller before had set as age limits goes back to what the
  // pipeline says; with `none` triggers do too.
  void choose(ControlChoice choice);
  // The engine has another graph: model, controller and estimates are made for it.
  void graph_changed();
  // Counts of kept promises begin anew.
  void slo_changed(const std::string& flow);

  // One period. What goes wrong is noted, the last good decision stays in force.
  void step();
  [[nodiscard]] uint64_t last_step_ns() const { return last_step_ns_; }

  // `flows` is what `show flows` tells: percentiles are taken from there.
  [[nodiscard]] Value show_slo(const Value& flows) const;
  [[nodiscard]] Value show_control() const;
  // Of one flow or module, or (empty) of all. Throws ConfigError for an unknown name.
  [[nodiscard]] Value explain(const std::string& name) const;

 private:
  struct Original {
    uint32_t trigger_pkts;
    uint64_t age_limit_ns;
  };

  [[nodiscard]] slo::Settings settings_of(const ControlChoice& choice) const;
  void make_model();
  void make_controller();
  void make_estimator();
  void remember_originals();
  void restore(bool with_triggers);
  void begin();
  void step_once();
  [[nodiscard]] Value flow_row(uint32_t flow) const;
  [[nodiscard]] Value module_row(uint32_t module) const;
  [[nodiscard]] std::string why_no_buffer(uint32_t module) const;
  [[nodiscard]] Value drifting() const;

  Engine& engine_;
  ControlChoice choice_;
  exec::ControlModel model_;
  slo::Settings settings_;
  std::unique_ptr<slo::Controller> controller_;  // into model_
  std::unique_ptr<slo::CostEstimator> estimator_;
  std::map<std::string, exec::ModuleCost> priors_;
  std::map<std::string, Original> originals_;  // before any controller
  std::set<std::string> touched_;              // modules that a controller has changed
  exec::PeriodSnapshot period_;
  exec::Decision decision_;
  ControlLog log_;
  uint64_t last_step_ns_ = 0;
};

}  // namespace batchplane::app
