// SPDX-License-Identifier: BSD-3-Clause
// stage_period.h - what a stage tells a controller: a module whose packets go through a device, in batches
// of their own ("jobs").
#pragma once

#include <cstdint>

#include "base/batch_law.h"

namespace batchplane::exec {

// Since the start, or over a period. Jobs that came back as they were sent, unless said otherwise.
struct StageTotals {
  uint64_t sent_jobs = 0;
  uint64_t aged_jobs = 0;  // sent because their oldest packet was as old as the limit
  uint64_t sent_pkts = 0;
  uint64_t bytes = 0;  // of sent packets, about
  uint64_t jobs = 0;
  uint64_t pkts = 0;
  uint64_t run_ns = 0;  // that their device, or the worker, took for them
  uint64_t job_ns = 0;  // from being sent until handed out; of all jobs

  [[nodiscard]] StageTotals since(const StageTotals& before) const {
    return {.sent_jobs = sent_jobs - before.sent_jobs,
            .aged_jobs = aged_jobs - before.aged_jobs,
            .sent_pkts = sent_pkts - before.sent_pkts,
            .bytes = bytes - before.bytes,
            .jobs = jobs - before.jobs,
            .pkts = pkts - before.pkts,
            .run_ns = run_ns - before.run_ns,
            .job_ns = job_ns - before.job_ns};
  }
};

struct StagePeriod {
  StageTotals totals;
  uint32_t batch_pkts = 0;  // in force where most packets go, as the rest here
  uint64_t age_limit_ns = 0;
  bool is_idle_hold = false;     // waits for a batch although nothing is under way
  const void* device = nullptr;  // stages on one device have the same; null: the worker
  uint32_t device_threads = 1;   // of the device; a stage uses one of them
  BatchLaw law;                  // of its batches there; all 0: nobody knows
};

}  // namespace batchplane::exec
