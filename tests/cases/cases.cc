// SPDX-License-Identifier: BSD-3-Clause
#include "cases/cases.h"
#include "core/module/kind.h"

#include <algorithm>

namespace batchplane::cases {
namespace {

// Filled before main() by the files beside the modules.
std::vector<ModuleCases>& added() {
  static std::vector<ModuleCases> list;
  return list;
}

const char* name_of(Need need) {
  switch (need) {
    case Need::kFuzz:
      return "fuzz case: list one under .fuzz in its x_cases.cc";
    case Need::kCost:
      return "cost case: add one under .cost in its x_cases.cc";
    case Need::kGolden:
      return "golden case: write its x_golden.py, then make golden-update";
  }
  return "";
}

}  // namespace

AddCases::AddCases(const ModuleCases& cases) { added().push_back(cases); }

std::vector<FuzzCase> fuzz_cases() {
  std::vector<FuzzCase> all;
  for (const ModuleCases& one : added()) all.insert(all.end(), one.fuzz.begin(), one.fuzz.end());
  return all;
}

std::vector<CostCase> cost_cases() {
  std::vector<CostCase> all;
  for (const ModuleCases& one : added()) {
    if (one.cost != nullptr) one.cost(all);
  }
  return all;
}

std::vector<Without> kinds_without(Need need) {
  std::vector<Without> all;
  for (const ModuleCases& one : added()) {
    std::ranges::copy_if(one.without, std::back_inserter(all),
                         [need](const Without& without) { return without.need == need; });
  }
  return all;
}

std::vector<std::string> faults_of(Need need, const std::set<std::string>& kinds,
                                   const std::set<std::string>& covered,
                                   const std::vector<Without>& without) {
  std::vector<std::string> faults;
  std::set<std::string> excused;
  for (const Without& one : without) {
    if (one.need != need) continue;
    excused.insert(one.kind);
    if (!kinds.contains(one.kind)) {
      faults.push_back("there is no module kind '" + one.kind + "' to say why it has no case");
    } else if (covered.contains(one.kind)) {
      faults.push_back("module kind '" + one.kind +
                       "' has a case and says why it has none: " + one.why);
    }
  }
  for (const std::string& kind : kinds) {
    if (covered.contains(kind) || excused.contains(kind)) continue;
    faults.push_back("module kind '" + kind + "' has no " + name_of(need) +
                     ", or say there under .without why not (docs/adding-a-module.md)");
  }
  return faults;
}

std::vector<std::string> faults_of(Need need, const std::set<std::string>& covered) {
  std::set<std::string> kinds;
  for (const ModuleInfo* info : all_module_kinds()) {
    const bool is_of_test = info->kind.starts_with("test_") || info->kind.starts_with("stand_in_");
    if (!is_of_test) kinds.insert(info->kind);
  }
  return faults_of(need, kinds, covered, kinds_without(need));
}

}  // namespace batchplane::cases
