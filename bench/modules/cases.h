// SPDX-License-Identifier: BSD-3-Clause
// cases.h - which modules are measured, in which configurations, and what each must keep.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "modules/rig.h"

namespace bench {

// Families of modules add theirs from files of their own, cases_<family>.cc:
//   const AddCases kAdded{[](std::vector<ModuleCase>& all) { all.push_back(plain(...)); }};
struct AddCases {
  explicit AddCases(void (*add)(std::vector<ModuleCase>&));
};

// Every module kind, often in several configurations.
[[nodiscard]] std::vector<ModuleCase> module_cases();
// Kinds that are not measured here, and why.
[[nodiscard]] const std::map<std::string, std::string>& kinds_left_out();

}  // namespace bench
