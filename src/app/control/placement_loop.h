// SPDX-License-Identifier: BSD-3-Clause
// placement_loop.h - period by period: what stages and devices did, the placer's step, its plan into the stages.
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

// What a pipeline's `placement` asks for.
struct PlacementChoice {
  struct App {
    std::optional<placement::Policy> policy;
    double budget_ns = 0;  // 0: a share of the tightest promise on its way
    double value = 1;
  };
  placement::Policy policy = placement::Policy::kPower;
  double watt_cap = 0;
  uint64_t period_ns = 100'000'000;
  double inline_share = 0.5;        // of a worker's time, that modules which run on it may take
  double inline_w = 0;              // of a worker that is wholly busy with them
  std::map<std::string, App> apps;  // by module
  // By kind of module on a worker; as KIND@DEVICE there.
  std::map<std::string, placement::Law> laws;
  // How many times longer a batch takes beside another, by kinds of modules; devices by name, or `inline`.
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
// Of a problem's applications, which are modules of these kinds: as Problem::slowdown; empty: nobody knows.
[[nodiscard]] std::vector<double> slowdown_of(const PlacementChoice& choice,
                                              const placement::Problem& problem,
                                              const std::vector<std::string>& kinds);

// Serialised by the caller, like the engine.
class PlacementLoop {
 public:
  explicit PlacementLoop(Engine& engine) : engine_(engine) {}

  [[nodiscard]] bool is_on() const { return choice_.has_value(); }
  // Throws ConfigError when a graph that does not run could not be placed so.
  static void check(const Value& given, const Graph& graph);
  // Of the graph that runs; null: stages stay as they are from now on. check() has found it good.
  void choose(const Value& given);
  // Policies and caps, live: {policy, watt_cap, module, ...}. Throws ConfigError.
  void edit(const Value& args);
  // Every few milliseconds: steps at the end of a period, and at once when a device went or came, a policy was
  // edited, or packets pile up in front of a stage.
  void step(uint64_t now_ns);

  [[nodiscard]] Value show() const;
  // Null: nothing is placed.
  [[nodiscard]] const placement::Placer* placer() const { return placer_.get(); }
  // As a pipeline says it.
  [[nodiscard]] Value saved() const;

 private:
  // A stage as an application of the problem.
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
  double step_us_ = 0;  // the last one
};

}  // namespace batchplane::app
