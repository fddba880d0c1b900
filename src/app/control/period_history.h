// SPDX-License-Identifier: BSD-3-Clause
// period_history.h - records the last periods one by one, to look at afterwards without disturbing them.
#pragma once

#include <deque>
#include <vector>

#include "base/value.h"
#include "core/engine/control_tap.h"
#include "exec/control.h"

namespace batchplane::app {

// Owner: the control loop.
class PeriodHistory {
 public:
  static constexpr size_t kKept = 1000;

  // `generators`: how often and how long they have been stalled since their start.
  void note(const exec::ControlModel& model, const exec::PeriodSnapshot& period,
            const ControlTap::Gaps& gaps, const ControlTap::Gaps& generators);
  void clear() { periods_.clear(); }

  // {"modules": names, "flows": names, "percentile", "periods": [{"now_ns", "period_ns", "gap_ns",
  // "gaps", "generator_gap_ns", "generator_gaps", "in_pkts", "modules": [[batches, pkts]], "flows":
  // [[pkts, late_pkts, delay_ns]]}]}
  [[nodiscard]] Value value(const exec::ControlModel& model, double percentile) const;

 private:
  struct Module {
    uint64_t batches;
    uint64_t pkts;
  };
  struct Flow {
    uint64_t pkts;
    uint64_t late_pkts;
    uint64_t delay_ns;
  };
  struct Period {
    uint64_t now_ns;
    uint64_t period_ns;
    uint64_t gap_ns;
    uint64_t gaps;
    uint64_t generator_gap_ns;
    uint64_t generator_gaps;
    uint64_t in_pkts;
    std::vector<Module> modules;
    std::vector<Flow> flows;
  };
  std::deque<Period> periods_;
  ControlTap::Gaps last_generators_;
};

}  // namespace batchplane::app
