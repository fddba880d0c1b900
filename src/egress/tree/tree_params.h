// SPDX-License-Identifier: BSD-3-Clause
// tree_params.h - what the nodes of a tree may be told, and what is wrong with it.
#pragma once

#include <cstdint>

#include "egress/aqm/codel.h"
#include "egress/aqm/pie.h"
#include "egress/discipline/framing.h"
#include "egress/discipline/pace.h"

namespace batchplane::egress {

inline constexpr uint32_t kPriorities = 8;
inline constexpr uint32_t kMaxNodeWeight = 10'000;

struct TreeCapacity {
  uint32_t leaves = 0;         // numbers 0..leaves-1
  uint32_t inner_nodes = 1;    // numbers from leaves on, the root first
  uint32_t shaped_leaves = 0;  // leaves that may have rates of their own
  uint32_t pkts = 0;           // of all leaves together
  uint32_t connections = 0;    // of all leaves with CoDel together: such as have packets
  CodelParams codel = {};
  uint64_t pie_target_ns = kPieTargetNs;
  uint32_t lmax_bytes = 1600;
  Framing framing = {};

  [[nodiscard]] uint32_t root() const { return leaves; }
  [[nodiscard]] uint32_t nodes() const { return leaves + inner_nodes; }
  bool operator==(const TreeCapacity&) const = default;
};

// How the queue of a leaf keeps delays short: not at all, for all its packets together (CoDel or PIE), or for each
// connection in it.
enum class LeafQueue : uint8_t { kFifo, kCodel, kFqCodel, kPie };

struct NodeParams {
  uint64_t min_rate_bps = 0;  // what it has before others get more; 0: nothing
  uint64_t ceil_bps = 0;      // what it never exceeds; 0: no ceiling
  uint32_t burst_bytes = 0;   // what the ceiling lets through at once; 0: default_burst_bytes()
  uint32_t weight = 1;        // share of what minima leave, among siblings of one priority
  uint8_t priority = 0;       // 0..7 among siblings; 7 goes first
  LeafQueue queue = LeafQueue::kFifo;
  uint32_t limit_bytes = 1U << 30;  // of a leaf's queue; one packet always fits

  [[nodiscard]] bool has_rates() const { return min_rate_bps != 0 || ceil_bps != 0; }
  bool operator==(const NodeParams&) const = default;
};

// A worker comes round every few microseconds, now and then a good deal later, and siblings have their turns
// in between: a ceiling that saved up less would not be reached.
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

// One line each: what is wrong and what would fix it. Empty for kYes.
const char* message_of(Edited edited);
[[nodiscard]] Edited check_range(const NodeParams& params);

}  // namespace batchplane::egress
