// SPDX-License-Identifier: BSD-3-Clause
// capture.h - copies an executor's counters between two runs, for reports and for controllers.
#pragma once

#include "exec/control.h"
#include "exec/executor.h"
#include "exec/snapshot.h"

namespace batchplane::exec {

// Counters of a unit, or of the input (unit 0). Leaves `out` alone where tasks run to completion.
template <class Traits>
void capture_unit(const Executor<Traits>& executor, uint32_t u, UnitSnapshot& out) {
  const auto* const units = executor.units();
  if (units == nullptr) return;
  const UnitSchedule& schedule = units->schedule;
  uint64_t sum = 0;
  for (uint32_t each = 0; each < schedule.n_units(); ++each) sum += schedule.charged(each);
  const auto& unit = units->units[u];
  out.is_unit = true;
  out.weight = schedule.weight(u);
  out.queue_pkts = unit.queue_pkts;
  out.max_held_pkts = unit.counts.max_pkts;
  out.pace_ns = unit.pace_ns;
  out.turns = schedule.turns(u);
  out.charged = schedule.charged(u);
  out.share = sum == 0 ? 0 : static_cast<double>(out.charged) / static_cast<double>(sum);
  out.congested = unit.counts.congested;
}

template <class Traits>
void capture_unit(const Executor<Traits>& executor, uint32_t u, ModulePeriod& out) {
  const auto* const units = executor.units();
  if (units == nullptr) return;
  out.weight = units->schedule.weight(u);
  out.pace_ns = units->units[u].pace_ns;
  out.turns = units->schedule.turns(u);
  out.charged = units->schedule.charged(u);
}

// The part of a change that only units have: weight and pace.
template <class Traits>
void apply_to_unit(Executor<Traits>& executor, const Node<Traits>& node,
                   const BufferChange& change) {
  const uint32_t u = executor.unit_of(node);
  if (u == 0) return;
  if (change.weight != 0) executor.set_weight(u, change.weight);
  if (change.pace_ns != BufferChange::kKeepPace) executor.set_pace(node, change.pace_ns);
}

// What `show` reports of a node; the module itself reports `kept_pkts`.
template <class Traits>
void capture_node(const Executor<Traits>& executor, const Node<Traits>& node, ModuleSnapshot& out) {
  const auto& queue = *node.queue;
  const NodeTotals totals = executor.totals(node);
  out.has_buffer = true;
  out.batches = totals.batches;
  out.pkts = totals.pkts;
  out.held_pkts = queue.size_pkts;
  out.trigger_pkts = queue.wanted_trigger_pkts();
  out.age_limit_ns = queue.age_limit_ns;
  out.arrived_batches = queue.arrived_batches;
  out.arrived_pkts = queue.arrived_pkts;
  out.late_releases = queue.late_releases;
  for (uint32_t c = 0; c < kCauses; ++c) out.causes[c] = queue.causes[c];
  out.cost = node.cost;
  if (const uint32_t u = executor.unit_of(node); u != 0) capture_unit(executor, u, out.unit);
  for (size_t r = 0; r < out.drops.size(); ++r) {
    out.drops[r] += node.drops[r];
    out.handed_on[r] = node.handed_on[r];
  }
}

// The same counters for controllers: cumulative; `cost` is left alone.
template <class Traits>
void capture_period(const Executor<Traits>& executor, const Node<Traits>& node, ModulePeriod& out) {
  const auto& queue = *node.queue;
  const NodeTotals totals = executor.totals(node);
  out.batches = totals.batches;
  out.pkts = totals.pkts;
  out.arrived_batches = queue.arrived_batches;
  out.arrived_pkts = queue.arrived_pkts;
  out.late_releases = queue.late_releases;
  for (uint32_t c = 0; c < kCauses; ++c) out.causes[c] = queue.causes[c];
  out.samples = node.cost;
  out.trigger_pkts = queue.wanted_trigger_pkts();
  out.held_pkts = queue.size_pkts;
  out.age_limit_ns = queue.age_limit_ns;
  out.dropped_pkts = node.dropped_pkts;
  if (const uint32_t u = executor.unit_of(node); u != 0) capture_unit(executor, u, out);
}

// The difference of two cumulative readings of a module; settings and held packets are those of the later
// one. A bypassed module ran everything that reached it.
inline ModulePeriod period_between(const ModulePeriod& before, const ModulePeriod& now) {
  ModulePeriod period = now;
  period.batches -= before.batches;
  period.pkts -= before.pkts;
  period.arrived_batches -= before.arrived_batches;
  period.arrived_pkts -= before.arrived_pkts;
  period.dropped_pkts -= before.dropped_pkts;
  period.late_releases -= before.late_releases;
  for (uint32_t c = 0; c < kCauses; ++c) {
    period.causes[c].firings -= before.causes[c].firings;
    period.causes[c].pkts -= before.causes[c].pkts;
    period.causes[c].wait_ns -= before.causes[c].wait_ns;
  }
  period.turns -= before.turns;
  period.charged -= before.charged;
  period.samples = now.samples.since(before.samples);
  if (period.trigger_pkts == 0 && period.arrived_batches == 0) {
    period.arrived_batches = period.batches;
    period.arrived_pkts = period.pkts;
  }
  return period;
}

}  // namespace batchplane::exec
