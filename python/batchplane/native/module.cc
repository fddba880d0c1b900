// SPDX-License-Identifier: BSD-3-Clause
// module.cc - the simulator and the controllers for Python: `batchplane._native`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "base/cost_law_value.h"
#include "base/error.h"
#include "check.h"
#include "controller.h"
#include "egress.h"
#include "egress_weights.h"
#include "exec/poll_limits.h"
#include "flood.h"
#include "placement.h"
#include "plan.h"
#include "program.h"
#include "sim/simulation.h"
#include "slo/controllers.h"
#include "slo/cores/decompose.h"
#include "slo/model/cost_pool.h"
#include "slo/model/settings.h"
#include "telemetry/explanation.h"
#include "telemetry/telemetry.h"
#include "values.h"

namespace batchplane::native {
namespace {

// Owner: one Python object; the interpreter's lock is let go only inside run_until.
class PySimulation {
 public:
  explicit PySimulation(nb::dict spec) : simulation_(spec_from_python(spec)) {}

  [[nodiscard]] uint64_t now_ns() const { return simulation_.now_ns(); }
  [[nodiscard]] uint64_t unreplayed_pkts() const { return simulation_.unreplayed_pkts(); }
  void run_until(uint64_t until_ns) {
    const nb::gil_scoped_release unlocked;
    simulation_.run_until(until_ns);
  }
  void drain() {
    const nb::gil_scoped_release unlocked;
    simulation_.drain();
  }
  // Flows come with their histograms: 3 % wide buckets, see exec::FineBuckets.
  nb::object show(const std::string& what) {
    if (what != "flows") return to_python(simulation_.show(what));
    const exec::Snapshot now = simulation_.snapshot(true);
    const nb::object rows = to_python(telemetry::flows_value(now, simulation_.graph().flow_paths));
    for (size_t f = 0; f < now.flows.size(); ++f) {
      rows[f]["fine_buckets"] = now.flows[f].fine_buckets;
    }
    return rows;
  }
  [[nodiscard]] nb::dict model() const { return model_to_python(simulation_.model()); }

  void set_controller(const std::string& name, nb::dict settings) {
    slo::Settings made = slo::settings_from(to_value(settings));
    made.releases_when_idle = !simulation_.is_idle_hold();
    controller_ = slo::make_controller(name, simulation_.model(), made);
    controller_name_ = name;
    settings_ = made;
    // Costs of before hops were profiled have 0.
    const HopCosts& hop = simulation_.loop_costs().hop;
    decomposer_.emplace(made, hop.send_per_pkt_ns > 0 ? hop : slo::kUsualHop);
    simulation_.set_percentile(made.percentile);
  }
  // From now on controllers see estimates from sampled executions, as in a daemon, instead of the true
  // costs. They begin with these costs, and the true ones of modules that are not listed.
  void estimate_costs(nb::dict told) {
    const Value given = to_value(told);
    told_.clear();
    for (const auto& [module, cost] : given.as_dict()) {
      told_[module] = cost_law_from(cost, "costs." + module);
    }
    make_estimator();
  }
  std::pair<nb::dict, nb::dict> step() {
    exec::PeriodSnapshot period = simulation_.period();
    if (estimator_) estimator_->update(period);
    promises_.clear();
    for (const exec::FlowPeriod& flow : period.flows) promises_.push_back(flow.egress);
    exec::Decision decision;
    if (controller_ != nullptr) decision = controller_->step(period);
    if (decomposer_) decision.moves = decomposer_->step(simulation_.model(), period);
    std::pair<nb::dict, nb::dict> told{period_to_python(period), decision_to_python(decision)};
    put_into_force(decision);
    return told;
  }
  // How often parts have moved: each time the model is another.
  [[nodiscard]] uint64_t graph_number() const { return simulation_.graph_number(); }
  // {module: worker}, all of them or none.
  void move(const std::map<std::string, std::string>& parts) {
    std::vector<PartMove> moves;
    for (const auto& [module, worker] : parts) moves.push_back({module, worker});
    move_parts(moves);
  }
  nb::object explain() {
    if (controller_ == nullptr) return nb::dict();
    slo::Explanation explained = controller_->explain();
    for (size_t f = 0; f < std::min(explained.flows.size(), promises_.size()); ++f) {
      explained.flows[f].egress = promises_[f];
    }
    return to_python(telemetry::explanation_value(explained, simulation_.model()));
  }
  nb::dict period() { return period_to_python(simulation_.period()); }
  void apply(nb::dict decision) { put_into_force(decision_from_python(decision)); }
  void edit(nb::dict changes) { edit_value(to_value(changes)); }

  void record(uint64_t packets, uint64_t firings) {
    wanted_packets_ = packets;
    wanted_firings_ = firings;
    is_recorded_ = false;
    simulation_.recorder().limit(packets, firings);
    simulation_.update_recording();
  }
  // Once a period: instrumented runs take several times as long, so they end when all is there. One
  // period more lets the recorded packets leave.
  void rest_recorder() {
    const sim::Recorder& recorder = simulation_.recorder();
    const bool has_all =
        recorder.packets.size() >= wanted_packets_ && recorder.executions.size() >= wanted_firings_;
    if (!recorder.is_on() || !has_all) return;
    if (is_recorded_) record(0, 0);
    is_recorded_ = !is_recorded_;
  }
  nb::dict recorded() { return records_to_python(simulation_.recorder()); }

 private:
  void make_estimator() {
    const exec::ControlModel& model = simulation_.model();
    const exec::PeriodSnapshot now = simulation_.period();
    // Modules of one task that are told the same law are one pool: the model does not say their kinds.
    std::vector<slo::CostEstimator::Prior> costs;
    for (uint32_t m = 0; m < model.modules.size(); ++m) {
      const auto it = told_.find(model.modules[m].name);
      costs.push_back({it == told_.end() ? now.modules[m].cost : it->second,
                       std::to_string(model.modules[m].task)});
    }
    estimator_.emplace(costs);
  }
  void put_into_force(const exec::Decision& decision) {
    simulation_.apply(decision);
    if (decision.moves.empty()) return;
    const exec::ControlModel& model = simulation_.model();
    std::vector<PartMove> moves;
    for (const exec::MoveChange& move : decision.moves) {
      if (move.module >= model.modules.size() || move.worker >= model.workers.size()) {
        throw ConfigError("a move names no module and worker there are", "decision.moves");
      }
      moves.push_back({model.modules[move.module].name, model.workers[move.worker]});
    }
    move_parts(moves);
  }
  void move_parts(const std::vector<PartMove>& moves) {
    controller_.reset();  // it looks into the model
    for (uint32_t m = 0; estimator_ && m < simulation_.model().modules.size(); ++m) {
      told_[simulation_.model().modules[m].name] = estimator_->common_cost(m);
    }
    simulation_.move(moves);
    if (estimator_) make_estimator();
    if (controller_name_.empty()) return;
    controller_ = slo::make_controller(controller_name_, simulation_.model(), settings_);
  }
  void edit_value(const Value& changes) {
    exec::Decision decision;
    if (changes.has("buffers")) edit_buffers(changes["buffers"], decision);
    if (changes.has("polls")) edit_polls(changes["polls"], decision);
    simulation_.apply(decision);
    if (changes.has("slo_ns")) {
      for (const auto& [flow, ns] : changes["slo_ns"].as_dict()) {
        simulation_.set_slo(flow, static_cast<uint64_t>(ns.as_int()));
      }
    }
    if (changes.has("costs")) {
      for (const auto& [module, cost] : changes["costs"].as_dict()) edit_cost(module, cost);
    }
    if (changes.has("generators")) {
      for (const auto& [name, fields] : changes["generators"].as_dict()) edit_source(name, fields);
    }
    if (changes.has("stall_ns")) {
      for (const auto& [worker, ns] : changes["stall_ns"].as_dict()) edit_stall(worker, ns);
    }
    if (changes.has("devices")) {
      for (const auto& [module, args] : changes["devices"].as_dict())
        simulation_.set_stage(module, args);
    }
    if (changes.has("placement")) {
      for (const Value& edit : changes["placement"].as_list()) simulation_.edit_placement(edit);
    }
    if (changes.has("idle")) simulation_.set_idle_hold(changes["idle"].as_string() == "hold");
  }

  void edit_buffers(const Value& buffers, exec::Decision& decision) {
    for (const auto& [name, fields] : buffers.as_dict()) {
      exec::BufferChange change;
      change.module = simulation_.graph().at(name);
      change.trigger_pkts = fields.has("trigger_pkts")
                                ? static_cast<uint32_t>(fields["trigger_pkts"].as_int())
                                : exec::kKeepTrigger;
      if (fields.has("weight")) change.weight = static_cast<uint32_t>(fields["weight"].as_int());
      change.age_limit_ns = fields.has("age_limit_ns")
                                ? static_cast<uint64_t>(fields["age_limit_ns"].as_int())
                                : exec::kKeepAge;
      decision.changes.push_back(change);
    }
  }

  void edit_polls(const Value& polls, exec::Decision& decision) {
    std::vector<std::pair<uint32_t, uint32_t>> of_modules;
    for (const auto& [name, pkts] : polls.as_dict()) {
      of_modules.emplace_back(simulation_.graph().at(name), static_cast<uint32_t>(pkts.as_int()));
    }
    decision.polls = exec::poll_changes(simulation_.model(), of_modules);
  }

  void edit_cost(const std::string& module, const Value& cost) {
    simulation_.set_cost(module, cost_law_from(cost, "costs." + module));
  }

  void edit_source(const std::string& name, const Value& fields) {
    sim::Source& source = simulation_.source(name);
    const uint64_t now_ns = simulation_.now_ns();
    if (fields.has("weights")) {
      std::vector<double> weights;
      for (const Value& weight : fields["weights"].as_list()) weights.push_back(weight.as_double());
      source.set_weights(weights);
    }
    if (fields.has("rate_pps")) source.set_rate(fields["rate_pps"].as_double(), now_ns);
    if (fields.has("flow_rate_pps")) {
      for (const auto& [flow, rate] : fields["flow_rate_pps"].as_dict()) {
        source.set_flow_rate(flow, rate.as_double(), now_ns);
      }
    }
    if (fields.has("is_saturating"))
      source.set_saturating(fields["is_saturating"].as_bool(), now_ns);
    if (fields.has("is_on")) source.set_on(fields["is_on"].as_bool(), now_ns);
  }

  void edit_stall(const std::string& worker, const Value& ns) {
    const std::vector<std::string>& names = simulation_.graph().worker_names;
    for (uint32_t w = 0; w < names.size(); ++w) {
      if (names[w] == worker) return simulation_.stall(w, static_cast<uint64_t>(ns.as_int()));
    }
    throw ConfigError("no worker '" + worker + "'", "stall_ns");
  }

  sim::Simulation simulation_;
  uint64_t wanted_packets_ = 0;
  uint64_t wanted_firings_ = 0;
  bool is_recorded_ = false;
  std::unique_ptr<slo::Controller> controller_;
  std::vector<exec::EgressPromise> promises_;  // by flow, of the last period
  std::string controller_name_;
  slo::Settings settings_;
  std::optional<slo::Decomposer> decomposer_;
  std::map<std::string, CostLaw> told_;          // the costs that estimates began with
  std::optional<slo::CostEstimator> estimator_;  // none: controllers see the true costs
};

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Batchplane's simulator and controllers";
  nb::object config_error = nb::exception<ConfigError>(m, "ConfigError", PyExc_ValueError);
  // args[0]: a list of (message, where, fix).
  nb::register_exception_translator(
      [](const std::exception_ptr& p, void* type) {
        try {
          std::rethrow_exception(p);
        } catch (const ConfigError& error) {
          nb::list all;
          all.append(nb::make_tuple(std::string(error.what()), error.where(), error.fix()));
          const nb::tuple args = nb::make_tuple(all);
          PyErr_SetObject(static_cast<PyObject*>(type), args.ptr());
        }
      },
      config_error.ptr());
  m.def("controller_names", &slo::controller_names);
  // A cost law as costs files have it, with its line where that is left out.
  m.def("whole_cost", [](const nb::dict& given) {
    return to_python(Value(cost_law_value(cost_law_from(to_value(given), "cost"))));
  });
  add_check(m);
  add_controller(m);
  add_flood(m);
  add_egress(m);
  add_egress_weights(m);
  add_placement(m);
  add_plan(m);
  add_program_functions(m);
  nb::class_<PySimulation>(m, "Simulation")
      .def(nb::init<nb::dict>(), nb::arg("spec"))
      .def_prop_ro("now_ns", &PySimulation::now_ns)
      .def_prop_ro("unreplayed_pkts", &PySimulation::unreplayed_pkts)
      .def("run_until", &PySimulation::run_until, nb::arg("until_ns"))
      .def("drain", &PySimulation::drain)
      .def("show", &PySimulation::show, nb::arg("what"))
      .def("model", &PySimulation::model)
      .def("set_controller", &PySimulation::set_controller, nb::arg("name"),
           nb::arg("settings") = nb::dict())
      .def("estimate_costs", &PySimulation::estimate_costs, nb::arg("told") = nb::dict())
      .def("step", &PySimulation::step)
      .def("explain", &PySimulation::explain)
      .def("period", &PySimulation::period)
      .def("apply", &PySimulation::apply, nb::arg("decision"))
      .def("move", &PySimulation::move, nb::arg("parts"))
      .def_prop_ro("graph_number", &PySimulation::graph_number)
      .def("edit", &PySimulation::edit, nb::arg("changes"))
      .def("record", &PySimulation::record, nb::arg("packets") = 0, nb::arg("firings") = 0)
      .def("rest_recorder", &PySimulation::rest_recorder)
      .def("recorded", &PySimulation::recorded);
}

}  // namespace batchplane::native
