// SPDX-License-Identifier: BSD-3-Clause
#include "app/control/control_remote.h"

#include <algorithm>

#include "base/error.h"
#include "base/nearest_word.h"
#include "exec/control_fields.h"
#include "spec/limits.h"

namespace batchplane::app {
namespace {

constexpr auto kMaxAgeNs = static_cast<int64_t>(limits::kAgeLimitNs.most);

Value numbers(const std::vector<uint32_t>& values) { return List(values.begin(), values.end()); }

template <class Row, class Get>
Value column(const std::vector<Row>& rows, Get get) {
  List values;
  values.reserve(rows.size());
  for (const Row& row : rows) values.emplace_back(get(row));
  return values;
}

// A module by name or by its index in the model.
uint32_t module_of(const Value& given, const exec::ControlModel& model, const std::string& where) {
  const auto count = static_cast<int64_t>(model.modules.size());
  if (given.is_int() && given.as_int() >= 0 && given.as_int() < count) {
    return static_cast<uint32_t>(given.as_int());
  }
  if (!given.is_string()) {
    throw ConfigError("this is no module", where, "a name, or 0 to " + std::to_string(count - 1));
  }
  std::vector<std::string> names;
  for (const exec::ControlModule& module : model.modules) names.push_back(module.name);
  const auto it = std::ranges::find(names, given.as_string());
  if (it != names.end()) return static_cast<uint32_t>(it - names.begin());
  const std::string near = nearest_word(given.as_string(), names);
  throw ConfigError("there is no module '" + given.as_string() + "'", where,
                    near.empty() ? "show model lists them" : "did you mean '" + near + "'?");
}

int64_t whole(const Value& given, int64_t least, int64_t most, const std::string& where) {
  if (given.is_int() && given.as_int() >= least && given.as_int() <= most) return given.as_int();
  throw ConfigError("this is no whole number in range", where,
                    std::to_string(least) + " to " + std::to_string(most));
}

exec::BufferChange change_from(const Value& given, const exec::ControlModel& model,
                               const std::string& where) {
  if (!given.is_dict()) throw ConfigError("a change is an object", where, "module, trigger_pkts");
  for (const auto& [key, value] : given.as_dict()) {
    if (key == "module" || key == "trigger_pkts" || key == "age_limit_ns" || key == "reason")
      continue;
    throw ConfigError("unknown key '" + key + "'", where, "module, trigger_pkts, age_limit_ns");
  }
  exec::BufferChange change;
  change.module = module_of(given["module"], model, where + ".module");
  const exec::ControlModule& module = model.modules[change.module];
  if (!module.has_buffer) {
    throw ConfigError("'" + module.name + "' is an input: it has no buffer", where,
                      "buffers stand in front of modules");
  }
  change.trigger_pkts = static_cast<uint32_t>(
      whole(given["trigger_pkts"], 0, model.batch_limit_pkts, where + ".trigger_pkts"));
  const Value& age = given["age_limit_ns"];
  change.age_limit_ns =
      age.is_null() ? exec::kKeepAge
                    : static_cast<uint64_t>(whole(age, 0, kMaxAgeNs, where + ".age_limit_ns"));
  change.reason = "program";
  return change;
}

// The range is that of the queue itself: see FeederQueue.
exec::CreditChange credit_from(const Value& given, const exec::ControlModel& model,
                               const std::string& where) {
  if (!given.is_dict() || given.as_dict().size() != 2) {
    throw ConfigError("this is no credit of a queue", where, "{module, credit_pkts}");
  }
  const uint32_t module = module_of(given["module"], model, where + ".module");
  const size_t input = exec::input_of(model, module);
  if (input == model.inputs.size() || !model.inputs[input].is_queue) {
    throw ConfigError("'" + model.modules[module].name + "' is no queue", where,
                      "credits are of queues between tasks");
  }
  const exec::ControlInput& queue = model.inputs[input];
  const uint32_t least_pkts = queue.holds_back ? model.batch_limit_pkts : 1;
  const int64_t credit_pkts =
      whole(given["credit_pkts"], least_pkts, queue.size_pkts, where + ".credit_pkts");
  return {module, static_cast<uint32_t>(credit_pkts)};
}

}  // namespace

Value model_value(const exec::ControlModel& model) {
  List modules;
  List edges;
  List flows;
  List tasks;
  for (const exec::ControlModule& module : model.modules) {
    modules.push_back(Dict{{"name", module.name},
                           {"task", module.task},
                           {"has_buffer", module.has_buffer},
                           {"is_controlled", module.is_controlled},
                           {"is_egress", module.is_egress}});
  }
  for (const exec::ControlEdge& edge : model.edges) {
    edges.push_back(Dict{{"from", edge.from}, {"gate", edge.gate}, {"to", edge.to}});
  }
  for (const exec::ControlFlow& flow : model.flows) {
    const size_t f = flows.size();
    const bool has_legs = f < model.legs.of_flow.size();
    flows.push_back(Dict{{"name", flow.name},
                         {"path", numbers(flow.path)},
                         {"legs", has_legs ? numbers(model.legs.of_flow[f]) : List()}});
  }
  List legs;
  for (const exec::Leg& leg : model.legs.all) {
    legs.push_back(Dict{{"task", leg.task}, {"ends_at", leg.ends_at}});
  }
  for (const exec::ControlTask& task : model.tasks) {
    tasks.push_back(Dict{{"worker", task.worker},
                         {"inputs", numbers(task.inputs)},
                         {"modules", numbers(task.modules)}});
  }
  List inputs;
  for (const exec::ControlInput& input : model.inputs) {
    inputs.push_back(Dict{{"module", input.module},
                          {"task", input.task},
                          {"is_queue", input.is_queue},
                          {"size_pkts", input.size_pkts},
                          {"holds_back", input.holds_back},
                          {"window_pkts", input.window_pkts},
                          {"is_scheduler", input.is_scheduler},
                          {"is_stage", input.is_stage}});
  }
  return Dict{{"batch_limit_pkts", model.batch_limit_pkts},
              {"inputs", std::move(inputs)},
              {"modules", std::move(modules)},
              {"edges", std::move(edges)},
              {"flows", std::move(flows)},
              {"tasks", std::move(tasks)},
              {"legs", std::move(legs)}};
}

Value period_value(const exec::PeriodSnapshot& period) {
  Dict modules;
  Dict flows;
  Dict tasks;
  Dict legs;
// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define X(name, type) \
  modules[#name] = column(period.modules, [](const auto& row) { return row.name; });
  BATCHPLANE_MODULE_FIELDS(X)
#undef X
#define X(name, type) flows[#name] = column(period.flows, [](const auto& row) { return row.name; });
  BATCHPLANE_FLOW_FIELDS(X)
#undef X
  flows["egress_bound_ns"] =
      column(period.flows, [](const auto& row) { return row.egress.bound_or_0_ns(); });
  flows["egress_share_bps"] =
      column(period.flows, [](const auto& row) { return row.egress.share_bps; });
  flows["is_beyond_share"] =
      column(period.flows, [](const auto& row) { return row.egress.is_beyond_share; });
#define X(name, type) tasks[#name] = column(period.tasks, [](const auto& row) { return row.name; });
  BATCHPLANE_TASK_FIELDS(X)
#undef X
#define X(name, type) legs[#name] = column(period.legs, [](const auto& row) { return row.name; });
  BATCHPLANE_FLOW_FIELDS(X)
#undef X
  // NOLINTEND(cppcoreguidelines-macro-usage)
  Dict inputs;
// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define X(name, type) \
  inputs[#name] = column(period.inputs, [](const auto& row) { return row.name; });
  BATCHPLANE_INPUT_FIELDS(X)
#undef X
  // NOLINTEND(cppcoreguidelines-macro-usage)
  modules["cost_per_batch_ns"] =
      column(period.modules, [](const auto& row) { return row.cost.line().cost_per_batch_ns; });
  modules["cost_per_pkt_ns"] =
      column(period.modules, [](const auto& row) { return row.cost.line().cost_per_pkt_ns; });
  for (uint32_t c = 0; c < exec::kCauses; ++c) {
    const std::string cause = exec::kCauseNames[c];
    modules[cause + "_firings"] =
        column(period.modules, [c](const auto& row) { return row.causes[c].firings; });
    modules[cause + "_pkts"] =
        column(period.modules, [c](const auto& row) { return row.causes[c].pkts; });
    modules[cause + "_wait_ns"] =
        column(period.modules, [c](const auto& row) { return row.causes[c].wait_ns; });
  }
  return Dict{{"now_ns", period.now_ns},       {"period_ns", period.period_ns},
              {"modules", std::move(modules)}, {"flows", std::move(flows)},
              {"tasks", std::move(tasks)},     {"inputs", std::move(inputs)},
              {"legs", std::move(legs)}};
}

std::vector<exec::BufferChange> changes_from(const Value& changes,
                                             const exec::ControlModel& model) {
  if (!changes.is_list()) throw ConfigError("a decision is a list of changes", "changes");
  std::vector<exec::BufferChange> made;
  std::vector<bool> is_named(model.modules.size(), false);
  for (size_t i = 0; i < changes.as_list().size(); ++i) {
    const std::string where = "changes[" + std::to_string(i) + "]";
    made.push_back(change_from(changes.as_list()[i], model, where));
    if (is_named[made.back().module]) {
      throw ConfigError("'" + model.modules[made.back().module].name + "' is changed twice", where);
    }
    is_named[made.back().module] = true;
  }
  return made;
}

std::vector<exec::CreditChange> credits_from(const Value& credits,
                                             const exec::ControlModel& model) {
  std::vector<exec::CreditChange> made;
  if (credits.is_null()) return made;
  if (!credits.is_list()) {
    throw ConfigError("credits are a list", "credits", "of {module, credit_pkts}");
  }
  for (const Value& given : credits.as_list()) {
    const std::string where = "credits[" + std::to_string(made.size()) + "]";
    made.push_back(credit_from(given, model, where));
    const auto is_same = [&](const exec::CreditChange& change) {
      return change.module == made.back().module;
    };
    if (std::ranges::count_if(made, is_same) == 1) continue;
    throw ConfigError("'" + model.modules[made.back().module].name + "' is changed twice", where);
  }
  return made;
}

std::vector<exec::PollChange> polls_from(const Value& polls, const exec::ControlModel& model) {
  std::vector<exec::PollChange> made;
  if (polls.is_null()) return made;
  if (!polls.is_list()) throw ConfigError("polls are a list", "polls", "of {task, poll_pkts}");
  const auto n_tasks = static_cast<int64_t>(model.tasks.size());
  for (const Value& given : polls.as_list()) {
    const std::string where = "polls[" + std::to_string(made.size()) + "]";
    if (!given.is_dict() || given.as_dict().size() != 2) {
      throw ConfigError("this is no limit of a task's polls", where, "{task, poll_pkts}");
    }
    const auto task = static_cast<uint32_t>(whole(given["task"], 0, n_tasks - 1, where + ".task"));
    const auto poll_pkts = static_cast<uint32_t>(
        whole(given["poll_pkts"], 1, model.batch_limit_pkts, where + ".poll_pkts"));
    if (std::ranges::find(made, task, &exec::PollChange::task) != made.end()) {
      throw ConfigError("task " + std::to_string(task) + " is changed twice", where);
    }
    made.push_back({task, poll_pkts});
  }
  return made;
}

}  // namespace batchplane::app
