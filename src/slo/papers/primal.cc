// SPDX-License-Identifier: BSD-3-Clause
// primal.cc - the multicore paper's controller: `full` in each task, and a master of their budgets.
#include <algorithm>

#include "slo/papers/baseline.h"
#include "slo/papers/controllers.h"
#include "slo/papers/descend.h"
#include "slo/papers/phases.h"

namespace batchplane::slo {
namespace {

// The pipeline as one task sees it: its own buffers, and the part of each flow that crosses it.
struct Part {
  Part(const Model& whole, uint32_t task, const std::vector<uint32_t>& head_segment)
      : model(of_task(whole, task)), topology(model) {
    for (const Segment& segment : topology.segments) segments.push_back(head_segment[segment.head]);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  static Model of_task(const Model& whole, uint32_t task) {
    Model part = whole;
    for (exec::ControlModule& module : part.modules) module.is_controlled &= module.task == task;
    for (exec::ControlFlow& flow : part.flows) {
      std::erase_if(flow.path, [&](uint32_t m) { return whole.modules[m].task != task; });
    }
    return part;
  }

  const Model model;
  const Topology topology;
  std::vector<uint32_t> segments;  // of the whole pipeline, by segment here
};

class Primal final : public Baseline {
 public:
  Primal(std::string name, const Model& model, const Settings& settings, BudgetStep step)
      : Baseline(std::move(name), model, settings),
        rule_{step, settings.budget_step, settings.budget_shift},
        flows_(model.flows.size()) {
    std::vector<uint32_t> head_segment(model.modules.size(), 0);
    for (uint32_t s = 0; s < topology().segments.size(); ++s) {
      head_segment[topology().segments[s].head] = s;
    }
    for (uint32_t t = 0; t < model.tasks.size(); ++t) {
      parts_.push_back(std::make_unique<Part>(model, t, head_segment));
    }
  }

 private:
  struct Budget {
    double slo_ns = 0;
    std::vector<LegState> legs;  // as Legs::of_flow; empty for a flow within one task
  };

  void decide(const Snapshot& snapshot, PeriodState& state) override {
    take_in(snapshot);
    ++n_steps_;
    if (n_steps_ % settings().master_periods == 0) run_master(snapshot);
    Snapshot seen = snapshot;
    for (uint32_t t = 0; t < parts_.size(); ++t) control_task(t, snapshot, seen, state);
  }

  void add_verdicts(std::vector<exec::FlowVerdict>& verdicts) const override {
    for (size_t f = 0; f < flows_.size(); ++f) {
      for (const LegState& leg : flows_[f].legs) {
        verdicts[f].legs.push_back({leg.budget_ns, leg.delay_ns, leg.load_per_ns * 1e3});
      }
    }
  }

  // Budgets start anew with a new SLO: prices learned for another one say little.
  void take_in(const Snapshot& snapshot) {
    const exec::Legs& legs = topology().model.legs;
    for (uint32_t f = 0; f < flows_.size(); ++f) {
      Budget& flow = flows_[f];
      const auto slo_ns = static_cast<double>(snapshot.flows[f].slo_ns);
      if (f >= legs.of_flow.size()) continue;  // a model without tasks
      const std::vector<uint32_t>& of_flow = legs.of_flow[f];
      if (slo_ns != flow.slo_ns) {
        flow = {slo_ns,
                slo_ns > 0 ? equal_budgets(slo_ns, of_flow.size()) : std::vector<LegState>()};
      }
      for (size_t i = 0; i < flow.legs.size(); ++i) {
        flow.legs[i].delay_ns = static_cast<double>(snapshot.legs[of_flow[i]].delay_ns);
      }
    }
  }

  void run_master(const Snapshot& snapshot) {
    double load = 0;
    for (const exec::TaskPeriod& task : snapshot.tasks) {
      const auto busy = static_cast<double>(task.busy_ns);
      load += busy > 0 ? busy / (busy + static_cast<double>(task.idle_ns)) : 0;
    }
    ++n_masters_;
    for (Budget& flow : flows_) {
      if (flow.legs.empty()) continue;
      divide_budget(flow.slo_ns, kLeader, load, n_masters_, rule_, flow.legs);
    }
  }

  // Runs `full` on the task's view: its part of each flow, with the flow's budget there as SLO.
  void control_task(uint32_t t, const Snapshot& snapshot, Snapshot& seen, PeriodState& state) {
    const exec::Legs& legs = topology().model.legs;
    const Part& part = *parts_[t];
    for (uint32_t f = 0; f < flows_.size(); ++f) {
      const LegState* const leg = leg_in(f, t);
      if (leg != nullptr) {
        seen.flows[f] =
            snapshot.legs[legs.of_flow[f][static_cast<size_t>(leg - flows_[f].legs.data())]];
        seen.flows[f].slo_ns = static_cast<uint64_t>(std::max(1.0, leg->budget_ns));
      } else if (!part.model.flows[f].path.empty()) {
        seen.flows[f] = snapshot.flows[f];
      } else {
        seen.flows[f] = {};
      }
    }
    PeriodState own = measure(part.topology, settings(), seen, {});
    push(part.topology, settings(), own);
    recover(part.topology, own);
    pull(part.topology, settings(), PullTo::kMin, own);
    descend(part.topology, settings(), own);
    for (uint32_t s = 0; s < own.segments.size(); ++s) {
      state.segments[part.segments[s]] = own.segments[s];
    }
    for (uint32_t f = 0; f < flows_.size(); ++f) {
      LegState* const leg = leg_in(f, t);
      if (leg != nullptr) leg->load_per_ns = price_of(part, own, f);
    }
  }

  // The price that the gradient step found. Where nothing is held yet for want of budget, the
  // saving of the first packet that a buffer would hold.
  [[nodiscard]] static double price_of(const Part& part, const PeriodState& own, uint32_t f) {
    double price = own.flows[f].load_per_ns;
    if (own.flows[f].is_frozen) return price;
    for (const uint32_t s : part.topology.segments_on[f]) {
      const SegmentPeriod& segment = own.segments[s];
      const bool is_waiting =
          segment.is_controllable && !segment.is_frozen && segment.trigger_pkts == 0 &&
          segment.rate_pkts_per_ns > 0 &&
          segment.min_pkts * segment.delay_per_pkt_ns >= own.flows[f].headroom_ns();
      if (!is_waiting || segment.arriving_pkts <= 0) continue;
      price = std::max(price, segment.cost_per_batch_ns * segment.rate_pkts_per_ns /
                                  (segment.arriving_pkts * segment.arriving_pkts) /
                                  segment.delay_per_pkt_ns);
    }
    return price;
  }

  [[nodiscard]] LegState* leg_in(uint32_t f, uint32_t task) {
    const exec::Legs& legs = topology().model.legs;
    for (size_t i = 0; i < flows_[f].legs.size(); ++i) {
      if (legs.all[legs.of_flow[f][i]].task == task) return &flows_[f].legs[i];
    }
    return nullptr;
  }

  // The first task on a flow's path, as in the paper's experiments.
  static constexpr size_t kLeader = 0;

  const BudgetRule rule_;
  std::vector<std::unique_ptr<Part>> parts_;  // by task
  std::vector<Budget> flows_;
  uint64_t n_steps_ = 0;
  uint64_t n_masters_ = 0;
};

}  // namespace

std::unique_ptr<Controller> make_primal(std::string name, const Model& model,
                                        const Settings& settings, BudgetStep step) {
  return std::make_unique<Primal>(std::move(name), model, settings, step);
}

}  // namespace batchplane::slo
