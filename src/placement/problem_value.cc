// SPDX-License-Identifier: BSD-3-Clause
#include "placement/problem_value.h"

#include <algorithm>

#include "base/batch_law_value.h"
#include "base/error.h"
#include "base/nearest_word.h"

namespace batchplane::placement {

Policy policy_from(const std::string& word, const std::string& where) {
  for (uint8_t p = 0; p < 3; ++p) {
    if (word == kPolicyNames[p]) return static_cast<Policy>(p);
  }
  throw ConfigError("'" + word + "' is no policy", where, "throughput, latency or power");
}

namespace {

// Reads named fields of one dictionary; refuses fields that were not read.
class Fields {
 public:
  Fields(const Value& value, std::string where) : where_(std::move(where)) {
    if (!value.is_dict()) throw ConfigError("expected a mapping", where_);
    dict_ = &value.as_dict();
  }
  double number(const std::string& name, double fallback, double least, double most) {
    const Value* const value = find(name);
    if (value == nullptr) return fallback;
    const bool is_number = value->is_int() || value->is_double();
    const double given = value->is_int()      ? static_cast<double>(value->as_int())
                         : value->is_double() ? value->as_double()
                                              : 0;
    if (!is_number || !(given >= least && given <= most)) {
      throw ConfigError("expected a number from " + text(least) + " to " + text(most), key(name));
    }
    return given;
  }
  std::string word(const std::string& name) {
    const Value* const value = find(name);
    if (value == nullptr) return "";
    if (!value->is_string()) throw ConfigError("expected a word", key(name));
    return value->as_string();
  }
  bool flag(const std::string& name, bool fallback) {
    const Value* const value = find(name);
    if (value == nullptr) return fallback;
    if (!value->is_bool()) throw ConfigError("expected true or false", key(name));
    return value->as_bool();
  }
  const Value* find(const std::string& name) {
    known_.push_back(name);
    const auto it = dict_->find(name);
    return it == dict_->end() || it->second.is_null() ? nullptr : &it->second;
  }
  void finish() const {
    for (const auto& [name, value] : *dict_) {
      if (std::ranges::find(known_, name) != known_.end()) continue;
      const std::string near = nearest_word(name, known_);
      throw ConfigError("'" + name + "' is unknown", where_,
                        near.empty() ? "" : "did you mean '" + near + "'?");
    }
  }
  [[nodiscard]] std::string key(const std::string& name) const { return where_ + "." + name; }

 private:
  static std::string text(double number) {
    std::string digits = std::to_string(number);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.pop_back();
    return digits;
  }
  const Dict* dict_ = nullptr;
  std::string where_;
  std::vector<std::string> known_;
};

template <class T>
size_t index_of(const std::vector<T>& all, const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return i;
    names.push_back(all[i].name);
  }
  const std::string near = nearest_word(name, names);
  throw ConfigError("there is no '" + name + "'", where,
                    near.empty() ? "" : "did you mean '" + near + "'?");
}

const Dict& section(Fields& fields, const std::string& name, size_t most) {
  const Value* const value = fields.find(name);
  if (value == nullptr || !value->is_dict() || value->as_dict().empty()) {
    throw ConfigError("expected a mapping by name", fields.key(name));
  }
  if (value->as_dict().size() > most) {
    throw ConfigError("more than " + std::to_string(most), fields.key(name));
  }
  return value->as_dict();
}

Law law_from(const Value& value, const std::string& where) {
  Fields fields(value, where);
  Law law{.is_there = true};
  law.max_batch_pkts =
      static_cast<uint32_t>(fields.number("max_batch_pkts", kMaxBatchPkts, 1, kMaxBatchPkts));
  Dict batch = value.as_dict();
  batch.erase("max_batch_pkts");
  law.batch = batch_law_from(batch, where);
  return law;
}

void read_devices(Fields& fields, Problem& problem) {
  const std::string where = fields.key("devices");
  for (const auto& [name, value] : section(fields, "devices", kMaxDevices)) {
    Fields of(value, where + "." + name);
    Device device{.name = name};
    device.off_w = of.number("off_w", 0, 0, 1e5);
    device.idle_w = of.number("idle_w", 0, 0, 1e5);
    device.active_w = of.number("active_w", 0, 0, 1e5);
    device.is_up = of.flag("is_up", true);
    of.finish();
    problem.devices.push_back(std::move(device));
  }
}

void read_apps(Fields& fields, Problem& problem) {
  const std::string where = fields.key("apps");
  for (const auto& [name, value] : section(fields, "apps", kMaxApps)) {
    Fields of(value, where + "." + name);
    App app{.name = name};
    const std::string policy = of.word("policy");
    if (!policy.empty()) app.policy = policy_from(policy, of.key("policy"));
    app.rate_pps = of.number("rate_pps", 0, 0, 1e10);
    app.pkt_bytes = of.number("pkt_bytes", 64, 1, 65'536);
    app.budget_ns = of.number("budget_ns", 1e6, 1, 1e12);
    app.value = of.number("value", 1, 0, 1e9);
    std::vector<Law> laws(problem.devices.size());
    for (const auto& [device, law] : section(of, "laws", kMaxDevices)) {
      const std::string at = of.key("laws") + "." + device;
      laws[index_of(problem.devices, device, at)] = law_from(law, at);
    }
    of.finish();
    problem.apps.push_back(std::move(app));
    problem.laws.push_back(std::move(laws));
  }
}

void read_slowdown(Fields& fields, Problem& problem) {
  const Value* const list = fields.find("slowdown");
  if (list == nullptr) return;
  const size_t n = problem.apps.size() * problem.devices.size();
  problem.slowdown.assign(n * n, 1);
  if (!list->is_list()) throw ConfigError("expected a list", fields.key("slowdown"));
  for (const Value& value : list->as_list()) {
    const std::string where = fields.key("slowdown");
    Fields of(value, where);
    const size_t a = index_of(problem.apps, of.word("app"), where);
    const size_t d = index_of(problem.devices, of.word("on"), where);
    const size_t b = index_of(problem.apps, of.word("beside"), where);
    const size_t e = index_of(problem.devices, of.word("on_other"), where);
    problem.slowdown[problem.slot(a, d, b, e)] = of.number("factor", 1, 1, 100);
    of.finish();
  }
}

Problem read_problem(Fields& fields) {
  Problem problem;
  read_devices(fields, problem);
  read_apps(fields, problem);
  read_slowdown(fields, problem);
  problem.watt_cap = fields.number("watt_cap", 0, 0, 1e6);
  problem.most_utilisation = fields.number("most_utilisation", 0.9, 0.01, 1);
  return problem;
}

Change change_from(const Value& value, const Problem& problem, const std::string& where) {
  Fields fields(value, where);
  Change change;
  change.at_ns = static_cast<uint64_t>(fields.number("at_ns", 0, 0, 1e15));
  const std::string app = fields.word("app");
  if (!app.empty()) change.app = static_cast<int>(index_of(problem.apps, app, where));
  change.rate_pps = fields.number("rate_pps", -1, 0, 1e10);
  change.policy = fields.word("policy");
  if (!change.policy.empty()) (void)policy_from(change.policy, where + ".policy");
  const std::string device = fields.word("device");
  if (!device.empty()) change.device = static_cast<int>(index_of(problem.devices, device, where));
  change.is_up = fields.flag("is_up", true);
  change.watt_cap = fields.number("watt_cap", -1, 0, 1e6);
  fields.finish();
  return change;
}

}  // namespace

Problem problem_from(const Value& value, const std::string& where) {
  Fields fields(value, where);
  Problem problem = read_problem(fields);
  fields.finish();
  return problem;
}

PlantSpec plant_from(const Value& value, const std::string& where) {
  Fields fields(value, where);
  PlantSpec spec;
  spec.truth = read_problem(fields);
  if (const Value* const changes = fields.find("changes"); changes != nullptr) {
    if (!changes->is_list()) throw ConfigError("expected a list", fields.key("changes"));
    for (const Value& change : changes->as_list()) {
      spec.changes.push_back(change_from(change, spec.truth, fields.key("changes")));
    }
    std::ranges::stable_sort(spec.changes, {}, &Change::at_ns);
  }
  const auto whole = [&](const char* name, uint64_t fallback, double least, double most) {
    return static_cast<uint64_t>(fields.number(name, static_cast<double>(fallback), least, most));
  };
  spec.duration_ns = whole("duration_ns", spec.duration_ns, 1e6, 1e13);
  spec.period_ns = whole("period_ns", spec.period_ns, 1e6, 1e10);
  spec.seed = whole("seed", spec.seed, 0, 1e15);
  spec.is_random = fields.flag("is_random", true);
  fields.finish();
  return spec;
}

Plan plan_from(const Value& value, const Problem& problem, const std::string& where) {
  Plan plan(problem.apps.size());
  if (!value.is_dict()) throw ConfigError("expected a mapping", where);
  for (const auto& [app, places] : value.as_dict()) {
    const std::string at = where + "." + app;
    Placed& placed = plan[index_of(problem.apps, app, at)];
    if (!places.is_dict()) throw ConfigError("expected a mapping", at);
    for (const auto& [device, given] : places.as_dict()) {
      const size_t d = index_of(problem.devices, device, at);
      Fields fields(given, at + "." + device);
      placed.share[d] = fields.number("share", 1, 0, 1);
      placed.batch_pkts[d] =
          static_cast<uint32_t>(fields.number("batch_pkts", 1, 1, kMaxBatchPkts));
      fields.finish();
    }
  }
  return plan;
}

Value plan_value(const Problem& problem, const Plan& plan) {
  Dict out;
  for (size_t a = 0; a < plan.size(); ++a) {
    Dict places;
    for (size_t d = 0; d < problem.devices.size(); ++d) {
      if (plan[a].share[d] <= 0) continue;
      places[problem.devices[d].name] =
          Dict{{"share", plan[a].share[d]}, {"batch_pkts", plan[a].batch_pkts[d]}};
    }
    out[problem.apps[a].name] = std::move(places);
  }
  return out;
}

Value outcome_value(const Problem& problem, const Outcome& outcome) {
  Dict delay;
  Dict busy;
  for (size_t a = 0; a < problem.apps.size(); ++a) {
    delay[problem.apps[a].name] = outcome.delay_ns[a];
  }
  for (size_t d = 0; d < problem.devices.size(); ++d) {
    busy[problem.devices[d].name] = outcome.utilisation[d];
  }
  return Dict{{"is_feasible", outcome.is_feasible},
              {"served", outcome.served_value},
              {"watts", outcome.watts},
              {"delay_ns", std::move(delay)},
              {"utilisation", std::move(busy)},
              {"cost", outcome.cost}};
}

}  // namespace batchplane::placement
