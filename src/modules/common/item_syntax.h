// SPDX-License-Identifier: BSD-3-Clause
// item_syntax.h - checks the items of lists and live commands, with a clear one-line message for
// each error.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/net.h"
#include "base/value.h"
#include "core/module/args.h"

namespace batchplane {

inline void check_keys(const Value& item, std::initializer_list<const char*> allowed,
                       const std::string& where) {
  std::string all;
  for (const char* key : allowed) all += (all.empty() ? "" : ", ") + std::string(key);
  if (!item.is_dict()) throw ConfigError("expected a mapping", where, "with " + all);
  for (const auto& [key, value] : item.as_dict()) {
    const bool is_known = std::ranges::any_of(
        allowed, [&, name = &key](const char* other) { return *name == other; });
    if (!is_known) throw ConfigError("unknown key '" + key + "'", where, "known are " + all);
  }
}

inline int64_t int_value(const Value& value, int64_t least, int64_t most,
                         const std::string& where) {
  if (!value.is_int() || value.as_int() < least || value.as_int() > most) {
    throw ConfigError("expected an integer", where,
                      "from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value.as_int();
}

// The integer under `key`, or `missing` when there is none.
inline int64_t int_under(const Value& item, const std::string& key, int64_t least, int64_t most,
                         int64_t missing, const std::string& where) {
  return item.has(key) ? int_value(item[key], least, most, where + "." + key) : missing;
}

// The MAC address under `key`, all zero when there is none.
inline net::Mac mac_under(const Value& item, const std::string& key, const std::string& where) {
  if (!item.has(key)) return {};
  const auto mac = item[key].is_string() ? net::parse_mac(item[key].as_string()) : std::nullopt;
  if (!mac) {
    throw ConfigError("expected a MAC address", where + "." + key, "such as 02:00:00:00:00:01");
  }
  return *mac;
}

// The items of a command: a single one, or several under "items" or the list's own name.
inline List items_under(const Value& args, const std::string& list_name) {
  if (args.is_list()) return args.as_list();
  if (args["items"].is_list()) return args["items"].as_list();
  if (args[list_name].is_list()) return args[list_name].as_list();
  return {args};
}

// Parameters that a live `set` may change: `now` overridden by `changes`, checked as in a pipeline.
inline Args checked_set(const std::vector<ParamSpec>& specs, Dict now, const Value& changes) {
  if (!changes.is_dict() || changes.as_dict().empty()) {
    std::string names;
    for (const ParamSpec& spec : specs) names += (names.empty() ? "" : ", ") + spec.name;
    throw ConfigError("expected a mapping", "set", "give one or more of " + names);
  }
  for (const auto& [key, value] : changes.as_dict()) now[key] = value;
  std::vector<ConfigError> errors;
  Args args(specs, now, "set", errors);
  if (!errors.empty()) throw ConfigError(errors.front());
  return args;
}

inline Dict values_of(const std::vector<ParamSpec>& specs, const Args& args) {
  Dict values;
  for (const ParamSpec& spec : specs) values[spec.name] = args.at(spec.name);
  return values;
}

inline std::vector<ParamSpec> joined(std::vector<ParamSpec> first,
                                     const std::vector<ParamSpec>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace batchplane
