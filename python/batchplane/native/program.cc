// SPDX-License-Identifier: BSD-3-Clause
#include "program.h"

#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "base/value.h"
#include "slo/solver/program.h"
#include "values.h"

namespace batchplane::native {
namespace {

double number(const Value& row, const char* name, double fallback) {
  return row.has(name) ? row[name].as_double() : fallback;
}

uint32_t index(const Value& value, size_t size, const char* what) {
  const int64_t i = value.as_int();
  if (i < 0 || static_cast<size_t>(i) >= size) {
    throw ConfigError("a program has no " + std::string(what) + " " + std::to_string(i), what);
  }
  return static_cast<uint32_t>(i);
}

slo::ProgramTask task_of(const Value& row) {
  slo::ProgramTask task;
  task.rate_pkts_per_ns = number(row, "rate_pkts_per_ns", task.rate_pkts_per_ns);
  task.is_saturated = row.has("is_saturated") && row["is_saturated"].as_bool();
  task.run_pkts = number(row, "run_pkts", task.run_pkts);
  task.other_run_ns = number(row, "other_run_ns", task.other_run_ns);
  task.runs_waited = number(row, "runs_waited", task.runs_waited);
  task.spread_scale = number(row, "spread_scale", task.spread_scale);
  task.bare_scale = number(row, "bare_scale", task.bare_scale);
  return task;
}

slo::ProgramModule module_of(const Value& row, size_t n_tasks) {
  slo::ProgramModule module;
  module.cost_per_batch_ns = number(row, "cost_per_batch_ns", 0);
  module.cost_per_pkt_ns = number(row, "cost_per_pkt_ns", 0);
  module.share = number(row, "share", 0);
  module.arriving_pkts = number(row, "arriving_pkts", module.arriving_pkts);
  module.sure_pkts = number(row, "sure_pkts", module.sure_pkts);
  module.max_pkts = static_cast<uint32_t>(number(row, "max_pkts", 0));
  module.task = row.has("task") ? index(row["task"], n_tasks, "task") : 0;
  return module;
}

void add_flow(slo::Program& program, const Value& row) {
  slo::ProgramFlow flow;
  flow.budget_ns = number(row, "budget_ns", flow.budget_ns);
  flow.least_turnaround_ns = number(row, "least_turnaround_ns", flow.least_turnaround_ns);
  flow.runs_early = number(row, "runs_early", flow.runs_early);
  flow.modules_begin = static_cast<uint32_t>(program.flow_modules.size());
  flow.tasks_begin = static_cast<uint32_t>(program.flow_tasks.size());
  for (const Value& v : row["modules"].as_list()) {
    program.flow_modules.push_back(index(v, program.modules.size(), "module"));
  }
  for (const Value& t : row["tasks"].as_list()) {
    program.flow_tasks.push_back(index(t, program.tasks.size(), "task"));
  }
  flow.modules_end = static_cast<uint32_t>(program.flow_modules.size());
  flow.tasks_end = static_cast<uint32_t>(program.flow_tasks.size());
  program.flows.push_back(flow);
}

slo::Program program_of(nb::handle object) {
  const Value given = to_value(object);
  slo::Program program;
  program.hold_ns = number(given, "hold_ns", program.hold_ns);
  program.fill_share = number(given, "fill_share", program.fill_share);
  program.sigmas = number(given, "sigmas", program.sigmas);
  program.mixes_fills = given.has("mixes_fills") && given["mixes_fills"].as_bool();
  for (const Value& row : given["tasks"].as_list()) program.tasks.push_back(task_of(row));
  for (const Value& row : given["modules"].as_list()) {
    program.modules.push_back(module_of(row, program.tasks.size()));
  }
  for (const Value& row : given["flows"].as_list()) add_flow(program, row);
  return program;
}

nb::dict to_python(const slo::Evaluation& model) {
  nb::dict out;
  out["load"] = model.load;
  out["task_pkt_ns"] = model.task_pkt_ns;
  out["turnaround_ns"] = model.turnaround_ns;
  out["delay_ns"] = model.delay_ns;
  return out;
}

nb::dict solve_program(nb::handle object) {
  const slo::Program program = program_of(object);
  slo::Solver solver;
  solver.prepare(program);
  const slo::Solution& solution = solver.solve(program);
  nb::dict out = to_python(solution.model);
  out["triggers_pkts"] =
      std::vector<uint32_t>(solution.triggers_pkts.begin(), solution.triggers_pkts.end());
  out["prices"] = solution.prices;
  out["is_infeasible"] = solution.is_infeasible;
  out["relaxations"] = solution.relaxations;
  return out;
}

nb::dict relax_program(nb::handle object, double settled) {
  const slo::Program program = program_of(object);
  slo::Solver solver;
  solver.prepare(program);
  const slo::Relaxation point = solver.relaxed(program, settled);
  nb::dict out = to_python(point.model);
  out["batches_pkts"] = point.batches_pkts;
  out["prices"] = point.prices;
  out["is_short"] = point.is_short;
  out["relaxations"] = point.relaxations;
  return out;
}

nb::dict evaluate_program(nb::handle object, const std::vector<double>& triggers_pkts) {
  const slo::Program program = program_of(object);
  if (triggers_pkts.size() != program.modules.size()) {
    throw ConfigError("as many triggers as modules are needed", "triggers_pkts");
  }
  slo::Evaluation model;
  slo::evaluate(program, triggers_pkts, model);
  return to_python(model);
}

}  // namespace

void add_program_functions(nb::module_& m) {
  m.def("solve_program", &solve_program, nb::arg("program"));
  m.def("relax_program", &relax_program, nb::arg("program"), nb::arg("settled") = 5e-3);
  m.def("evaluate_program", &evaluate_program, nb::arg("program"), nb::arg("triggers_pkts"));
}

}  // namespace batchplane::native
