// SPDX-License-Identifier: BSD-3-Clause
// decompose.h - parts of a pipeline go to other workers where one cannot keep its promises, and come back
// when it can: the papers' two rules, and one that looks at loads. docs/controllers.md says when which acts.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "slo/model/controller.h"

namespace batchplane::slo {

// Beside a controller of buffers, over all models that moves lead to. Reads no clock.
class Decomposer {
 public:
  explicit Decomposer(const Settings& settings) : settings_(settings) {}

  // After each period; `snapshot` is of `model`. Every master_periods there may be moves.
  std::vector<exec::MoveChange> step(const Model& model, const Snapshot& snapshot);

  // Work beyond this share of a worker's time overloads it; what would take less than the second share fits
  // on one again.
  static constexpr double kFullLoad = 0.95;
  static constexpr double kReturnLoad = 0.6;
  // A part comes to where flows have promises only if it leaves them this share of their time.
  static constexpr double kPartDelay = 0.5;
  // What a packet from another worker costs those two, beside the queue: its lines change cores.
  static constexpr double kSendNs = 9;
  static constexpr double kTakeNs = 20;

 private:
  struct Part {
    std::string home;    // worker
    uint64_t since = 0;  // period
  };
  struct View;

  void forget_what_is_back(const View& view);
  void cut_inherent(const View& view);
  void cut_task(const View& view, uint32_t task);
  void move_violating_tasks(const View& view);
  void balance(const View& view);
  bool balance_once(const View& view, uint32_t worker, std::vector<double>& load);
  void bring_back(const View& view);
  [[nodiscard]] bool may_return(const View& view, uint32_t module, const Part& part) const;
  void move(const View& view, uint32_t module, uint32_t worker, const char* reason);

  const Settings settings_;
  uint64_t n_periods_ = 0;
  std::map<std::string, Part> parts_;         // that this has moved, by module
  std::map<std::string, uint64_t> patience_;  // periods that a part stays away at least
  std::map<std::string, uint64_t> returned_;  // when
  std::vector<exec::MoveChange> moves_;       // of this step
};

}  // namespace batchplane::slo
