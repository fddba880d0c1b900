// SPDX-License-Identifier: BSD-3-Clause
// period_state.h - a period as the papers' controllers see it: cost, rate and arriving batch of
// each controlled segment, slack of each flow, and the triggers decided so far.
//
// docs/controllers.md maps the names to the papers' symbols.
#pragma once

#include <limits>
#include <vector>

#include "slo/model/controller.h"
#include "slo/model/model.h"

namespace batchplane::slo {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// Facts derived from the graph once. Segments are numbered as segments_of() returns them.
struct Topology {
  explicit Topology(const Model& of);

  const Model& model;
  std::vector<Segment> segments;
  std::vector<std::vector<uint32_t>> next;           // segment -> segments that follow directly
  std::vector<uint32_t> deepest_first;               // each segment after all that follow it
  std::vector<std::vector<uint32_t>> flows_through;  // segment -> flows
  std::vector<std::vector<uint32_t>> segments_on;    // flow -> segments, in path order
  std::vector<std::vector<uint32_t>> tasks_on;       // flow -> tasks, in path order
};

struct SegmentPeriod {
  double cost_per_batch_ns = 0;  // of the whole segment
  // of the whole segment, by the share of packets that reach each module
  double cost_per_pkt_ns = 0;
  double rate_pkts_per_ns = 0;  // of packets that reach the buffer
  double arriving_pkts = 0;     // mean batch that reaches the buffer
  // delay added by one more packet in the trigger: 1 / rate + cost_per_pkt
  double delay_per_pkt_ns = 0;
  double delay_ns = 0;            // time between executions + service at the current trigger
  uint32_t min_pkts = 0;          // smallest trigger that makes buffering worthwhile
  uint32_t trigger_pkts = 0;      // as decided so far
  uint32_t old_trigger_pkts = 0;  // in force during the period
  bool is_controllable = false;   // Settings::controllable_bound: a buffer may pay off
  bool is_frozen = false;         // an earlier phase has decided it
  const char* reason = "";        // of the last change
};

struct FlowNow {
  double slo_ns = kNoLimit;
  double delay_ns = 0;
  double slack_ns = kNoLimit;  // SLO minus delay, with the triggers decided so far
  double margin_ns = 0;     // part of the slack that phases that insert or grow buffers keep free
  double tolerance_ns = 0;  // a flow is tight from this far below its SLO
  bool is_frozen = false;   // being recovered
  // Load that one more nanosecond of the flow's budget would save, from the gradient step; 0 if the
  // budget is not binding.
  double load_per_ns = 0;

  [[nodiscard]] bool has_slo() const { return slo_ns < kNoLimit; }
  [[nodiscard]] bool is_tight() const { return delay_ns >= slo_ns - tolerance_ns; }
  [[nodiscard]] double headroom_ns() const { return slack_ns - margin_ns; }
  // Delay expected with the triggers decided so far.
  [[nodiscard]] double planned_ns() const { return has_slo() ? slo_ns - slack_ns : delay_ns; }
};

struct PeriodState {
  std::vector<SegmentPeriod> segments;
  std::vector<FlowNow> flows;

  // Least headroom of the flows through a segment; kNoLimit if none has an SLO.
  [[nodiscard]] double headroom_ns(const Topology& topology, uint32_t segment) const;
  [[nodiscard]] bool has_frozen_flow(const Topology& topology, uint32_t segment) const;
  // Decides a trigger and freezes the segment.
  void set_trigger(uint32_t segment, uint32_t trigger_pkts, const char* reason);
  // The same, and applies the change of delay to the slack of every flow through the segment.
  void set_trigger_and_slack(const Topology& topology, uint32_t segment, uint32_t trigger_pkts,
                             const char* reason);
};

enum class Absorb : uint8_t {
  kUncontrollable,  // a segment's cost includes later segments that never buffer
  kUnbuffered,      // ... and those that do not buffer now
};

struct MeasureOptions {
  Absorb absorb = Absorb::kUncontrollable;
  bool keeps_margin = true;  // false: buffers may grow until the delay equals the SLO
  double cost_growth = 1;    // factor on all aggregated costs
};

// Never fails: costs that are not finite count as zero.
PeriodState measure(const Topology& topology, const Settings& settings, const Snapshot& snapshot,
                    const MeasureOptions& options);

}  // namespace batchplane::slo
