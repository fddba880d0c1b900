// SPDX-License-Identifier: BSD-3-Clause
// control_log.h - the control loop's records: SLOs met, times of its steps, last decisions, errors.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <vector>

#include "base/value.h"
#include "core/engine/control_tap.h"
#include "exec/control.h"
#include "exec/flow_meter.h"
#include "slo/model/controller.h"

namespace batchplane::app {

// Durations of the last thousand steps.
class StepTimes {
 public:
  void note(uint64_t ns);
  // {"median", "p99", "max"}; null without steps.
  [[nodiscard]] Value value() const;

 private:
  static constexpr size_t kKept = 1000;
  std::vector<uint64_t> ns_;
  size_t next_ = 0;
};

// Delays over several periods, counted relative to the SLO.
struct CountedDelays {
  uint64_t periods = 0;
  uint64_t pkts = 0;
  uint64_t late_pkts = 0;
  uint64_t delay_sum_ns = 0;
  uint64_t delay_max_ns = 0;
  uint64_t slo_buckets[exec::SloBuckets::kCount] = {};

  void add(const exec::FlowPeriod& period);
  // The delay that a share 1 - p of the packets exceeded, accurate to some percent of the SLO; null for fewer
  // than 10 / (1 - p) packets.
  [[nodiscard]] Value percentile_ns(double p, uint64_t slo_ns) const;
};
enum class Kept : uint8_t { kNotJudged, kYes, kNo };

// How a flow's SLO was met since the controller was chosen or the SLO changed.
struct FlowRecord {
  uint64_t violated_periods = 0;
  // Of those: met except for packets in flight while the machine stalled a worker, in this or the previous
  // period, for more than 5 % of the SLO.
  uint64_t stalled_periods = 0;
  double excess_ratio_sum = 0;  // over violated, unstalled periods: excess over the SLO
  uint64_t quiet_periods = 0;   // see PeriodCounts
  uint64_t delay_sum_ns = 0;    // of their percentiles
  bool is_between = false;      // the SLO changed during the current period
  exec::FlowPeriod last;        // of the last period
  CountedDelays all;
  CountedDelays quiet;  // of periods that the machine did not disturb
  // `stall_ns`: gaps in a worker's time that its work does not explain, in this and the previous period;
  // `inside_pkts`: upper bound of this flow's packets in flight during them.
  Kept add(const exec::FlowPeriod& period, double percentile, uint64_t stall_ns,
           double inside_pkts);
};

// All flows together, since the controller was chosen. A period is quiet when the machine took less of it,
// and of the previous one, than could make as many packets late as the percentile allows.
struct PeriodCounts {
  uint64_t periods = 0;
  uint64_t violated_periods = 0;  // in which any flow was late, stalled or not
  uint64_t quiet_periods = 0;
  uint64_t violated_quiet_periods = 0;
};

class ControlLog {
 public:
  static constexpr size_t kDecisionsKept = 10;
  static constexpr size_t kEventsKept = 20;

  struct Change {
    std::string module;
    uint32_t from_pkts;
    uint32_t to_pkts;
    uint64_t from_age_ns;
    uint64_t to_age_ns;
    std::string reason;
  };
  struct CreditSet {
    std::string module;
    uint64_t from_pkts;
    uint32_t to_pkts;
  };
  struct PollSet {
    uint32_t task;
    std::vector<std::string> inputs;
    uint32_t from_pkts;
    uint32_t to_pkts;
  };

  void begin(size_t n_flows, const std::vector<uint64_t>& control_ns);
  // `gaps`: gaps in a worker's time that its work does not explain.
  void note_period(const exec::PeriodSnapshot& period, const exec::ControlModel& model,
                   const slo::Settings& settings, const ControlTap::Gaps& gaps);
  // Records a decision that changes something.
  void note_decision(uint64_t now_ns, const exec::ControlModel& model,
                     const exec::PeriodSnapshot& period, const exec::Decision& decision);
  void note_event(uint64_t now_ns, const std::string& message, uint64_t period);
  void note_control_ns(const std::vector<uint64_t>& control_ns, uint64_t period_ns);

  [[nodiscard]] Value decisions_value(const std::vector<std::string>& modules) const;  // empty: all
  [[nodiscard]] Value events_value() const;
  // The last reason for changing a module; empty if it was never changed.
  [[nodiscard]] std::string last_reason(const std::string& module) const;
  [[nodiscard]] double worker_ratio() const;

  std::vector<FlowRecord> flows;
  PeriodCounts any_flow;
  StepTimes count_times;       // reading counts, and estimates from them
  StepTimes controller_times;  // the controller's step
  StepTimes apply_times;       // changing buffers, where anything changes
  StepTimes total_times;       // all of it
  uint64_t steps = 0;
  uint64_t failed_steps = 0;

 private:
  struct KeptDecision {
    uint64_t now_ns = 0;
    std::vector<Change> changes = {};
    std::vector<CreditSet> credits = {};
    std::vector<PollSet> polls = {};
  };
  void keep(KeptDecision& kept, Change change);
  void keep_changes(KeptDecision& kept, const exec::ControlModel& model,
                    const exec::PeriodSnapshot& period, const exec::Decision& decision);
  struct Event {
    uint64_t now_ns;
    uint64_t period;  // the last period in which it happened
    uint64_t times;
    std::string message;
  };
  std::deque<KeptDecision> decisions_;
  std::deque<Event> events_;
  std::vector<std::pair<std::string, std::string>> reasons_;  // last reason, by module
  std::vector<uint64_t> first_control_ns_;
  std::vector<uint64_t> last_control_ns_;
  uint64_t elapsed_ns_ = 0;
  ControlTap::Gaps last_gaps_;
};

}  // namespace batchplane::app
