// SPDX-License-Identifier: BSD-3-Clause
// module_case.h - a module with parameters, as fuzz_modules and the allocation test run it.
#pragma once

namespace batchplane::fuzz {

struct ModuleCase {
  const char* kind;
  const char* params;  // JSON
  unsigned connected_gates = 1;
};

}  // namespace batchplane::fuzz
