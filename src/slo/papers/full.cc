// SPDX-License-Identifier: BSD-3-Clause
// full.cc - the paper's projected-gradient controller.
#include <algorithm>

#include "slo/papers/baseline.h"
#include "slo/papers/controllers.h"
#include "slo/papers/descend.h"
#include "slo/papers/phases.h"
#include "slo/papers/verdict.h"

namespace batchplane::slo {
namespace {

// Time a packet may spend in one task: its SLO, divided equally among the tasks on its path.
double task_budget_ns(const Topology& topology, const PeriodState& state, uint32_t flow) {
  return state.flows[flow].slo_ns / static_cast<double>(topology.tasks_on[flow].size());
}

// Service time of the modules from a buffer on, within the same task.
double service_behind_ns(const Model& model, const Snapshot& snapshot, uint32_t flow,
                         uint32_t head) {
  const std::vector<uint32_t>& path = model.flows[flow].path;
  std::vector<uint32_t> behind;
  for (auto at = std::ranges::find(path, head); at != path.end(); ++at) {
    if (model.modules[*at].task == model.modules[head].task) behind.push_back(*at);
  }
  return service_ns(snapshot, behind);
}

class Full final : public Baseline {
 public:
  Full(std::string name, const Model& model, const Settings& settings, const FullOptions& options)
      : Baseline(std::move(name), model, settings), options_(options) {}

 private:
  MeasureOptions next_options() override {
    ++n_steps_;
    return {.keeps_margin = !options_.is_original,
            .cost_growth = options_.is_original ? static_cast<double>(n_steps_) : 1.0};
  }

  void decide(const Snapshot& /*snapshot*/, PeriodState& state) override {
    if (options_.keeps_triggers) {
      // Also those of buffers that the measurement finds not worth having.
      for (SegmentPeriod& segment : state.segments) segment.trigger_pkts = segment.old_trigger_pkts;
      return;
    }
    push(topology(), settings(), state);
    recover(topology(), state);
    pull(topology(), settings(), PullTo::kMin, state);
    descend(topology(), settings(), state, options_.is_original);
  }

  [[nodiscard]] bool chooses_ages() const override { return options_.has_age_limits; }

  // The tightest budget of the flows through a segment.
  [[nodiscard]] double min_budget_ns(const PeriodState& state, uint32_t segment) const {
    double min_ns = kNoLimit;
    for (const uint32_t f : topology().flows_through[segment]) {
      if (state.flows[f].has_slo()) {
        min_ns = std::min(min_ns, task_budget_ns(topology(), state, f));
      }
    }
    return min_ns;
  }

  // Service time of releases that may be due together with a segment's release and go first:
  // buffers of its task whose flows are as tight.
  [[nodiscard]] double expiring_together_ns(const PeriodState& state, uint32_t segment) const {
    const Model& model = topology().model;
    const double mine_ns = min_budget_ns(state, segment);
    double sum_ns = 0;
    for (uint32_t s = 0; s < topology().segments.size(); ++s) {
      const SegmentPeriod& other = state.segments[s];
      const bool is_near = model.modules[topology().segments[s].head].task ==
                           model.modules[topology().segments[segment].head].task;
      if (s == segment || !is_near || other.trigger_pkts == 0) continue;
      if (min_budget_ns(state, s) > mine_ns) continue;
      sum_ns += other.cost_per_batch_ns + other.cost_per_pkt_ns * other.trigger_pkts;
    }
    return sum_ns;
  }

  // A packet released at this age still has time for its service. Before the release one run may
  // have to end, and other releases due then may go first.
  [[nodiscard]] uint64_t age_limit_ns(const Snapshot& snapshot, const PeriodState& state,
                                      uint32_t segment) const override {
    if (!options_.has_age_limits) return exec::kStrandingAge;
    const Model& model = topology().model;
    const uint32_t head = topology().segments[segment].head;
    const uint32_t task = model.modules[head].task;
    const auto run_ns = static_cast<double>(snapshot.tasks[task].run_p99_ns);
    double min_ns = kNoLimit;
    for (const uint32_t f : topology().flows_through[segment]) {
      if (!state.flows[f].has_slo()) continue;
      min_ns = std::min(min_ns, task_budget_ns(topology(), state, f) -
                                    service_behind_ns(model, snapshot, f, head) - run_ns);
    }
    min_ns -= expiring_together_ns(state, segment);
    if (min_ns >= static_cast<double>(settings().stranding_limit_ns)) return exec::kStrandingAge;
    return static_cast<uint64_t>(std::max(1.0, min_ns));
  }

  FullOptions options_;
  uint64_t n_steps_ = 0;
};

}  // namespace

std::unique_ptr<Controller> make_full(std::string name, const Model& model,
                                      const Settings& settings, const FullOptions& options) {
  return std::make_unique<Full>(std::move(name), model, settings, options);
}

}  // namespace batchplane::slo
