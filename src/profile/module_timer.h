// SPDX-License-Identifier: BSD-3-Clause
// module_timer.h - times one module, or several alike in turn, repeatedly on every batch size, and
// fits a cost law.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "profile/fit.h"
#include "profile/module_rig.h"

namespace batchplane::profile {

struct ModuleProfile {
  std::string name;  // of a group: the first member that traffic reaches
  std::string kind;
  std::vector<std::string> members;      // of the group, itself among them
  CostLaw law;                           // a table of all sizes asked for
  CostFit fit;                           // of its line
  std::vector<CostLaw::Line> resampled;  // see Fitted; for the module alone
  Interval per_batch_ns;                 // 95 %
  Interval per_pkt_ns;
  uint32_t max_measured_pkts = 0;  // beyond this, the table continues with the line's slope
  uint32_t rounds = 0;
  std::string reason;  // why the line does not describe the module; empty if it does
  std::string note;    // other remarks, such as measurement on stand-ins
  Doubts doubts;
};

// Owner: one thread, the same as the stage's. Packets are returned between calls.
class ModuleTimer {
 public:
  // `members` must point to objects that outlive the timer. `sizes_pkts` are ascending; sizes from
  // the first one that the module cannot be given are left out. `stir`: see ModuleRig.
  ModuleTimer(Stage& stage, const std::vector<Member>& members, std::vector<uint32_t> sizes_pkts,
              std::function<void()> stir);

  // Runs rounds until the time is up, but at least a few; each has every size once, in a new order.
  void measure(double budget_ms, uint32_t max_rounds, Rng& rng);
  // The caller fills in name, kind, members and note.
  [[nodiscard]] ModuleProfile result() const;

 private:
  double time_ns(uint32_t n_pkts);

  ModuleRig rig_;
  std::vector<uint32_t> sizes_pkts_;
  std::vector<uint32_t> left_out_pkts_;
  std::vector<uint32_t> order_;
  Rounds rounds_{{}};
};

}  // namespace batchplane::profile
