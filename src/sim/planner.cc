// SPDX-License-Identifier: BSD-3-Clause
#include "sim/planner.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/nearest_word.h"
#include "exec/promise.h"
#include "sim/planner_links.h"
#include "sim/simulation.h"
#include "slo/controllers.h"
#include "slo/estimate/program_view.h"

namespace batchplane::sim {
namespace {

constexpr uint32_t kPolls = 700;         // of each input per period
constexpr uint32_t kLastPolls = 12'000;  // ages and triggers may drift for 100'000 packets
constexpr uint32_t kMinSteps = 12;       // ratios settle by a quarter per period
constexpr uint32_t kMaxSteps = 40;
constexpr uint32_t kQuietSteps = 4;  // without a changed trigger: the plan has settled

// Rates below full load: a link carries less than the core.
struct Feed {
  double rate_pps = 0;
  std::vector<double> pps_of_source;
};

class Planning {
 public:
  // Without a feed inputs are never empty.
  Planning(const Spec& spec, const PlanRequest& request, const Feed* feed)
      : spec_(spec),
        request_(request),
        feed_(feed),
        simulation_(spec),
        model_(simulation_.model()) {
    settings_ = request.settings;
    settings_.releases_when_idle = !spec.pipeline.engine.is_idle_hold;
    simulation_.set_percentile(settings_.percentile);
    if (feed == nullptr) {
      simulation_.saturate();
    } else {
      simulation_.feed_evenly(feed->pps_of_source);
    }
    links_.emplace(spec, simulation_);
    if (request.merged) {
      simulation_.merge_branch(simulation_.graph().at(request.merged->first),
                               request.merged->second);
    }
    read_slos();
    set_budgets();
  }

  void settle() {
    controller_ = slo::make_controller(request_.controller, model_, settings_);
    uint32_t quiet = 0;
    while (steps_ < kMaxSteps && !is_settled_) {
      run_period(kPolls);
      decision_ = controller_->step(period_);
      ++steps_;
      quiet = apply() ? 0 : quiet + 1;
      is_settled_ = quiet >= kQuietSteps && steps_ >= kMinSteps;
    }
    run_period(kLastPolls);
  }
  [[nodiscard]] double rate_pps() const {
    return static_cast<double>(in_pkts_) * 1e9 / static_cast<double>(period_.period_ns);
  }
  // What the links carry of the last period's packets.
  [[nodiscard]] Feed feed_of_links() const {
    Feed feed{.rate_pps = links_->most_pps(in_pkts_)};
    uint64_t sent_pkts = 0;
    for (const auto& source : simulation_.graph().sources) sent_pkts += sent_pkts_of(*source);
    for (const auto& source : simulation_.graph().sources) {
      feed.pps_of_source.push_back(feed.rate_pps * share_of(sent_pkts_of(*source), sent_pkts));
    }
    return feed;
  }

  // `core_pps`: the rate of full load.
  Value told(double core_pps) {
    slo::ProgramView view(model_, settings_);
    view.update(period_);
    slo::evaluate(view.program(), view.current(), at_);
    return Dict{{"controller", request_.controller},
                {"rate_pps", rate_pps()},
                {"core_pps", core_pps},
                {"limited_by", feed_ == nullptr ? "core" : "link"},
                {"links", links_->value(in_pkts_, rate_pps())},
                {"model_pps", decision_.predicted_pps},
                {"steps", steps_},
                {"is_settled", is_settled_},
                {"aged_share", all_aged_share()},
                {"workers", workers_value()},
                {"tasks", tasks_value(view)},
                {"flows", flows_value(view)},
                {"modules", modules_value(view, controller_->explain())}};
  }

 private:
  void read_slos() {
    for (const FlowSpec& flow : spec_.pipeline.flows) slo_ns_.push_back(flow.delay_slo_ns);
    std::vector<std::string> names;
    for (const exec::ControlFlow& flow : model_.flows) names.push_back(flow.name);
    for (const auto& [name, ns] : request_.slo_ns) {
      const auto it = std::ranges::find(names, name);
      if (it == names.end()) {
        const std::string near = nearest_word(name, names);
        throw ConfigError("no flow '" + name + "'", "slo",
                          near.empty() ? "" : "did you mean '" + near + "'?");
      }
      slo_ns_[static_cast<size_t>(it - names.begin())] = ns;
    }
  }

  // Of each flow's SLO, what its link may take is not the graph's.
  void set_budgets() {
    for (uint32_t f = 0; f < slo_ns_.size(); ++f) {
      const auto bound_ns = static_cast<uint64_t>(links_->wait_of(f).bound_ns);
      const uint64_t left_ns = slo_ns_[f] > bound_ns ? slo_ns_[f] - bound_ns : 1;
      simulation_.set_slo(model_.flows[f].name, slo_ns_[f] == 0 ? 0 : left_ns);
    }
  }

  static uint64_t sent_pkts_of(const Source& source) {
    uint64_t pkts = 0;
    for (const TrafficFlowCounts& flow : source.counts()) pkts += flow.sent_pkts;
    return pkts;
  }

  void run_period(uint32_t polls) {
    links_->begin_period();
    if (feed_ == nullptr) {
      simulation_.run_rounds(polls);
    } else {
      const double pkts = static_cast<double>(polls) * spec_.pipeline.engine.batch_pkts;
      simulation_.run_until(simulation_.now_ns() +
                            static_cast<uint64_t>(pkts * 1e9 / feed_->rate_pps));
    }
    period_ = simulation_.period();
    if (links_->look()) set_budgets();
    in_pkts_ = 0;
    for (uint32_t m = 0; m < model_.modules.size(); ++m) {
      if (model_.modules[m].has_buffer) continue;
      in_pkts_ += period_.modules[m].pkts;
      period_.modules[m].cost = simulation_.graph().modules[m]->cost;
    }
  }

  // True when a trigger changed.
  bool apply() {
    simulation_.apply(decision_);
    return std::ranges::any_of(decision_.changes, [&](const exec::BufferChange& change) {
      return change.trigger_pkts != exec::kKeepTrigger &&
             period_.modules[change.module].trigger_pkts != change.trigger_pkts;
    });
  }

  List workers_value() const {
    List rows;
    for (uint32_t w = 0; w < simulation_.graph().worker_names.size(); ++w) {
      const auto task = std::ranges::find(model_.tasks, w, &exec::ControlTask::worker);
      const uint64_t busy_ns =
          task == model_.tasks.end()
              ? 0
              : period_.tasks[static_cast<size_t>(task - model_.tasks.begin())].busy_ns;
      rows.push_back(Dict{{"name", simulation_.graph().worker_names[w]},
                          {"load", share_of(busy_ns, period_.period_ns)}});
    }
    return rows;
  }

  List tasks_value(const slo::ProgramView& view) const {
    List rows;
    for (size_t t = 0; t < model_.tasks.size(); ++t) {
      const slo::ProgramTask& task = view.program().tasks[t];
      rows.push_back(Dict{{"worker", simulation_.graph().worker_names[model_.tasks[t].worker]},
                          {"run_pkts", task.run_pkts},
                          {"other_run_ns", task.other_run_ns},
                          {"is_saturated", task.is_saturated},
                          {"pkt_ns", at_.task_pkt_ns[t]},
                          {"turnaround_ns", at_.turnaround_ns[t]}});
    }
    return rows;
  }

  List flows_value(const slo::ProgramView& view) const {
    List rows;
    for (uint32_t f = 0; f < model_.flows.size(); ++f) {
      const slo::ProgramFlow& flow = view.program().flows[f];
      double turnaround_ns = 0;
      double fill_ns = 0;
      double service_ns = 0;
      for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
        turnaround_ns += at_.turnaround_ns[view.program().flow_tasks[i]];
      }
      for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
        fill_ns += at_.fill_ns[view.program().flow_modules[i]];
        service_ns += at_.service_ns[view.program().flow_modules[i]];
      }
      const PlannedLinks::Wait wait = links_->wait_of(f);
      const auto link_ns = static_cast<uint64_t>(wait.bound_ns);
      const uint64_t core_ns = period_.flows[f].delay_ns;
      Dict row{{"flow", model_.flows[f].name},
               {"slo_ns", slo_ns_[f]},
               {"delay_ns", turnaround_ns + fill_ns + service_ns + wait.bound_ns},
               {"turnaround_ns", turnaround_ns},
               {"fill_ns", fill_ns},
               {"service_ns", service_ns},
               {"link", wait.links.empty() ? Value() : Value(wait.links)},
               {"link_ns", wait.has_bound ? Value(link_ns) : Value()},
               {"is_beyond_share", links_->is_beyond_share(f, in_pkts_, rate_pps())},
               {"min_ns", view.min_service_ns(f) + wait.bound_ns},
               {"measured_ns", core_ns == 0 ? 0 : core_ns + link_ns},
               {"late_share", share_of(period_.flows[f].late_pkts, period_.flows[f].pkts)},
               {"is_broken", exec::is_slo_broken(period_.flows[f], settings_.percentile)},
               {"share", share_of(period_.flows[f].pkts, in_pkts_)}};
      if (f < decision_.flows.size()) {
        const exec::FlowVerdict& verdict = decision_.flows[f];
        row["state"] = exec::kFlowStateNames[static_cast<uint32_t>(verdict.state)];
        row["multiplier_pps_per_us"] = verdict.multiplier_pps_per_us;
        row["hint"] = verdict.hint;
      }
      rows.emplace_back(std::move(row));
    }
    return rows;
  }

  struct Releases {
    uint64_t aged = 0;
    uint64_t all = 0;
  };
  static void add_releases(const exec::ModulePeriod& period, Releases& sum) {
    sum.aged += period.causes[static_cast<uint32_t>(exec::Cause::kAge)].firings;
    for (const exec::CauseCount& cause : period.causes) sum.all += cause.firings;
  }
  // Share of a buffer's releases that its age limit caused.
  static double aged_share(const exec::ModulePeriod& period) {
    Releases sum;
    add_releases(period, sum);
    return share_of(sum.aged, sum.all);
  }
  double all_aged_share() const {
    Releases sum;
    for (const exec::ModulePeriod& period : period_.modules) add_releases(period, sum);
    return share_of(sum.aged, sum.all);
  }

  List modules_value(const slo::ProgramView& view, const slo::Explanation& explained) const {
    const uint64_t stranding_limit_ns = spec_.pipeline.engine.stranding_limit_ns;
    List rows;
    for (uint32_t m = 0; m < model_.modules.size(); ++m) {
      const exec::ModulePeriod& period = period_.modules[m];
      Dict row{
          {"module", model_.modules[m].name},
          {"kind", simulation_.graph().modules[m]->kind},
          {"is_controlled", model_.modules[m].is_controlled},
          {"share", share_of(period.pkts, in_pkts_)},
          {"batch_pkts", share_of(period.pkts, period.batches)},
          {"arriving_pkts", share_of(period.arrived_pkts, period.arrived_batches)},
          {"trigger_pkts", period.trigger_pkts},
          {"age_limit_ns", period.age_limit_ns == stranding_limit_ns ? 0 : period.age_limit_ns},
          {"aged_share", aged_share(period)}};
      const uint32_t head = view.head_of(m);
      if (head != slo::kNoSegment) {
        row["cost_per_batch_ns"] = view.program().modules[head].cost_per_batch_ns;
        row["cost_per_pkt_ns"] = view.program().modules[head].cost_per_pkt_ns;
      }
      const auto own = std::ranges::find(explained.modules, m, &slo::ModuleExplanation::module);
      if (own != explained.modules.end()) {
        const bool is_bound = own->binding_flow != slo::ModuleExplanation::kNoFlow;
        row["why"] = own->why;
        row["binding_flow"] = is_bound ? Value(model_.flows[own->binding_flow].name) : Value();
        row["multiplier_pps_per_us"] = own->multiplier_pps_per_us;
      }
      rows.emplace_back(std::move(row));
    }
    return rows;
  }

  const Spec& spec_;
  const PlanRequest& request_;
  const Feed* feed_;
  slo::Settings settings_;
  Simulation simulation_;
  const exec::ControlModel& model_;
  std::optional<PlannedLinks> links_;
  std::unique_ptr<slo::Controller> controller_;
  std::vector<uint64_t> slo_ns_;  // by flow
  exec::PeriodSnapshot period_;
  exec::Decision decision_;
  slo::Evaluation at_;
  uint64_t in_pkts_ = 0;  // of that period
  uint32_t steps_ = 0;
  bool is_settled_ = false;
};

}  // namespace

Value plan(const Spec& spec, const PlanRequest& request) {
  Planning full(spec, request, nullptr);
  full.settle();
  const Feed feed = full.feed_of_links();
  if (feed.rate_pps >= full.rate_pps()) return full.told(full.rate_pps());
  // Below full load batches fill more slowly: the links' rate has triggers and delays of its own.
  Planning at_links(spec, request, &feed);
  at_links.settle();
  return at_links.told(full.rate_pps());
}

}  // namespace batchplane::sim
