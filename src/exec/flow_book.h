// SPDX-License-Identifier: BSD-3-Clause
// flow_book.h - per-flow delays since the start, for reports, and since the last period, for controllers,
// from one meter.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/control.h"
#include "exec/flow_meter.h"
#include "exec/percentiles.h"
#include "exec/snapshot.h"

namespace batchplane::exec {

// Owner: the control thread.
class FlowBook {
 public:
  explicit FlowBook(uint32_t n_flows) : flows_(n_flows), fresh_(FineBuckets::kCount) {
    for (Entry& entry : flows_) {
      entry.total_fine.resize(FineBuckets::kCount);
      entry.period_fine.resize(FineBuckets::kCount);
    }
  }

  // Call after switch_epoch(): takes the counts in each flow's quiet set.
  void collect(FlowMeter& meter) {
    meter.collect(fresh_.data(), [this](uint32_t flow, const FlowEpoch& epoch) {
      Entry& entry = flows_[flow];
      const uint32_t last = FineBuckets::index(epoch.delay_max_ns);
      for (uint32_t b = 0; b <= last; ++b) {
        entry.total_fine[b] += fresh_[b];
        entry.period_fine[b] += static_cast<uint32_t>(fresh_[b]);
        fresh_[b] = 0;
      }
      add(entry.total, epoch);
      add(entry.epoch, epoch);
      add(entry.period, epoch);
    });
  }

  // Lets `flow` continue the counts that a flow of an older book has had since the start. Lateness is
  // relative to an SLO: a flow that is merged into another one brings none.
  void go_on(uint32_t flow, const FlowBook& old, uint32_t old_flow, bool is_same) {
    Entry& entry = flows_[flow];
    const Entry& from = old.flows_[old_flow];
    FlowEpoch had = from.total;
    if (!is_same) {
      had.late_pkts = 0;
      std::fill(std::begin(had.slo_buckets), std::end(had.slo_buckets), 0);
    }
    add(entry.total, had);
    for (uint32_t b = 0; b < FineBuckets::kCount; ++b) entry.total_fine[b] += from.total_fine[b];
  }

  // Counts since the start, and since the last call; fine buckets only when asked for.
  void report(uint32_t flow, FlowSnapshot& out, bool with_fine) {
    Entry& entry = flows_[flow];
    out.total = entry.total;
    out.epoch = entry.epoch;
    entry.epoch = {};
    if (with_fine) out.fine_buckets = entry.total_fine;
  }

  // Counts since the last call. `percentile`: 0 = the mean, 1 = the maximum.
  FlowPeriod take_period(uint32_t flow, uint64_t slo_ns, double percentile) {
    Entry& entry = flows_[flow];
    FlowPeriod period;
    period.slo_ns = slo_ns;
    period.pkts = entry.period.pkts;
    period.late_pkts = entry.period.late_pkts;
    period.delay_sum_ns = entry.period.delay_sum_ns;
    period.delay_max_ns = entry.period.delay_max_ns;
    std::copy(std::begin(entry.period.slo_buckets), std::end(entry.period.slo_buckets),
              std::begin(period.slo_buckets));
    if (period.pkts != 0) {
      WantedPercentile wanted[] = {{percentile}, {0.5}, {0.99}};
      const auto pkts_at = [&](uint32_t b) { return entry.period_fine[b]; };
      find_percentiles(period.pkts, FineBuckets::kCount, pkts_at, wanted);
      const auto delay_ns = [&](const WantedPercentile& found) {
        return FineBuckets::upper_ns(found.bucket, period.delay_max_ns);
      };
      period.delay_ns = percentile <= 0 ? period.delay_sum_ns / period.pkts : delay_ns(wanted[0]);
      period.p50_ns = delay_ns(wanted[1]);
      period.p99_ns = delay_ns(wanted[2]);
      const uint32_t last = FineBuckets::index(period.delay_max_ns);
      std::fill_n(entry.period_fine.begin(), last + 1, 0);
    }
    entry.period = {};
    return period;
  }

 private:
  struct Entry {
    FlowEpoch total;
    FlowEpoch epoch;
    FlowEpoch period;
    std::vector<uint64_t> total_fine;
    std::vector<uint32_t> period_fine;
  };
  static void add(FlowEpoch& to, const FlowEpoch& from) {
    to.pkts += from.pkts;
    to.late_pkts += from.late_pkts;
    to.delay_sum_ns += from.delay_sum_ns;
    to.delay_max_ns = std::max(to.delay_max_ns, from.delay_max_ns);
    for (uint32_t b = 0; b < SloBuckets::kCount; ++b) to.slo_buckets[b] += from.slo_buckets[b];
  }

  std::vector<Entry> flows_;
  std::vector<uint64_t> fresh_;  // all zero between calls
};

}  // namespace batchplane::exec
