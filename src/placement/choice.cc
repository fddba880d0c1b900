// SPDX-License-Identifier: BSD-3-Clause
#include "placement/choice.h"

#include <algorithm>

#include "base/batch_law_value.h"
#include "base/error.h"
#include "placement/problem_value.h"

namespace batchplane::placement {
namespace {

constexpr double kMostWatts = 1e6;

double number_from(const Value& value, const std::string& where, double least, double most) {
  const double number = value.is_int()      ? static_cast<double>(value.as_int())
                        : value.is_double() ? value.as_double()
                                            : -1;
  if (!(number >= least && number <= most)) {
    throw ConfigError("expected a number from " + std::to_string(static_cast<int64_t>(least)) +
                          " to " + std::to_string(static_cast<int64_t>(most)),
                      where);
  }
  return number;
}

Policy policy_of(const Value& value, const std::string& where) {
  return policy_from(value.is_string() ? value.as_string() : "", where);
}

const Dict& dict_from(const Value& value, const std::string& where) {
  if (!value.is_dict()) throw ConfigError("expected a mapping", where);
  return value.as_dict();
}

Choice::App app_from(const Value& given, const std::string& where) {
  Choice::App app;
  for (const auto& [key, value] : dict_from(given, where)) {
    const std::string at = where + "." + key;
    if (key == "policy") {
      app.policy = policy_of(value, at);
    } else if (key == "budget_ns") {
      app.budget_ns = number_from(value, at, 1, 1e12);
    } else if (key == "value") {
      app.value = number_from(value, at, 0, 1e9);
    } else {
      throw ConfigError("'" + key + "' is unknown", where, "policy, budget, value");
    }
  }
  return app;
}

std::string word_from(const Value& value, const std::string& where) {
  if (!value.is_string()) throw ConfigError("expected a name", where);
  return value.as_string();
}

Choice::Slowdown slowdown_row_from(const Value& given, const std::string& where) {
  Choice::Slowdown row;
  for (const auto& [key, value] : dict_from(given, where)) {
    const std::string at = where + "." + key;
    std::string* const name = key == "kind"       ? &row.kind
                              : key == "on"       ? &row.on
                              : key == "beside"   ? &row.beside
                              : key == "on_other" ? &row.on_other
                                                  : nullptr;
    if (name != nullptr) {
      *name = word_from(value, at);
    } else if (key == "factor") {
      row.factor = number_from(value, at, 1, 100);
    } else {
      throw ConfigError("'" + key + "' is unknown", where, "kind, on, beside, on_other, factor");
    }
  }
  return row;
}

List slowdown_rows(const std::vector<Choice::Slowdown>& rows) {
  List list;
  for (const Choice::Slowdown& row : rows) {
    list.emplace_back(Dict{{"kind", row.kind},
                           {"on", row.on},
                           {"beside", row.beside},
                           {"on_other", row.on_other},
                           {"factor", row.factor}});
  }
  return list;
}

}  // namespace

Choice choice_from(const Value& given) {
  Choice choice;
  const std::string where = "placement";
  for (const auto& [key, value] : dict_from(given, where)) {
    const std::string at = where + "." + key;
    if (key == "policy") {
      choice.policy = policy_of(value, at);
    } else if (key == "watt_cap") {
      choice.watt_cap = number_from(value, at, 0, kMostWatts);
    } else if (key == "period_ns") {
      choice.period_ns = static_cast<uint64_t>(number_from(value, at, 1e7, 1e10));
    } else if (key == "inline_share") {
      choice.inline_share = number_from(value, at, 0, 1);
    } else if (key == "inline_w") {
      choice.inline_w = number_from(value, at, 0, kMostWatts);
    } else if (key == "apps") {
      for (const auto& [module, app] : dict_from(value, at)) {
        choice.apps[module] = app_from(app, at + "." + module);
      }
    } else if (key == "laws") {
      for (const auto& [kind, law] : dict_from(value, at)) {
        choice.laws[kind] = {true, batch_law_from(law, at + "." + kind)};
      }
    } else if (key == "slowdown") {
      if (!value.is_list()) throw ConfigError("expected a list", at);
      for (const Value& row : value.as_list()) {
        choice.slowdown.push_back(
            slowdown_row_from(row, at + "[" + std::to_string(choice.slowdown.size()) + "]"));
      }
    } else if (key == "laws_origin") {
      choice.laws_origin = word_from(value, at);
    } else {
      throw ConfigError("'" + key + "' is unknown", where,
                        "policy, watt_cap, period, inline_share, inline_w, apps, laws, slowdown");
    }
  }
  return choice;
}

Value choice_value(const Choice& choice) {
  Dict apps;
  for (const auto& [module, app] : choice.apps) {
    Dict row{{"value", app.value}};
    if (app.policy) row["policy"] = kPolicyNames[static_cast<size_t>(*app.policy)];
    if (app.budget_ns > 0) row["budget_ns"] = static_cast<uint64_t>(app.budget_ns);
    apps[module] = std::move(row);
  }
  Dict laws;
  for (const auto& [kind, law] : choice.laws) laws[kind] = batch_law_value(law.batch);
  Dict saved{{"policy", kPolicyNames[static_cast<size_t>(choice.policy)]},
             {"watt_cap", choice.watt_cap},
             {"period_ns", choice.period_ns},
             {"inline_share", choice.inline_share},
             {"inline_w", choice.inline_w}};
  if (!apps.empty()) saved["apps"] = std::move(apps);
  if (!laws.empty()) saved["laws"] = std::move(laws);
  if (!choice.slowdown.empty()) saved["slowdown"] = slowdown_rows(choice.slowdown);
  if (!choice.laws_origin.empty()) saved["laws_origin"] = choice.laws_origin;
  return saved;
}

Choice edited_choice(const Choice& choice, const Value& edit) {
  Dict given = dict_from(edit, "placement");
  given.erase("what");
  const Value module = given.contains("module") ? given["module"] : Value();
  given.erase("module");
  if (!module.is_string()) {
    Dict whole = choice_value(choice).as_dict();
    for (const auto& [key, value] : given) whole[key] = value;
    return choice_from(whole);
  }
  Choice next = choice;
  const Dict apps{{module.as_string(), given}};
  const Choice::App app = choice_from(Dict{{"apps", apps}}).apps.at(module.as_string());
  Choice::App& own = next.apps[module.as_string()];
  if (app.policy) own.policy = app.policy;
  if (app.budget_ns > 0) own.budget_ns = app.budget_ns;
  if (given.contains("value")) own.value = app.value;
  return next;
}

std::vector<double> slowdown_of(const Choice& choice, const Problem& problem,
                                const std::vector<std::string>& kinds) {
  if (choice.slowdown.empty()) return {};
  const size_t n_slots = problem.apps.size() * problem.devices.size();
  std::vector<double> factors(n_slots * n_slots, 1);
  const auto device = [&](const std::string& name) {
    return static_cast<size_t>(std::ranges::find(problem.devices, name, &Device::name) -
                               problem.devices.begin());
  };
  for (const Choice::Slowdown& row : choice.slowdown) {
    const size_t d = device(row.on);
    const size_t e = device(row.on_other);
    if (d == problem.devices.size() || e == problem.devices.size()) continue;
    for (size_t a = 0; a < kinds.size(); ++a) {
      for (size_t b = 0; b < kinds.size(); ++b) {
        if (a == b || kinds[a] != row.kind || kinds[b] != row.beside) continue;
        factors[problem.slot(a, d, b, e)] = row.factor;
      }
    }
  }
  return factors;
}

}  // namespace batchplane::placement
