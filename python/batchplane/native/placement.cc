// SPDX-License-Identifier: BSD-3-Clause
#include "placement.h"

#include <nanobind/stl/string.h>

#include "placement/choosers.h"
#include "placement/problem_value.h"
#include "placement/solve.h"
#include "values.h"

namespace batchplane::native {
namespace {

Value placement_row(const placement::Problem& problem, const placement::PeriodRow& row) {
  Dict apps;
  for (size_t a = 0; a < row.apps.size(); ++a) {
    const placement::AppRow& app = row.apps[a];
    apps[problem.apps[a].name] =
        Dict{{"offered_pkts", app.offered_pkts}, {"served_pkts", app.served_pkts},
             {"refused_pkts", app.refused_pkts}, {"lost_pkts", app.lost_pkts},
             {"late_pkts", app.late_pkts},       {"delay_sum_ns", app.delay_sum_ns},
             {"delay_max_ns", app.delay_max_ns}};
  }
  List busy(row.busy.begin(), row.busy.end());
  return Dict{{"end_ns", row.end_ns},
              {"apps", std::move(apps)},
              {"joules", row.joules},
              {"busy_ns", busy},
              {"plan", placement::plan_value(problem, row.plan)},
              {"reason", row.reason}};
}

// The periods of a plant in which somebody decides (choosers.h). `profiled`: what they know, or nothing where
// they know the truth.
nb::object placement_run(nb::dict plant, const std::string& chooser, nb::object profiled) {
  const placement::PlantSpec spec = placement::plant_from(to_value(plant), "plant");
  const placement::Problem known =
      profiled.is_none() ? spec.truth : placement::problem_from(to_value(profiled), "profiled");
  std::vector<placement::PeriodRow> rows;
  {
    const nb::gil_scoped_release unlocked;
    rows = placement::run_plant(spec, *placement::make_chooser(chooser, spec, known, {}));
  }
  List out;
  for (const placement::PeriodRow& row : rows) out.emplace_back(placement_row(spec.truth, row));
  return to_python(Value(std::move(out)));
}

// The best plan for a problem that was found with that effort, and what it comes to.
nb::object placement_solve(nb::dict given, uint32_t effort) {
  const placement::Problem problem = placement::problem_from(to_value(given), "problem");
  const placement::Plan plan = placement::solve(problem, {}, effort);
  return to_python(
      Dict{{"plan", placement::plan_value(problem, plan)},
           {"outcome", placement::outcome_value(problem, placement::evaluate(problem, plan))}});
}

// What somebody's plan comes to.
nb::object placement_evaluate(nb::dict given, nb::dict plan) {
  const placement::Problem problem = placement::problem_from(to_value(given), "problem");
  const placement::Plan made = placement::plan_from(to_value(plan), problem, "plan");
  return to_python(placement::outcome_value(problem, placement::evaluate(problem, made)));
}

}  // namespace

void add_placement(nb::module_& m) {
  m.def("placement_run", &placement_run, nb::arg("plant"), nb::arg("chooser"),
        nb::arg("profiled") = nb::none());
  m.def("placement_solve", &placement_solve, nb::arg("problem"),
        nb::arg("effort") = placement::kEffort);
  m.def("placement_evaluate", &placement_evaluate, nb::arg("problem"), nb::arg("plan"));
}

}  // namespace batchplane::native
