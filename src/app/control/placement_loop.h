// SPDX-License-Identifier: BSD-3-Clause
// placement_loop.h - once per period: observes stages and devices, runs the placer's step and applies its
// plan to the stages.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/value.h"
#include "core/engine/engine.h"
#include "offload/stage.h"
#include "placement/placer.h"

namespace batchplane::app {

// A pipeline's `placement`.
struct PlacementChoice {
  struct App {
    std::optional<placement::Policy> policy;
    double budget_ns = 0;  // 0: a share of the tightest SLO on its path
    double value = 1;
  };
  placement::Policy policy = placement::Policy::kPower;
  double watt_cap = 0;
  uint64_t period_ns = 100'000'000;
  double inline_share = 0.5;        // of a worker's time, for modules that run on it
  double inline_w = 0;              // power of a worker that is fully busy with them
  std::map<std::string, App> apps;  // by module
  // By module kind for the worker; by KIND@DEVICE for devices.
  std::map<std::string, placement::Law> laws;
  // Factor by which a batch takes longer beside another one, by module kinds; devices by name, or `inline`.
  struct Slowdown {
    std::string kind;
    std::string on;
    std::string beside;
    std::string on_other;
    double factor = 1;
    bool operator==(const Slowdown&) const = default;
  };
  std::vector<Slowdown> slowdown;
  std::string laws_origin;  // in words: who measured laws and slow-downs, and when
};

// Throws ConfigError.
[[nodiscard]] PlacementChoice placement_choice_from(const Value& given);
[[nodiscard]] Value saved_placement(const PlacementChoice& choice);
// For a problem's applications, whose modules are of these kinds: as Problem::slowdown; empty: unknown.
[[nodiscard]] std::vector<double> slowdown_of(const PlacementChoice& choice,
                                              const placement::Problem& problem,
                                              const std::vector<std::string>& kinds);

// Serialised by the caller, like the engine.
class PlacementLoop {
 public:
  explicit PlacementLoop(Engine& engine) : engine_(engine) {}

  [[nodiscard]] bool is_on() const { return choice_.has_value(); }
  // Throws ConfigError when a graph that is not running could not be placed this way.
  static void check(const Value& given, const Graph& graph);
  // For the running graph; null: stages stay as they are from now on. `given` has passed check().
  void choose(const Value& given);
  // Live edits of policies and caps: {policy, watt_cap, module, ...}. Throws ConfigError.
  void edit(const Value& args);
  // Call every few milliseconds: steps at the end of a period, and at once when a device appeared or
  // disappeared, a policy was edited, or packets pile up in front of a stage.
  void step(uint64_t now_ns);

  [[nodiscard]] Value show() const;
  // Null: nothing is placed.
  [[nodiscard]] const placement::Placer* placer() const { return placer_.get(); }
  // In the form of a pipeline's `placement`.
  [[nodiscard]] Value saved() const;

 private:
  // A stage as an application of the placement problem.
  struct Placed {
    offload::Stage* stage = nullptr;
    std::vector<uint32_t> device_of_place;
    uint64_t put_pkts = 0;  // as of the last step
    uint64_t bytes = 0;
    uint64_t pkts = 0;
    std::array<uint64_t, offload::kMaxPlaces> jobs{};
    std::array<uint64_t, offload::kMaxPlaces> done_pkts{};
    std::array<uint64_t, offload::kMaxPlaces> run_ns{};
  };

  void build(const PlacementChoice& choice);
  [[nodiscard]] uint32_t device_index(placement::Problem& problem, const offload::Device* device,
                                      double inline_w);
  [[nodiscard]] double budget_of(const std::string& module, const PlacementChoice& choice) const;
  [[nodiscard]] uint64_t offered_pkts(const Placed& placed) const;
  [[nodiscard]] bool has_event(uint64_t now_ns);
  [[nodiscard]] placement::Seen see(size_t app, double period_s);
  void put_into_force(const placement::Decision& decision);

  Engine& engine_;
  std::optional<PlacementChoice> choice_;
  std::unique_ptr<placement::Placer> placer_;
  std::vector<Placed> stages_;
  std::vector<const offload::Device*> devices_;  // null: workers
  bool is_edited_ = false;
  uint64_t last_ns_ = 0;
  uint64_t n_steps_ = 0;
  uint64_t n_changes_ = 0;
  double step_us_ = 0;  // of the last step
};

}  // namespace batchplane::app
