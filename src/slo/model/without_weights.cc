// SPDX-License-Identifier: BSD-3-Clause
#include "slo/model/without_weights.h"

#include <algorithm>
#include <utility>

#include "slo/model/weights.h"

namespace batchplane::slo {
namespace {

class WithoutWeights final : public Controller {
 public:
  WithoutWeights(std::unique_ptr<Controller> controller, const Model& model)
      : controller_(std::move(controller)), model_(model) {}

  [[nodiscard]] const std::string& name() const override { return controller_->name(); }
  [[nodiscard]] Explanation explain() const override { return controller_->explain(); }

  Decision step(const Snapshot& snapshot) override {
    Decision decision = controller_->step(snapshot);
    if (!std::exchange(is_first_, false)) return decision;
    for (const exec::ControlTask& task : model_.tasks) {
      if (!task.scheduling.is_weighted_fair()) continue;
      for (const uint32_t input : task.inputs) give_back(snapshot, task, input, decision);
    }
    for (uint32_t m = 0; m < model_.modules.size(); ++m) {
      if (!model_.modules[m].is_unit || snapshot.modules[m].pace_ns == 0) continue;
      change_of(decision, m, "no weights").pace_ns = 0;
    }
    return decision;
  }

 private:
  // An input with a buffer is a unit like any other.
  void give_back(const Snapshot& snapshot, const exec::ControlTask& task, uint32_t input,
                 Decision& decision) const {
    const uint32_t wanted = std::max(1U, task.scheduling.input_weight);
    if (model_.modules[input].has_buffer || snapshot.modules[input].weight == wanted) return;
    change_of(decision, input, "no weights").weight = wanted;
  }

  std::unique_ptr<Controller> controller_;
  const Model& model_;
  bool is_first_ = true;
};

}  // namespace

std::unique_ptr<Controller> without_weights(std::unique_ptr<Controller> controller,
                                            const Model& model) {
  const bool is_any = std::ranges::any_of(model.tasks, [](const exec::ControlTask& task) {
    return task.scheduling.is_weighted_fair();
  });
  if (!is_any) return controller;
  return std::make_unique<WithoutWeights>(std::move(controller), model);
}

}  // namespace batchplane::slo
