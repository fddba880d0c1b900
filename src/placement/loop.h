// SPDX-License-Identifier: BSD-3-Clause
// loop.h - once per period: observes stages and devices, runs the placer's step and applies its plan to the
// stages. The same for daemon and simulator.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/value.h"
#include "placement/choice.h"
#include "placement/placer.h"
#include "placement/world.h"

namespace batchplane::placement {

// Serialised by the caller, like its world.
class Loop {
 public:
  // `world` makes a view of what is there now; `clock` measures how long a step takes, in ns.
  Loop(std::function<std::unique_ptr<World>()> world, std::function<uint64_t()> clock)
      : make_world_(std::move(world)), clock_(std::move(clock)) {}

  [[nodiscard]] bool is_on() const { return choice_.has_value(); }
  // Throws ConfigError when that world could not be placed this way; `declared`: names of all devices.
  static void check(const Value& given, const World& world,
                    const std::vector<std::string>& declared);
  // For what is there now; null: stages stay as they are from now on. `given` has passed check().
  void choose(const Value& given);
  // Live edits of policies and caps: {policy, watt_cap, module, ...}. Throws ConfigError.
  void edit(const Value& args);
  // Call every few milliseconds: steps at the end of a period, and at once when a device appeared or
  // disappeared, a policy was edited, or packets pile up in front of a stage.
  void step(uint64_t now_ns);

  [[nodiscard]] Value show() const;
  // Null: nothing is placed.
  [[nodiscard]] const Placer* placer() const { return placer_.get(); }
  // In the form of a pipeline's `placement`.
  [[nodiscard]] Value saved() const;

 private:
  void build(const Choice& choice);
  [[nodiscard]] Law law_at(const StageInfo& stage, const StageInfo::Place& place,
                           const Choice& choice) const;
  [[nodiscard]] double budget_of(const std::string& module, const Choice& choice) const;
  [[nodiscard]] bool has_event(uint64_t now_ns);
  [[nodiscard]] Seen see(size_t app, double period_s);
  void put_into_force(const Decision& decision);

  const std::function<std::unique_ptr<World>()> make_world_;
  const std::function<uint64_t()> clock_;
  std::unique_ptr<World> world_;
  std::optional<Choice> choice_;
  std::unique_ptr<Placer> placer_;
  std::vector<StageCounts> before_;  // by stage, as of the last step
  bool is_edited_ = false;
  uint64_t last_ns_ = 0;
  uint64_t n_steps_ = 0;
  uint64_t n_changes_ = 0;
  double step_us_ = 0;  // of the last step
};

}  // namespace batchplane::placement
