// SPDX-License-Identifier: BSD-3-Clause
// fixed.cc - the controllers with constant triggers: null (no buffers), max (full batches),
// fixed(k).
#include "slo/papers/controllers.h"
#include "slo/papers/onlooker.h"

namespace batchplane::slo {
namespace {

class Fixed final : public Controller {
 public:
  Fixed(std::string name, const Model& model, const Settings& settings, uint32_t trigger_pkts)
      : name_(std::move(name)),
        model_(model),
        trigger_pkts_(trigger_pkts),
        onlooker_(model, settings) {}

  [[nodiscard]] const std::string& name() const override { return name_; }

  // The papers' baselines have no age limit: only the engine's own stranding limit applies.
  Decision step(const Snapshot& snapshot) override {
    onlooker_.see(snapshot);
    Decision decision;
    for (uint32_t m = 0; m < model_.modules.size(); ++m) {
      if (!model_.modules[m].is_controlled) continue;
      const exec::ModulePeriod& period = snapshot.modules[m];
      // The original's stand-in for NFVnice: all units have the same weight.
      const bool is_unit_other =
          model_.modules[m].is_unit && (period.weight != 1 || period.pace_ns != 0);
      if (period.trigger_pkts == trigger_pkts_ && !is_unit_other) continue;
      decision.changes.push_back({m, trigger_pkts_, exec::kStrandingAge, "fixed"});
      if (!model_.modules[m].is_unit) continue;
      decision.changes.back().weight = 1;
      decision.changes.back().pace_ns = 0;
    }
    return decision;
  }

  [[nodiscard]] Explanation explain() const override {
    return onlooker_.explain("the same everywhere, whatever happens");
  }

 private:
  std::string name_;
  const Model& model_;
  uint32_t trigger_pkts_;
  Onlooker onlooker_;
};

}  // namespace

std::unique_ptr<Controller> make_fixed(std::string name, const Model& model,
                                       const Settings& settings, uint32_t trigger_pkts) {
  return std::make_unique<Fixed>(std::move(name), model, settings, trigger_pkts);
}

}  // namespace batchplane::slo
