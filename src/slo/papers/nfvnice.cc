// SPDX-License-Identifier: BSD-3-Clause
// nfvnice.cc - NFVnice's weights: rate-cost proportional shares.
#include "slo/model/weights.h"
#include "slo/papers/controllers.h"
#include "slo/papers/onlooker.h"

namespace batchplane::slo {
namespace {

// Weight of the newest period in the moving mean of a unit's demand.
constexpr double kNewest = 0.5;

class Nfvnice final : public Controller {
 public:
  Nfvnice(const Model& model, const Settings& settings)
      : model_(model),
        segments_(segments_of(model)),
        tasks_(scheduled_tasks(model, segments_, name_)),
        demand_(segments_.size(), -1),
        input_demand_(model.tasks.size(), -1),
        onlooker_(model, settings) {}

  [[nodiscard]] const std::string& name() const override { return name_; }

  Decision step(const Snapshot& snapshot) override {
    onlooker_.see(snapshot);
    Decision decision;
    for (const ScheduledTask& task : tasks_) {
      std::vector<double> demands;
      for (const uint32_t s : task.heads) demands.push_back(update(snapshot, s));
      double& input = input_demand_[task.task];
      follow(input, input_work_ns(snapshot, model_, segments_, task.task));
      demands.push_back(input);
      const std::vector<uint32_t> weights = weights_of(demands);
      change_weights(snapshot, model_, segments_, task, weights, decision);
      for (const uint32_t s : task.heads) clear_trigger(snapshot, segments_[s].head, decision);
    }
    return decision;
  }

  [[nodiscard]] Explanation explain() const override {
    return onlooker_.explain("no triggers: weights by demand");
  }

 private:
  static void follow(double& value, double measured) {
    value = value < 0 ? measured : kNewest * measured + (1 - kNewest) * value;
  }

  // Arrivals, served or not, times the cost of a packet in the batches that are served.
  double update(const Snapshot& snapshot, uint32_t s) {
    const exec::ModulePeriod& head = snapshot.modules[segments_[s].head];
    double per_pkt_ns = cost_line(head).ns(1);
    if (head.pkts != 0) {
      per_pkt_ns = segment_work_ns(snapshot, segments_[s]) / static_cast<double>(head.pkts);
    }
    follow(demand_[s], static_cast<double>(head.arrived_pkts) * per_pkt_ns);
    return demand_[s];
  }

  // Clears the triggers that another controller left: this one sets none.
  static void clear_trigger(const Snapshot& snapshot, uint32_t module, Decision& decision) {
    const exec::ModulePeriod& period = snapshot.modules[module];
    if (period.trigger_pkts == 0 && period.pace_ns == 0) return;
    exec::BufferChange& change = change_of(decision, module, "fixed");
    change.trigger_pkts = 0;
    change.age_limit_ns = exec::kStrandingAge;
    change.pace_ns = 0;
  }

  std::string name_ = "nfvnice";
  const Model& model_;
  std::vector<Segment> segments_;
  std::vector<ScheduledTask> tasks_;
  std::vector<double> demand_;        // by segment, ns per period; negative = not known yet
  std::vector<double> input_demand_;  // by task
  Onlooker onlooker_;
};

}  // namespace

std::unique_ptr<Controller> make_nfvnice(const Model& model, const Settings& settings) {
  return std::make_unique<Nfvnice>(model, settings);
}

}  // namespace batchplane::slo
