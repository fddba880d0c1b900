// SPDX-License-Identifier: BSD-3-Clause
// control_fields.h - the fields of a period that external programs see, by name and type, for all code that
// writes or reads them.
#pragma once

// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define BATCHPLANE_MODULE_FIELDS(X) \
  X(batches, uint64_t)              \
  X(pkts, uint64_t)                 \
  X(arrived_batches, uint64_t)      \
  X(arrived_pkts, uint64_t)         \
  X(dropped_pkts, uint64_t)         \
  X(late_releases, uint64_t)        \
  X(trigger_pkts, uint32_t)         \
  X(held_pkts, uint32_t)            \
  X(age_limit_ns, uint64_t)         \
  X(weight, uint32_t)               \
  X(pace_ns, uint64_t)              \
  X(turns, uint64_t)                \
  X(charged, uint64_t)
#define BATCHPLANE_FLOW_FIELDS(X) \
  X(slo_ns, uint64_t)             \
  X(pkts, uint64_t)               \
  X(late_pkts, uint64_t)          \
  X(delay_sum_ns, uint64_t)       \
  X(delay_max_ns, uint64_t)       \
  X(delay_ns, uint64_t)           \
  X(p50_ns, uint64_t)             \
  X(p99_ns, uint64_t)
#define BATCHPLANE_TASK_FIELDS(X)    \
  X(in_pkts, uint64_t)               \
  X(runs, uint64_t)                  \
  X(idle_polls, uint64_t)            \
  X(busy_ns, uint64_t)               \
  X(idle_ns, uint64_t)               \
  X(run_p99_ns, uint64_t)            \
  X(run_max_ns, uint64_t)            \
  X(gaps, uint64_t)                  \
  X(gap_ns, uint64_t)                \
  X(busy_gap_ns, uint64_t)           \
  X(firings, uint64_t)               \
  X(worst_firings_per_run, uint32_t) \
  X(poll_pkts, uint32_t)
#define BATCHPLANE_INPUT_FIELDS(X) \
  X(offered_pkts, uint64_t)        \
  X(taken_pkts, uint64_t)          \
  X(lost_pkts, uint64_t)           \
  X(waiting_pkts, uint64_t)        \
  X(backlog_pkts, uint64_t)        \
  X(ring_pkts, uint64_t)           \
  X(credit_pkts, uint64_t)         \
  X(fill_max_pkts, uint64_t)       \
  X(fill_mean_pkts, double)
// NOLINTEND(cppcoreguidelines-macro-usage)
