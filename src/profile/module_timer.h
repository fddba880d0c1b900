// SPDX-License-Identifier: BSD-3-Clause
// module_timer.h - times one module, or several alike in turn, on every batch size again and again,
// and makes a cost law of that.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "profile/fit.h"
#include "profile/module_rig.h"

namespace batchplane::profile {

struct ModuleProfile {
  std::string name;  // of the group the first that traffic reaches
  std::string kind;
  std::vector<std::string> members;      // of the group, itself among them
  CostLaw law;                           // a table of all sizes asked for
  CostFit fit;                           // of its line
  std::vector<CostLaw::Line> resampled;  // see Fitted; as the module is alone
  Interval per_batch_ns;                 // 95 %
  Interval per_pkt_ns;
  uint32_t max_measured_pkts = 0;  // above it the table goes on as the line rises
  uint32_t rounds = 0;
  std::string reason;  // what the line does not tell; empty when it tells all
  std::string note;    // what else must be known: measured on stand-ins, say
};

// Owner: one thread, as of the stage. Packets are given back between calls.
class ModuleTimer {
 public:
  // What `members` point to outlives the timer. `sizes_pkts` ascend; those from the first that the
  // module cannot be given are left out. `stir`: see ModuleRig.
  ModuleTimer(Stage& stage, const std::vector<Member>& members, std::vector<uint32_t> sizes_pkts,
              std::function<void()> stir);

  // Rounds until the time is up, each with every size once in another order; a few at least.
  void measure(double budget_ms, uint32_t max_rounds, Rng& rng);
  // Name, kind, members and note are for the caller to say.
  [[nodiscard]] ModuleProfile result() const;

 private:
  double time_ns(uint32_t n_pkts);

  ModuleRig rig_;
  std::vector<uint32_t> sizes_pkts_;
  std::vector<uint32_t> left_out_pkts_;
  std::vector<uint32_t> order_;
  Rounds rounds_{0};
};

}  // namespace batchplane::profile
