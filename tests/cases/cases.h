// SPDX-License-Identifier: BSD-3-Clause
// cases.h - with what each kind of module is fuzzed, looked at for allocations, and measured.
//
// They stand beside the module, in a file x_cases.cc that the build finds by its name:
//
//   const AddCases kCases{{.fuzz = {{"ttl", "{}"}}, .cost = add_costs}};
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cases/cost_case.h"
#include "core/module/module.h"

namespace batchplane::cases {

// A configuration that gets frames of every sort, in an environment with the interfaces "lan" and
// "wan" on the port "null", and a port "loop" from which an input gets the frames.
struct FuzzCase {
  const char* kind;
  const char* params;  // JSON that reaches the module's branches; ${TMP} is a folder to write to
  uint32_t connected_gates = 1;
  // Live commands: `which` is 1 to 7, `id` below 64. What the module refuses is refused.
  void (*edit)(Module&, uint32_t which, uint32_t id) = nullptr;
  bool needs_kernel = false;  // a device of the kernel, which not everybody may make
};

enum class Need : uint8_t { kFuzz, kCost, kGolden };

// A kind that has no such case, and why.
struct Without {
  std::string kind;
  Need need;
  std::string why;
};

struct ModuleCases {
  std::vector<FuzzCase> fuzz = {};
  void (*cost)(std::vector<CostCase>& all) = nullptr;  // called when asked for: tables are large
  std::vector<Without> without = {};
};

struct AddCases {
  explicit AddCases(const ModuleCases& cases);
};

// Of all files, in an order that does not change.
[[nodiscard]] std::vector<FuzzCase> fuzz_cases();
[[nodiscard]] std::vector<CostCase> cost_cases();
[[nodiscard]] std::vector<Without> kinds_without(Need need);

// One line for each of `kinds` that is neither in `covered` nor has said why, and for each that
// says why although it is there, or is unknown.
[[nodiscard]] std::vector<std::string> faults_of(Need need, const std::set<std::string>& kinds,
                                                 const std::set<std::string>& covered,
                                                 const std::vector<Without>& without);
// The same for all kinds of this program but those of tests, test_x and stand_in_x.
[[nodiscard]] std::vector<std::string> faults_of(Need need, const std::set<std::string>& covered);

}  // namespace batchplane::cases
