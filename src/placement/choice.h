// SPDX-License-Identifier: BSD-3-Clause
// choice.h - the `placement` of a pipeline.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/value.h"
#include "placement/problem.h"

namespace batchplane::placement {

struct Choice {
  struct App {
    std::optional<Policy> policy;
    double budget_ns = 0;  // 0: a share of the tightest SLO on its path
    double value = 1;
  };
  Policy policy = Policy::kPower;
  double watt_cap = 0;
  uint64_t period_ns = 100'000'000;
  double inline_share = 0.5;        // of a worker's time, for modules that run on it
  double inline_w = 0;              // power of a worker that is fully busy with them
  std::map<std::string, App> apps;  // by module
  // By module kind for the worker; by KIND@DEVICE for devices.
  std::map<std::string, Law> laws;
  // Factor by which a batch takes longer beside another one, by module kinds; devices by name, or `inline`.
  struct Slowdown {
    std::string kind;
    std::string on;
    std::string beside;
    std::string on_other;
    double factor = 1;
    bool operator==(const Slowdown&) const = default;
  };
  std::vector<Slowdown> slowdown;
  std::string laws_origin;  // in words: who measured laws and slow-downs, and when
};

// Throws ConfigError.
[[nodiscard]] Choice choice_from(const Value& given);
// In the form of a pipeline's `placement`.
[[nodiscard]] Value choice_value(const Choice& choice);
// The choice after a live edit: {policy, watt_cap, module, ...}. Throws ConfigError.
[[nodiscard]] Choice edited_choice(const Choice& choice, const Value& edit);
// For a problem's applications, whose modules are of these kinds: as Problem::slowdown; empty: unknown.
[[nodiscard]] std::vector<double> slowdown_of(const Choice& choice, const Problem& problem,
                                              const std::vector<std::string>& kinds);

}  // namespace batchplane::placement
