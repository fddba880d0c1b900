// SPDX-License-Identifier: BSD-3-Clause
// flow_meter.h - per-flow packet counts and delays at egress, measured with a clock reading taken after the
// work.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/delay_histogram.h"
#include "exec/legs.h"

namespace batchplane::exec {

// Counts of one flow over one epoch, or since the start.
struct FlowEpoch {
  uint64_t pkts = 0;
  uint64_t late_pkts = 0;  // delay > SLO; exact
  uint64_t delay_sum_ns = 0;
  uint64_t delay_max_ns = 0;
  // Delays relative to the SLO in force when the epoch was read, with the 3 % resolution of the fine buckets.
  uint64_t slo_buckets[SloBuckets::kCount] = {};
};

// Two sets of counters per flow; the worker writes one while readers own the other.
// Owner of record, flush, switch_epoch: the worker. Owner of collect: the control thread, between
// switches.
class FlowMeter {
 public:
  static constexpr uint32_t kLogEntries = 8192;
  static constexpr uint64_t kNoSloScaleNs = 100'000'000;

  explicit FlowMeter(uint32_t n_flows, const Legs& legs = {})
      : n_flows_(n_flows),
        last_leg_(legs.all.empty() ? 0 : n_flows, Leg::kNone),
        slo_ns_(n_flows + legs.all.size(), 0),
        sets_{Set(slo_ns_.size()), Set(slo_ns_.size())},
        log_(kLogEntries) {
    for (uint32_t l = 0; l < legs.all.size(); ++l) {
      if (legs.all[l].flow != Leg::kAllFlows) last_leg_[legs.all[l].flow] = l;
    }
  }

  // 0 = no SLO. Control thread; applies to packets booked from now on.
  void set_slo(uint32_t flow, uint64_t slo_ns) {
    slo_ns_[flow] = slo_ns;
    for (Set& set : sets_) {
      std::atomic<uint64_t>& late_above_ns = set.counters[flow].late_above_ns;
      late_above_ns.store(slo_ns == 0 ? ~0ULL : slo_ns, std::memory_order_relaxed);
    }
  }

  // n packets of `flow` that entered at entry_ns have left; the next flush books their delay. The caller
  // flushes before fewer than B entries are free.
  void record(uint32_t flow, uint32_t n_pkts, uint64_t entry_ns) {
    log_[n_log_++] = {entry_ns, flow, n_pkts};
  }
  // Only in pipelines of several tasks: n packets have reached the end of a leg. Legs follow the flows in the
  // books, and do not count as sent packets.
  [[nodiscard]] bool has_legs() const { return !last_leg_.empty(); }
  void record_leg(uint32_t leg, uint32_t n_pkts, uint64_t task_entry_ns) {
    if (leg != Leg::kNone && has_legs()) log_[n_log_++] = {task_entry_ns, n_flows_ + leg, n_pkts};
  }
  [[nodiscard]] uint32_t last_leg_of(uint32_t flow) const { return last_leg_[flow]; }
  [[nodiscard]] bool has_unbooked() const { return n_log_ != 0; }
  // A packet takes at most two entries.
  [[nodiscard]] bool is_nearly_full(uint32_t batch_limit_pkts) const {
    return n_log_ + 2 * batch_limit_pkts > kLogEntries;
  }
  [[nodiscard]] uint64_t sent_pkts() const { return sent_pkts_; }

  // Books everything recorded since the last flush, with delay = now - entry.
  void flush(uint64_t now_ns) {
    Set& set = sets_[active_];
    uint64_t entry_ns = ~0ULL;  // neighbours in the log mostly came in the same burst
    uint64_t delay_ns = 0;
    uint32_t bucket = 0;
    uint64_t sent = 0;
    for (uint32_t i = 0; i < n_log_; ++i) {
      const Entry& entry = log_[i];
      if (entry.entry_ns != entry_ns) {
        entry_ns = entry.entry_ns;
        delay_ns = now_ns > entry_ns ? now_ns - entry_ns : 0;
        bucket = FineBuckets::index(delay_ns);
      }
      Counters& c = set.counters[entry.flow];
      if (c.pkts == 0) [[unlikely]]
        set.counted[set.n_counted++] = entry.flow;
      c.pkts += entry.n_pkts;
      c.delay_sum_ns += delay_ns * entry.n_pkts;
      c.delay_max_ns = std::max(c.delay_max_ns, delay_ns);
      const bool is_late = delay_ns > c.late_above_ns.load(std::memory_order_relaxed);
      c.late_pkts += is_late ? entry.n_pkts : 0;
      c.buckets[bucket] += entry.n_pkts;
      sent += entry.flow < n_flows_ ? entry.n_pkts : 0;
    }
    sent_pkts_ += sent;
    n_log_ = 0;
  }

  void switch_epoch() { active_ ^= 1; }

  // Takes the counts of the flows that have any in the quiet set: each_flow(flow, epoch), with its
  // histogram added to fine[FineBuckets::kCount]. Of many flows, most workers see few.
  template <class EachFlow>
  void collect(uint64_t* fine, EachFlow each_flow) {
    Set& set = sets_[active_ ^ 1];
    for (uint32_t i = 0; i < set.n_counted; ++i) {
      FlowEpoch epoch;
      take(set.counters[set.counted[i]], slo_ns_[set.counted[i]], epoch, fine);
      each_flow(set.counted[i], epoch);
    }
    set.n_counted = 0;
  }
  [[nodiscard]] uint32_t n_flows() const { return n_flows_; }

 private:
  struct Entry {
    uint64_t entry_ns;
    uint32_t flow;
    uint32_t n_pkts;
  };
  struct alignas(64) Counters {
    std::atomic<uint64_t> late_above_ns{~0ULL};
    uint64_t pkts = 0;
    uint64_t late_pkts = 0;
    uint64_t delay_sum_ns = 0;
    uint64_t delay_max_ns = 0;
    uint32_t buckets[FineBuckets::kCount] = {};
  };

  struct Set {
    explicit Set(size_t n) : counters(std::make_unique<Counters[]>(n)), counted(n) {}
    std::unique_ptr<Counters[]> counters;  // by flow, then by leg
    std::vector<uint32_t> counted;         // [0, n_counted): those that are not all 0
    uint32_t n_counted = 0;
  };

  static void take(Counters& c, uint64_t slo_ns, FlowEpoch& epoch, uint64_t* fine) {
    epoch.pkts = c.pkts;
    epoch.late_pkts = c.late_pkts;
    epoch.delay_sum_ns = c.delay_sum_ns;
    epoch.delay_max_ns = c.delay_max_ns;
    const uint64_t scale = SloBuckets::scale_of(slo_ns == 0 ? kNoSloScaleNs : slo_ns);
    const uint32_t last = FineBuckets::index(c.delay_max_ns);
    for (uint32_t b = 0; b <= last; ++b) {
      if (c.buckets[b] == 0) continue;
      epoch.slo_buckets[SloBuckets::index(FineBuckets::lower_ns(b), scale)] += c.buckets[b];
      fine[b] += c.buckets[b];
      c.buckets[b] = 0;
    }
    c.pkts = c.late_pkts = c.delay_sum_ns = c.delay_max_ns = 0;
  }

  uint32_t n_flows_;
  std::vector<uint32_t> last_leg_;  // by flow; empty where no flow has legs
  std::vector<uint64_t> slo_ns_;    // by flow, then by leg; legs have none
  Set sets_[2];
  std::vector<Entry> log_;
  uint32_t n_log_ = 0;
  uint32_t active_ = 0;
  uint64_t sent_pkts_ = 0;
};

}  // namespace batchplane::exec
