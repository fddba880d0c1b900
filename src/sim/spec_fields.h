// SPDX-License-Identifier: BSD-3-Clause
// spec_fields.h - reads single values of a specification; an invalid one is refused with a one-line
// message.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest_word.h"
#include "base/value.h"

namespace batchplane::sim {

inline constexpr double kMostAgeNs = 1e15;

inline double number(const Value& from, const std::string& key, double fallback,
                     const std::string& where, double most = 1e18) {
  const Value& value = from[key];
  if (value.is_null()) return fallback;
  const double result = value.as_double();
  if (!(result >= 0 && result <= most)) {
    throw ConfigError("'" + key + "' is " + std::to_string(result), where,
                      "give a number from 0 to " + std::to_string(static_cast<int64_t>(most)));
  }
  return result;
}

inline uint64_t whole(const Value& from, const std::string& key, uint64_t fallback,
                      const std::string& where) {
  return static_cast<uint64_t>(
      number(from, key, static_cast<double>(fallback), where, 9007199254740992.0));
}

inline uint32_t at_least_one(const Value& from, const std::string& key, uint32_t fallback,
                             const std::string& where, double most) {
  const uint64_t n = whole(from, key, fallback, where);
  if (n >= 1 && static_cast<double>(n) <= most) return static_cast<uint32_t>(n);
  throw ConfigError("'" + key + "' is " + std::to_string(n), where,
                    "give a number from 1 to " + std::to_string(static_cast<int64_t>(most)));
}

inline bool flag(const Value& from, const std::string& key, bool fallback) {
  return from[key].is_null() ? fallback : from[key].as_bool();
}

inline std::string text(const Value& from, const std::string& key, const std::string& fallback) {
  return from[key].is_null() ? fallback : from[key].as_string();
}

[[noreturn]] inline void refuse_name(const std::string& what, const std::string& name,
                                     const std::vector<std::string>& known,
                                     const std::string& where) {
  const std::string near = nearest_word(name, known);
  throw ConfigError("no " + what + " '" + name + "'", where,
                    near.empty() ? "" : "did you mean '" + near + "'?");
}

// One of several words; defaults to the first.
inline size_t choice(const Value& from, const std::string& key,
                     const std::vector<std::string>& words, const std::string& where) {
  const std::string word = text(from, key, words.front());
  const auto it = std::ranges::find(words, word);
  if (it != words.end()) return static_cast<size_t>(it - words.begin());
  std::string list;
  for (const std::string& known : words) list += (list.empty() ? "" : ", ") + known;
  throw ConfigError("'" + key + "' is '" + word + "'", where, "choose from " + list);
}

inline void refuse_other_keys(const Value& from, const std::vector<std::string>& known,
                              const std::string& what, const std::string& where) {
  for (const auto& [key, value] : from.as_dict()) {
    if (std::ranges::find(known, key) == known.end()) refuse_name(what, key, known, where);
  }
}

}  // namespace batchplane::sim
