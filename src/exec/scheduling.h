// SPDX-License-Identifier: BSD-3-Clause
// scheduling.h - how a task executes: run to completion, or one module queue at a time by weight.
#pragma once

#include <cstdint>

namespace batchplane::exec {

enum class Execution : uint8_t { kRunToCompletion, kWeightedFair };
// Unit in which turns are charged.
enum class ScheduleBy : uint8_t { kCycles, kCount };
// What a full queue means for the modules that feed it.
enum class Backpressure : uint8_t {
  kOff,       // nothing: what does not fit is dropped
  kOn,        // they wait
  kEarlyDrop  // they wait, and input packets for a congested chain are dropped on entry
};
inline constexpr const char* kExecutionNames[] = {"run_to_completion", "wfq"};
inline constexpr const char* kScheduleByNames[] = {"cycles", "count"};
inline constexpr const char* kBackpressureNames[] = {"off", "on", "early_drop"};

inline constexpr uint32_t kMaxWeight = 1024;
// A turn moves the packets that it leaves in the queue to the front: a longer queue would cost more than the
// batch saves.
inline constexpr uint32_t kMaxQueuePkts = 4096;

struct Scheduling {
  Execution mode = Execution::kRunToCompletion;
  ScheduleBy by = ScheduleBy::kCycles;
  Backpressure backpressure = Backpressure::kOff;
  uint32_t queue_pkts = 0;               // of each unit; 0 = two batches
  uint32_t high_watermark_percent = 80;  // of the queue: above this its feeders wait
  uint32_t low_watermark_percent = 60;   // and resume when it has fallen to this
  // Also requires that the head of the queue has waited this long; 0: only the length counts.
  uint64_t queueing_time_threshold_ns = 0;
  uint32_t input_weight = 1;  // of polling

  [[nodiscard]] bool is_weighted_fair() const { return mode == Execution::kWeightedFair; }
  bool operator==(const Scheduling&) const = default;
};

// At least two batches: a unit that waits for a full batch has room for one more.
[[nodiscard]] inline uint32_t queue_pkts_of(uint32_t wanted_pkts, uint32_t batch_limit_pkts) {
  const uint32_t min_pkts = 2 * batch_limit_pkts;
  return wanted_pkts < min_pkts ? min_pkts : wanted_pkts;
}

}  // namespace batchplane::exec
