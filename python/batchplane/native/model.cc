// SPDX-License-Identifier: BSD-3-Clause
#include "model.h"

#include <string>

#include "base/cost_law_value.h"
#include "base/error.h"

namespace batchplane::native {
namespace {

uint32_t number_of(const Value& value, size_t size, const std::string& where) {
  const int64_t i = value.is_int() ? value.as_int() : -1;
  if (i >= 0 && static_cast<uint64_t>(i) < size) return static_cast<uint32_t>(i);
  throw ConfigError("there is no such one", where,
                    size == 0 ? "there are none" : "0 to " + std::to_string(size - 1));
}

std::vector<uint32_t> numbers_of(const Value& list, size_t size, const std::string& where) {
  std::vector<uint32_t> numbers;
  for (const Value& value : list.as_list()) numbers.push_back(number_of(value, size, where));
  return numbers;
}

bool flag(const Value& row, const char* name) { return row.has(name) && row[name].as_bool(); }

uint32_t pkts_of(const Value& row, const char* name) {
  return row.has(name) ? static_cast<uint32_t>(row[name].as_int()) : 0;
}

// How many rows a part has; none where it is left out.
size_t rows_of(const Value& given, const char* part) {
  return given.has(part) ? given[part].as_list().size() : 0;
}

void add_modules(exec::ControlModel& model, const Value& given, size_t n_tasks) {
  for (const Value& row : given["modules"].as_list()) {
    model.modules.push_back({.name = row["name"].as_string(),
                             .task = number_of(row["task"], n_tasks, "modules.task"),
                             .has_buffer = flag(row, "has_buffer"),
                             .is_controlled = flag(row, "is_controlled"),
                             .is_egress = flag(row, "is_egress")});
  }
  const size_t n = model.modules.size();
  for (const Value& row : given["edges"].as_list()) {
    model.edges.push_back({.from = number_of(row["from"], n, "edges.from"),
                           .gate = static_cast<uint32_t>(row["gate"].as_int()),
                           .to = number_of(row["to"], n, "edges.to")});
  }
}

void add_tasks(exec::ControlModel& model, const Value& given) {
  const size_t n = model.modules.size();
  for (const Value& row : given["tasks"].as_list()) {
    model.tasks.push_back({.worker = number_of(row["worker"], n, "tasks.worker"),
                           .inputs = numbers_of(row["inputs"], n, "tasks.inputs"),
                           .modules = numbers_of(row["modules"], n, "tasks.modules")});
  }
  if (!given.has("inputs")) return;
  for (const Value& row : given["inputs"].as_list()) {
    model.inputs.push_back({.module = number_of(row["module"], n, "inputs.module"),
                            .task = number_of(row["task"], model.tasks.size(), "inputs.task"),
                            .is_queue = flag(row, "is_queue"),
                            .size_pkts = pkts_of(row, "size_pkts"),
                            .holds_back = flag(row, "holds_back"),
                            .window_pkts = pkts_of(row, "window_pkts"),
                            .is_scheduler = flag(row, "is_scheduler"),
                            .is_stage = flag(row, "is_stage")});
  }
}

void add_flows(exec::ControlModel& model, const Value& given) {
  const size_t n = model.modules.size();
  const size_t n_legs = rows_of(given, "legs");
  for (const Value& row : given["flows"].as_list()) {
    model.flows.push_back(
        {.name = row["name"].as_string(), .path = numbers_of(row["path"], n, "flows.path")});
    if (model.flows.back().path.empty()) throw ConfigError("a flow goes nowhere", "flows.path");
    const bool has_legs = row.has("legs");
    model.legs.of_flow.push_back(has_legs ? numbers_of(row["legs"], n_legs, "flows.legs")
                                          : std::vector<uint32_t>());
  }
  for (size_t l = 0; l < n_legs; ++l) {
    const Value& row = given["legs"].as_list()[l];
    model.legs.all.push_back({.task = number_of(row["task"], model.tasks.size(), "legs.task"),
                              .ends_at = number_of(row["ends_at"], n, "legs.ends_at")});
  }
}

}  // namespace

exec::ControlModel model_from(const Value& given) {
  exec::ControlModel model;
  const int64_t limit = given["batch_limit_pkts"].as_int();
  if (limit < 1 || limit > exec::kMaxBatchPkts) {
    throw ConfigError("no batch can be this large", "batch_limit_pkts",
                      "1 to " + std::to_string(exec::kMaxBatchPkts));
  }
  model.batch_limit_pkts = static_cast<uint32_t>(limit);
  add_modules(model, given, rows_of(given, "tasks"));
  add_tasks(model, given);
  add_flows(model, given);
  return model;
}

std::vector<slo::CostEstimator::Prior> costs_from(const Value& given) {
  std::vector<slo::CostEstimator::Prior> costs;
  for (const Value& row : given["modules"].as_list()) {
    const bool has_cost =
        row.has("cost_per_batch_ns") || row.has("cost_per_pkt_ns") || row.has("table_ns");
    costs.push_back({has_cost ? cost_law_from(row, row["name"].as_string()) : CostLaw(), {}});
  }
  return costs;
}

}  // namespace batchplane::native
