// SPDX-License-Identifier: BSD-3-Clause
// wfq.cc - the optimum over batch sizes q (optimal.h), read as an optimum over batch rates y = rho
// / q. A unit gets a turn at pace 1 / y, when its queue holds the intended batch, and a weight in
// proportion to the work of these turns.
#include "slo/optimal/wfq.h"

#include <algorithm>
#include <cmath>

#include "slo/model/weights.h"
#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace {

// Relative change of a pace; smaller ones are not worth a command to the worker.
constexpr double kPaceDeadBand = 0.05;

class Wfq final : public Controller {
 public:
  Wfq(const Model& model, const Settings& settings)
      : model_(model),
        optimal_(model, settings),
        segments_(optimal_.view().segments()),
        tasks_(scheduled_tasks(model, segments_, name_)),
        is_scheduled_(segments_.size(), false) {
    for (const ScheduledTask& task : tasks_) {
      for (const uint32_t s : task.heads) is_scheduled_[s] = true;
    }
  }

  [[nodiscard]] const std::string& name() const override { return name_; }

  Decision step(const Snapshot& snapshot) override {
    seen_ = snapshot;
    // A pace stands for the trigger it came from: the optimum sees that trigger in force.
    for (uint32_t s = 0; s < segments_.size(); ++s) {
      if (is_scheduled_[s] && has_stepped_) {
        seen_.modules[segments_[s].head].trigger_pkts = static_cast<uint32_t>(optimal_.chosen()[s]);
      }
    }
    Decision decision = optimal_.step(seen_);
    has_stepped_ = true;
    for (const ScheduledTask& task : tasks_) {
      for (const uint32_t s : task.heads) pace(snapshot, s, decision);
      const std::vector<uint32_t> weights = weights_of(demands(task));
      change_weights(snapshot, model_, segments_, task, weights, decision);
    }
    return decision;
  }

  [[nodiscard]] Explanation explain() const override { return optimal_.explain(); }

 private:
  // By what arrived and not by what was served: otherwise a queue that overflows would lose weight,
  // and overflow even more.
  [[nodiscard]] double arrival_rate(const ProgramModule& module) const {
    return module.share * optimal_.view().program().tasks[module.task].rate_pkts_per_ns;
  }

  // Bypassed heads take packets as they come.
  void pace(const Snapshot& snapshot, uint32_t s, Decision& decision) const {
    const uint32_t module = segments_[s].head;
    const exec::ModulePeriod& period = snapshot.modules[module];
    const double q = optimal_.chosen()[s];
    const double rate = arrival_rate(optimal_.view().program().modules[s]);
    uint64_t pace_ns = 0;
    if (q > 0 && rate > 0) pace_ns = static_cast<uint64_t>(std::llround(q / rate));
    const auto it = std::ranges::find(decision.changes, module, &exec::BufferChange::module);
    if (it != decision.changes.end()) it->trigger_pkts = 0;
    if (period.trigger_pkts != 0) change_of(decision, module, "pace").trigger_pkts = 0;
    const auto wanted = static_cast<double>(pace_ns);
    const auto found = static_cast<double>(period.pace_ns);
    if (std::abs(wanted - found) <= kPaceDeadBand * wanted) return;
    change_of(decision, module, "pace").pace_ns = pace_ns;
  }

  // Demand of each head, then of the input: core time per ns, or turns per ns.
  [[nodiscard]] std::vector<double> demands(const ScheduledTask& task) const {
    const Program& program = optimal_.view().program();
    const bool by_count = model_.tasks[task.task].scheduling.by == exec::ScheduleBy::kCount;
    std::vector<double> demands;
    for (const uint32_t s : task.heads) {
      const ProgramModule& module = program.modules[s];
      const double batch = batch_pkts(module, optimal_.chosen()[s]);
      const double turn_ns = module.service_ns(batch);
      demands.push_back(arrival_rate(module) / batch * (by_count ? 1 : turn_ns));
    }
    const ProgramTask& polled = program.tasks[task.task];
    const double polls = polled.rate_pkts_per_ns / std::max(1.0, polled.run_pkts);
    demands.push_back(polls * (by_count ? 1 : polled.other_run_ns));
    return demands;
  }

  std::string name_ = "wfq";
  const Model& model_;
  Optimal optimal_;
  const std::vector<Segment>& segments_;
  std::vector<ScheduledTask> tasks_;
  std::vector<bool> is_scheduled_;  // by segment
  Snapshot seen_;
  bool has_stepped_ = false;
};

}  // namespace

std::unique_ptr<Controller> make_wfq(const Model& model, const Settings& settings) {
  return std::make_unique<Wfq>(model, settings);
}

}  // namespace batchplane::slo
