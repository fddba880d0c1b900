// SPDX-License-Identifier: BSD-3-Clause
#include "slo/model/settings.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/nearest_word.h"

namespace batchplane::slo {
namespace {

struct Entry {
  const char* name;
  double least;
  double most;
  bool is_whole;
  void (*set)(Settings&, double);
};

constexpr Entry kEntries[] = {
    {"percentile", 0, 1, false, [](Settings& s, double v) { s.percentile = v; }},
    {"tolerance", 0, 0.9, false, [](Settings& s, double v) { s.tolerance = v; }},
    {"violated_ratio", 0.001, 0.5, false, [](Settings& s, double v) { s.violated_ratio = v; }},
    {"push_ratio", 0, 1, false, [](Settings& s, double v) { s.push_ratio = v; }},
    {"pull_pkts", 1, 256, true,
     [](Settings& s, double v) { s.pull_pkts = static_cast<uint32_t>(v); }},
    {"controllable_bound", 0, 1, false, [](Settings& s, double v) { s.controllable_bound = v; }},
    {"max_iterations", 1, 1000, true,
     [](Settings& s, double v) { s.max_iterations = static_cast<uint32_t>(v); }},
    {"turnaround_extra_ns", 0, 1e9, true,
     [](Settings& s, double v) { s.turnaround_extra_ns = static_cast<uint64_t>(v); }},
    {"master_periods", 1, 1e6, true,
     [](Settings& s, double v) { s.master_periods = static_cast<uint32_t>(v); }},
    {"budget_step", 0, 100, false, [](Settings& s, double v) { s.budget_step = v; }},
    {"budget_shift", 0, 1, false, [](Settings& s, double v) { s.budget_shift = v; }},
    {"hold_ns_per_pkt", 0, 1e6, false, [](Settings& s, double v) { s.hold_ns_per_pkt = v; }},
    {"hold_ns_per_batch", 0, 1e6, false, [](Settings& s, double v) { s.hold_ns_per_batch = v; }},
};

std::string range_of(const Entry& entry) {
  char text[64];
  std::snprintf(text, sizeof text, "%s from %g to %g",
                entry.is_whole ? "a whole number" : "a number", entry.least, entry.most);
  return text;
}

constexpr const char* kDecompose = "decompose";

Decompose decompose_from(const Value& value) {
  std::vector<std::string> names(std::begin(kDecomposeNames), std::end(kDecomposeNames));
  if (value.is_string()) {
    const auto name = std::ranges::find(names, value.as_string());
    if (name != names.end()) return static_cast<Decompose>(name - names.begin());
  }
  throw ConfigError("'decompose' cannot be this", "settings.decompose",
                    "off, greedy, normgreedy or balance");
}

}  // namespace

Settings settings_from(const Value& given, const Settings& base) {
  Settings settings = base;
  if (given.is_null()) return settings;
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  names.emplace_back(kDecompose);
  for (const auto& [name, value] : given.as_dict()) {
    if (name == kDecompose) {
      settings.decompose = decompose_from(value);
      continue;
    }
    const auto* entry = std::ranges::find(kEntries, name, &Entry::name);
    if (entry == std::end(kEntries)) {
      const std::string near = nearest_word(name, names);
      throw ConfigError(
          "there is no setting '" + name + "'", "settings",
          near.empty() ? "docs/controllers.md lists them" : "did you mean '" + near + "'?");
    }
    const double number = value.is_number() ? value.as_double() : std::nan("");
    const bool is_good = number >= entry->least && number <= entry->most &&
                         (!entry->is_whole || number == std::floor(number));
    if (!is_good) {
      throw ConfigError("'" + name + "' cannot be this", "settings." + name, range_of(*entry));
    }
    entry->set(settings, number);
  }
  return settings;
}

}  // namespace batchplane::slo
