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
  // on one again, of its time or of what it brought in when it was full.
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
    // Packets a ns that its home brought in with it, at most; 0: it did not leave for its load.
    double full_pkts_per_ns = 0;
  };
  struct View;

  void forget_what_is_back(const View& view);
  void cut_inherent(const View& view);
  void cut_task(const View& view, uint32_t task);
  void move_violating_tasks(const View& view);
  void balance(const View& view);
  bool balance_once(const View& view, uint32_t worker, std::vector<double>& load);
  void bring_back(const View& view);
  void undo_without_gain(const View& view);
  [[nodiscard]] bool is_resting(const View& view, uint32_t module) const;
  [[nodiscard]] bool may_return(const View& view, const std::string& name, const Part& part) const;
  bool go_back(const View& view, const std::string& name, const Part& part, const char* reason);
  void move(const View& view, uint32_t module, uint32_t worker, const char* reason);

  const Settings settings_;
  uint64_t n_periods_ = 0;
  std::map<std::string, Part> parts_;         // that this has moved, by module
  std::map<std::string, uint64_t> patience_;  // periods that a part stays away at least
  std::map<std::string, uint64_t> returned_;  // when
  std::vector<exec::MoveChange> moves_;       // of this step
  double rate_before_ = 0;  // packets a ns that entered when the last ones left for their load
  std::vector<std::string> on_trial_;  // these
};

}  // namespace batchplane::slo
