// SPDX-License-Identifier: BSD-3-Clause
// alike.h - which modules fill their buffers equally fast, and which flows cross such modules.
//
// Branches of a splitter often do the same work at the same rate. What is learnt about one of their flows then
// holds for all of them, and buffers with equal triggers take turns, while those with unequal ones drift against
// each other: now and then several fire in one run, which the model does not see.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "slo/model/budget.h"
#include "slo/model/controller.h"

namespace batchplane::slo {

class Alike {
 public:
  explicit Alike(const Program& program);
  // Sets ProgramModule::alike: modules are alike if they get about the same packets, cost the
  // same within the error of estimates, have flows of the same SLO, and no flow crosses two of them.
  void find(const Snapshot& snapshot, Program& program);
  // By flow: the first flow with the same SLO through modules that are alike, or the flow itself.
  [[nodiscard]] const std::vector<uint32_t>& flows() const { return flows_; }

 private:
  void find_modules(const Snapshot& snapshot, Program& program);
  [[nodiscard]] uint32_t first_of(const Program& program, uint32_t module) const;
  [[nodiscard]] bool joins(const Program& program, uint32_t module, uint32_t first) const;
  void find_flows(const Snapshot& snapshot, const Program& program);

  std::vector<std::vector<uint32_t>> module_flows_;
  std::vector<uint64_t> slo_ns_;  // by module: the shortest of its flows
  std::vector<uint32_t> sorted_;  // modules
  std::vector<uint32_t> firsts_;  // of the classes of modules
  std::vector<uint32_t> labels_;  // of the classes, by the module found first
  // By flow: hash of its SLO and of the classes of its modules; with its number.
  std::vector<std::pair<uint64_t, uint32_t>> kinds_;
  std::vector<uint32_t> flows_;
};

}  // namespace batchplane::slo
