// SPDX-License-Identifier: BSD-3-Clause
// tree_params.h - parameters of a tree's nodes, and checks of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "egress/aqm/codel.h"
#include "egress/aqm/pie.h"
#include "egress/discipline/framing.h"
#include "egress/discipline/pace.h"

namespace batchplane::egress {

inline constexpr uint32_t kPriorities = 8;
inline constexpr uint32_t kMaxNodeWeight = 10'000;

// How much guaranteed service a node may catch up on after others were sent first.
inline constexpr uint64_t kCatchUpNs = 100'000'000;
inline constexpr uint64_t kMinCatchUpNs = 20'000;
// A node that was idle or at its ceiling for longer than this is owed nothing for that time.
inline constexpr uint64_t kMaxIdleNs = 2'000'000;
// A node that has received its minimum waits until its longest packet is due, or for this long. It
// then sends several packets in a row instead of changing its place for each.
inline constexpr uint64_t kMaxMinStepNs = 1'000'000;

struct TreeCapacity {
  uint32_t leaves = 0;         // numbers 0..leaves-1
  uint32_t inner_nodes = 1;    // numbers from leaves on, the root first
  uint32_t shaped_leaves = 0;  // leaves that may have rates of their own
  uint32_t pkts = 0;           // of all leaves together
  uint32_t connections = 0;    // connections with packets, over all CoDel leaves together
  CodelParams codel = {};
  uint64_t pie_target_ns = kPieTargetNs;
  uint32_t lmax_bytes = 1600;
  Framing framing = {};
  uint64_t catch_up_ns =
      kCatchUpNs;  // service missed, or received in advance, for longer is forgotten

  [[nodiscard]] uint32_t root() const { return leaves; }
  [[nodiscard]] uint32_t nodes() const { return leaves + inner_nodes; }
  [[nodiscard]] uint64_t idle_credit_ns() const { return std::min(kMaxIdleNs, catch_up_ns); }
  // Half of what is caught up on at most, so that the step alone loses nothing.
  [[nodiscard]] uint64_t min_step_ns() const { return std::min(kMaxMinStepNs, catch_up_ns / 2); }
  bool operator==(const TreeCapacity&) const = default;
};

// How a leaf's queue keeps delays short: not at all, for all its packets together (CoDel or PIE),
// or per connection.
enum class LeafQueue : uint8_t { kFifo, kCodel, kFqCodel, kPie };

struct NodeParams {
  uint64_t min_rate_bps = 0;  // served before any node gets excess; 0: none
  uint64_t ceil_bps = 0;      // never exceeded; 0: no ceiling
  uint32_t burst_bytes = 0;   // burst that the ceiling allows; 0: default_burst_bytes()
  uint32_t weight = 1;        // share of the excess among siblings of one priority
  uint8_t priority = 0;       // 0..7 among siblings; 7 goes first
  LeafQueue queue = LeafQueue::kFifo;
  uint32_t limit_bytes = 1U << 30;  // of a leaf's queue; one packet always fits

  [[nodiscard]] bool has_rates() const { return min_rate_bps != 0 || ceil_bps != 0; }
  bool operator==(const NodeParams&) const = default;
};

// A node below the root, by numbers as in TreeCapacity.
struct PlacedNode {
  uint32_t number = 0;
  uint32_t parent = 0;
  NodeParams params;
};

// A worker visits every few microseconds, sometimes much later, and siblings take turns in between.
// With a smaller burst the ceiling would not be reached.
inline uint32_t default_burst_bytes(uint64_t ceil_bps, uint32_t lmax_bytes) {
  const uint64_t in_1_ms = ceil_bps / 8'000;
  return static_cast<uint32_t>(std::clamp<uint64_t>(in_1_ms, 2ULL * lmax_bytes, 1U << 30));
}

enum class Edited : uint8_t {
  kYes,
  kBadNode,
  kNodeExists,
  kNoNode,
  kRoot,
  kNoParent,
  kParentIsLeaf,
  kLoop,
  kHasChildren,
  kNoShaper,
  kBadWeight,
  kBadPriority,
  kBadRate,
  kCeilBelowMin,
};

// One line each: the mistake and its fix. Empty for kYes.
const char* message_of(Edited edited);
[[nodiscard]] Edited check_range(const NodeParams& params);

}  // namespace batchplane::egress
