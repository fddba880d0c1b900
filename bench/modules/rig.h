// SPDX-License-Identifier: BSD-3-Clause
// rig.h - a case of a module as a small pipeline, whose module the profiler times.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/cost_case.h"
#include "profile/module_timer.h"

namespace bench {

using ModuleCase = batchplane::cases::CostCase;

class ModuleBench {
 public:
  // `module_case` outlives it. Throws ConfigError for what no pipeline takes.
  ModuleBench(const ModuleCase& module_case, std::vector<uint32_t> sizes_pkts);
  ~ModuleBench();
  // One batch of 32, looked at packet by packet: what is wrong, or nothing.
  std::string verify();
  // So many times every size.
  void measure(uint32_t rounds);
  [[nodiscard]] batchplane::profile::ModuleProfile result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bench
