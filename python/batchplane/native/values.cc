// SPDX-License-Identifier: BSD-3-Clause
#include "values.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <string>
#include <vector>

#include "exec/control_fields.h"

namespace batchplane::native {
namespace {

template <class T>
nb::object column(std::vector<T> values) {
  auto* const owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

// One field of every row as a column.
template <class T, class Row, class Get>
nb::object field(const std::vector<Row>& rows, Get get) {
  std::vector<T> values;
  values.reserve(rows.size());
  for (const Row& row : rows) values.push_back(static_cast<T>(get(row)));
  return column(std::move(values));
}

uint64_t whole(nb::handle object) {
  const auto number = nb::cast<double>(nb::float_(object));
  if (!(number >= 0 && number <= 1.8e19))
    throw nb::value_error("a count is negative or not finite");
  return nb::isinstance<nb::int_>(object) ? nb::cast<uint64_t>(object)
                                          : static_cast<uint64_t>(number);
}

template <class Row, class Set>
void read_column(nb::handle section, const char* name, std::vector<Row>& rows, Set set) {
  if (!nb::cast<nb::dict>(section).contains(name)) return;
  size_t i = 0;
  for (const nb::handle item : nb::iter(nb::cast<nb::dict>(section)[name])) {
    if (i == rows.size()) rows.emplace_back();
    set(rows[i++], item);
  }
}

// A list with a dict for each item, filled by fill(dict, item).
template <class Items, class Fill>
nb::list list_of(const Items& items, Fill fill) {
  nb::list rows;
  for (const auto& item : items) {
    nb::dict row;
    fill(row, item);
    rows.append(row);
  }
  return rows;
}

template <class Item>
nb::list list_of(const std::vector<Item>& items) {
  nb::list list;
  for (const Item& item : items) list.append(item);
  return list;
}

}  // namespace

Value to_value(nb::handle object) {
  if (object.is_none()) return {};
  if (nb::isinstance<nb::bool_>(object)) return nb::cast<bool>(object);
  if (nb::isinstance<nb::int_>(object)) {
    // What does not fit is refused by its limit, as a number that is far too large.
    int64_t whole = 0;
    if (nb::try_cast(object, whole)) return whole;
    return PyObject_RichCompareBool(object.ptr(), nb::int_(0).ptr(), Py_LT) == 1 ? -1e300 : 1e300;
  }
  if (nb::isinstance<nb::float_>(object)) return nb::cast<double>(object);
  if (nb::isinstance<nb::str>(object)) return nb::cast<std::string>(object);
  if (nb::isinstance<nb::dict>(object)) {
    Dict dict;
    for (const auto& [key, value] : nb::cast<nb::dict>(object)) {
      dict[nb::cast<std::string>(nb::str(key))] = to_value(value);
    }
    return dict;
  }
  // Scalars and arrays of numpy say what they are in plain objects.
  if (nb::hasattr(object, "tolist")) return to_value(object.attr("tolist")());
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    List list;
    for (const nb::handle item : object) list.push_back(to_value(item));
    return list;
  }
  throw nb::type_error("expected None, a number, a string, a list or a dict");
}

nb::object to_python(const Value& value) {
  if (value.is_null()) return nb::none();
  if (value.is_bool()) return nb::bool_(value.as_bool());
  if (value.is_int()) return nb::int_(value.as_int());
  if (value.is_double()) return nb::float_(value.as_double());
  if (value.is_string()) return nb::cast(value.as_string());
  if (value.is_list()) {
    nb::list list;
    for (const Value& item : value.as_list()) list.append(to_python(item));
    return list;
  }
  nb::dict dict;
  for (const auto& [key, item] : value.as_dict()) dict[nb::cast(key)] = to_python(item);
  return dict;
}

nb::dict model_to_python(const exec::ControlModel& model) {
  nb::dict out;
  out["inputs"] = list_of(model.inputs, [](nb::dict& row, const exec::ControlInput& input) {
    row["module"] = input.module;
    row["task"] = input.task;
    row["is_queue"] = input.is_queue;
    row["size_pkts"] = input.size_pkts;
    row["holds_back"] = input.holds_back;
    row["window_pkts"] = input.window_pkts;
    row["is_scheduler"] = input.is_scheduler;
    row["is_stage"] = input.is_stage;
  });
  out["batch_limit_pkts"] = model.batch_limit_pkts;
  out["modules"] = list_of(model.modules, [](nb::dict& row, const exec::ControlModule& module) {
    row["name"] = module.name;
    row["task"] = module.task;
    row["has_buffer"] = module.has_buffer;
    row["is_controlled"] = module.is_controlled;
    row["is_egress"] = module.is_egress;
  });
  out["edges"] = list_of(model.edges, [](nb::dict& row, const exec::ControlEdge& edge) {
    row["from"] = edge.from;
    row["gate"] = edge.gate;
    row["to"] = edge.to;
  });
  size_t f = 0;
  out["flows"] = list_of(model.flows, [&](nb::dict& row, const exec::ControlFlow& flow) {
    row["name"] = flow.name;
    row["path"] = list_of(flow.path);
    const bool has_legs = f < model.legs.of_flow.size();
    row["legs"] = has_legs ? list_of(model.legs.of_flow[f]) : nb::list();
    ++f;
  });
  out["tasks"] = list_of(model.tasks, [](nb::dict& row, const exec::ControlTask& task) {
    row["worker"] = task.worker;
    row["inputs"] = list_of(task.inputs);
    row["modules"] = list_of(task.modules);
  });
  out["legs"] = list_of(model.legs.all, [](nb::dict& row, const exec::Leg& leg) {
    row["task"] = leg.task;
    row["ends_at"] = leg.ends_at;
  });
  out["workers"] = list_of(model.workers);
  return out;
}

nb::dict period_to_python(const exec::PeriodSnapshot& period) {
  nb::dict modules;
  nb::dict flows;
  nb::dict tasks;
#define X(name, type) \
  modules[#name] = field<type>(period.modules, [](const auto& row) { return row.name; });
  BATCHPLANE_MODULE_FIELDS(X)
#undef X
#define X(name, type) \
  flows[#name] = field<type>(period.flows, [](const auto& row) { return row.name; });
  BATCHPLANE_FLOW_FIELDS(X)
#undef X
  nb::list buckets;
  for (const exec::FlowPeriod& flow : period.flows) {
    buckets.append(
        column(std::vector<uint64_t>(std::begin(flow.slo_buckets), std::end(flow.slo_buckets))));
  }
  flows["slo_buckets"] = buckets;
  flows["egress_bound_ns"] =
      field<uint64_t>(period.flows, [](const auto& row) { return row.egress.bound_or_0_ns(); });
  flows["egress_share_bps"] =
      field<uint64_t>(period.flows, [](const auto& row) { return row.egress.share_bps; });
  flows["is_beyond_share"] =
      field<uint32_t>(period.flows, [](const auto& row) { return row.egress.is_beyond_share; });
#define X(name, type) \
  tasks[#name] = field<type>(period.tasks, [](const auto& row) { return row.name; });
  BATCHPLANE_TASK_FIELDS(X)
#undef X
  nb::dict legs;
#define X(name, type) \
  legs[#name] = field<type>(period.legs, [](const auto& row) { return row.name; });
  BATCHPLANE_FLOW_FIELDS(X)
#undef X
  nb::dict inputs;
#define X(name, type) \
  inputs[#name] = field<type>(period.inputs, [](const auto& row) { return row.name; });
  BATCHPLANE_INPUT_FIELDS(X)
#undef X
  modules["cost_per_batch_ns"] = field<double>(
      period.modules, [](const auto& row) { return row.cost.line().cost_per_batch_ns; });
  modules["cost_per_pkt_ns"] = field<double>(
      period.modules, [](const auto& row) { return row.cost.line().cost_per_pkt_ns; });
  for (uint32_t c = 0; c < exec::kCauses; ++c) {
    const std::string cause = exec::kCauseNames[c];
    modules[nb::cast(cause + "_firings")] =
        field<uint64_t>(period.modules, [c](const auto& row) { return row.causes[c].firings; });
    modules[nb::cast(cause + "_pkts")] =
        field<uint64_t>(period.modules, [c](const auto& row) { return row.causes[c].pkts; });
    modules[nb::cast(cause + "_wait_ns")] =
        field<uint64_t>(period.modules, [c](const auto& row) { return row.causes[c].wait_ns; });
  }
  nb::dict out;
  out["now_ns"] = period.now_ns;
  out["period_ns"] = period.period_ns;
  out["modules"] = modules;
  out["flows"] = flows;
  out["tasks"] = tasks;
  out["inputs"] = inputs;
  out["legs"] = legs;
  return out;
}

namespace {

// What stands in columns under names of its own: releases by cause, sampled executions, delays by
// parts of the SLO.
void read_counts(const nb::dict& given, exec::PeriodSnapshot& period) {
  const nb::handle modules = given["modules"];
  for (uint32_t c = 0; c < exec::kCauses; ++c) {
    const std::string cause = exec::kCauseNames[c];
    const auto read = [&](const char* what, uint64_t exec::CauseCount::*to) {
      read_column(modules, (cause + what).c_str(), period.modules,
                  [&](auto& row, nb::handle v) { row.causes[c].*to = whole(v); });
    };
    read("_firings", &exec::CauseCount::firings);
    read("_pkts", &exec::CauseCount::pkts);
    read("_wait_ns", &exec::CauseCount::wait_ns);
  }
  const auto read_sampled = [&](const char* name, uint64_t CostSamples::*to) {
    read_column(modules, name, period.modules,
                [&](auto& row, nb::handle v) { row.samples.*to = whole(v); });
  };
  read_sampled("sampled_batches", &CostSamples::batches);
  read_sampled("sampled_pkts", &CostSamples::pkts);
  read_sampled("sampled_pkts_squared", &CostSamples::pkts_squared);
  read_sampled("sampled_ns", &CostSamples::cycles);
  read_sampled("sampled_pkts_ns", &CostSamples::cycles_pkts);
  read_column(given["flows"], "slo_buckets", period.flows, [](auto& row, nb::handle v) {
    size_t i = 0;
    for (const nb::handle pkts : nb::iter(v)) {
      if (i < exec::SloBuckets::kCount) row.slo_buckets[i++] = whole(pkts);
    }
  });
}

}  // namespace

exec::PeriodSnapshot period_from_python(nb::handle object) {
  const auto given = nb::cast<nb::dict>(object);
  exec::PeriodSnapshot period;
  period.now_ns = whole(given["now_ns"]);
  period.period_ns = whole(given["period_ns"]);
#define X(name, type)                                  \
  read_column(given["modules"], #name, period.modules, \
              [](auto& row, nb::handle v) { row.name = static_cast<type>(whole(v)); });
  BATCHPLANE_MODULE_FIELDS(X)
#undef X
#define X(name, type)                              \
  read_column(given["flows"], #name, period.flows, \
              [](auto& row, nb::handle v) { row.name = static_cast<type>(whole(v)); });
  BATCHPLANE_FLOW_FIELDS(X)
#undef X
#define X(name, type)                              \
  read_column(given["tasks"], #name, period.tasks, \
              [](auto& row, nb::handle v) { row.name = static_cast<type>(whole(v)); });
  BATCHPLANE_TASK_FIELDS(X)
#undef X
  if (given.contains("legs")) {
#define X(name, type)                            \
  read_column(given["legs"], #name, period.legs, \
              [](auto& row, nb::handle v) { row.name = static_cast<type>(whole(v)); });
    BATCHPLANE_FLOW_FIELDS(X)
#undef X
  }
  if (given.contains("inputs")) {
#define X(name, type)                                \
  read_column(given["inputs"], #name, period.inputs, \
              [](auto& row, nb::handle v) { row.name = nb::cast<type>(v); });
    BATCHPLANE_INPUT_FIELDS(X)
#undef X
  }
  read_counts(given, period);
  read_column(given["modules"], "cost_per_batch_ns", period.modules, [](auto& row, nb::handle v) {
    row.cost = {nb::cast<double>(nb::float_(v)), row.cost.line().cost_per_pkt_ns};
  });
  read_column(given["modules"], "cost_per_pkt_ns", period.modules, [](auto& row, nb::handle v) {
    row.cost = {row.cost.line().cost_per_batch_ns, nb::cast<double>(nb::float_(v))};
  });
  return period;
}

namespace {

void fill_change(nb::dict& row, const exec::BufferChange& change) {
  row["module"] = change.module;
  if (change.trigger_pkts != exec::kKeepTrigger) row["trigger_pkts"] = change.trigger_pkts;
  if (change.weight != 0) row["weight"] = change.weight;
  if (change.pace_ns != exec::BufferChange::kKeepPace) row["pace_ns"] = change.pace_ns;
  if (change.age_limit_ns != exec::kKeepAge) row["age_limit_ns"] = change.age_limit_ns;
  row["reason"] = change.reason;
}

void fill_leg(nb::dict& row, const exec::LegBudget& leg) {
  row["budget_ns"] = leg.budget_ns;
  row["measured_ns"] = leg.measured_ns;
  row["load_per_us"] = leg.load_per_us;
}

void fill_verdict(nb::dict& row, const exec::FlowVerdict& flow) {
  row["state"] = exec::kFlowStateNames[static_cast<uint32_t>(flow.state)];
  row["turnaround_ns"] = flow.turnaround_ns;
  row["fill_ns"] = flow.fill_ns;
  row["service_ns"] = flow.service_ns;
  row["slack_ns"] = flow.slack_ns;
  row["multiplier_pps_per_us"] = flow.multiplier_pps_per_us;
  row["hint"] = flow.hint;
  row["legs"] = list_of(flow.legs, fill_leg);
}

}  // namespace

nb::dict decision_to_python(const exec::Decision& decision) {
  nb::dict out;
  out["changes"] = list_of(decision.changes, fill_change);
  out["credits"] = list_of(decision.credits, [](nb::dict& row, const exec::CreditChange& change) {
    row["module"] = change.module;
    row["credit_pkts"] = change.credit_pkts;
  });
  out["polls"] = list_of(decision.polls, [](nb::dict& row, const exec::PollChange& change) {
    row["task"] = change.task;
    row["poll_pkts"] = change.poll_pkts;
  });
  out["moves"] = list_of(decision.moves, [](nb::dict& row, const exec::MoveChange& move) {
    row["module"] = move.module;
    row["worker"] = move.worker;
    row["reason"] = move.reason;
  });
  out["flows"] = list_of(decision.flows, fill_verdict);
  out["predicted_load"] = decision.predicted_load;
  out["predicted_pps"] = decision.predicted_pps;
  return out;
}

exec::Decision decision_from_python(nb::handle object) {
  exec::Decision decision;
  const auto given = nb::cast<nb::dict>(object);
  if (given.contains("credits")) {
    for (const nb::handle item : nb::iter(given["credits"])) {
      const auto change = nb::cast<nb::dict>(item);
      decision.credits.push_back({static_cast<uint32_t>(whole(change["module"])),
                                  static_cast<uint32_t>(whole(change["credit_pkts"]))});
    }
  }
  if (given.contains("polls")) {
    for (const nb::handle item : nb::iter(given["polls"])) {
      const auto change = nb::cast<nb::dict>(item);
      decision.polls.push_back({static_cast<uint32_t>(whole(change["task"])),
                                static_cast<uint32_t>(whole(change["poll_pkts"]))});
    }
  }
  if (given.contains("moves")) {
    for (const nb::handle item : nb::iter(given["moves"])) {
      const auto move = nb::cast<nb::dict>(item);
      decision.moves.push_back({static_cast<uint32_t>(whole(move["module"])),
                                static_cast<uint32_t>(whole(move["worker"])), "python"});
    }
  }
  if (!given.contains("changes")) return decision;
  for (const nb::handle item : nb::iter(given["changes"])) {
    const auto change = nb::cast<nb::dict>(item);
    exec::BufferChange made;
    made.module = static_cast<uint32_t>(whole(change["module"]));
    made.trigger_pkts = exec::kKeepTrigger;
    if (change.contains("trigger_pkts") && !change["trigger_pkts"].is_none()) {
      made.trigger_pkts = static_cast<uint32_t>(whole(change["trigger_pkts"]));
    }
    if (change.contains("weight")) made.weight = static_cast<uint32_t>(whole(change["weight"]));
    if (change.contains("pace_ns")) made.pace_ns = whole(change["pace_ns"]);
    made.age_limit_ns = exec::kKeepAge;
    if (change.contains("age_limit_ns") && !change["age_limit_ns"].is_none()) {
      made.age_limit_ns = whole(change["age_limit_ns"]);
    }
    made.reason = "python";
    decision.changes.push_back(made);
  }
  return decision;
}

nb::dict records_to_python(const sim::Recorder& recorder) {
  std::vector<uint64_t> fill(recorder.packets.size(), 0);
  std::vector<uint64_t> service(recorder.packets.size(), 0);
  for (const sim::Hop& hop : recorder.hops) {
    fill[hop.packet] += hop.start_ns - hop.arrive_ns;
    service[hop.packet] += hop.end_ns - hop.start_ns;
  }
  nb::dict packets;
  std::vector<uint32_t> ids(recorder.packets.size());
  std::vector<uint64_t> rest(recorder.packets.size());
  for (uint32_t i = 0; i < ids.size(); ++i) {
    const sim::PacketRecord& packet = recorder.packets[i];
    ids[i] = i;
    const uint64_t known_ns = packet.poll_ns + fill[i] + service[i];
    rest[i] = packet.exit_ns > known_ns ? packet.exit_ns - known_ns : 0;
  }
  const auto& rows = recorder.packets;
  packets["id"] = column(std::move(ids));
  packets["flow"] = field<uint32_t>(rows, [](const auto& p) { return p.flow; });
  packets["entry_ns"] = field<uint64_t>(rows, [](const auto& p) { return p.entry_ns; });
  packets["exit_ns"] = field<uint64_t>(rows, [](const auto& p) { return p.exit_ns; });
  packets["is_dropped"] = field<uint8_t>(rows, [](const auto& p) { return p.is_dropped; });
  packets["ring_ns"] = field<uint64_t>(
      rows, [](const auto& p) { return p.poll_ns > p.entry_ns ? p.poll_ns - p.entry_ns : 0; });
  packets["fill_ns"] = column(std::move(fill));
  packets["service_ns"] = column(std::move(service));
  packets["turnaround_ns"] = column(std::move(rest));
  nb::dict hops;
  hops["id"] = field<uint32_t>(recorder.hops, [](const auto& h) { return h.packet; });
  hops["module"] = field<uint32_t>(recorder.hops, [](const auto& h) { return h.module; });
  hops["arrive_ns"] = field<uint64_t>(recorder.hops, [](const auto& h) { return h.arrive_ns; });
  hops["start_ns"] = field<uint64_t>(recorder.hops, [](const auto& h) { return h.start_ns; });
  hops["end_ns"] = field<uint64_t>(recorder.hops, [](const auto& h) { return h.end_ns; });
  hops["batch_pkts"] = field<uint32_t>(recorder.hops, [](const auto& h) { return h.batch_pkts; });
  nb::dict firings;
  const auto& runs = recorder.executions;
  firings["time_ns"] = field<uint64_t>(runs, [](const auto& e) { return e.start_ns; });
  firings["end_ns"] = field<uint64_t>(runs, [](const auto& e) { return e.end_ns; });
  firings["module"] = field<uint32_t>(runs, [](const auto& e) { return e.module; });
  firings["batch_pkts"] = field<uint32_t>(runs, [](const auto& e) { return e.batch_pkts; });
  firings["cause"] = field<uint8_t>(runs, [](const auto& e) { return e.cause; });
  nb::dict out;
  out["packets"] = packets;
  out["hops"] = hops;
  out["firings"] = firings;
  return out;
}

}  // namespace batchplane::native
