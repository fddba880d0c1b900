// SPDX-License-Identifier: BSD-3-Clause
// batch.h - packet handles that one function call processes.
//
// Glossary of src/exec
//   handle     opaque packet: a pointer in the data plane, a small struct in the simulator
//   node       one module of a task's graph, with its input queue
//   trigger    packets at which a node's fractional buffer releases; 0 = bypassed
//   run        one input batch carried through the graph until only held packets are left
//   rank       position of a node in the run order (topological: every edge goes to a higher rank)
#pragma once

#include <cstdint>

namespace batchplane::exec {

inline constexpr uint32_t kMaxBatchPkts = 256;
inline constexpr uint32_t kDefaultBatchPkts = 32;
inline constexpr uint64_t kNeverNs = ~0ULL;

using GateIndex = uint16_t;

// Non-owning view; the packets belong to whoever runs the batch.
template <class Handle>
struct Batch {
  Handle* pkts;             // size_pkts handles; a dropped one is set to Handle{}
  uint32_t size_pkts;       // 1..B while a module sees it
  uint64_t entry_bound_ns;  // lower bound of the task-entry times of its packets

  Handle* begin() { return pkts; }
  Handle* end() { return pkts + size_pkts; }
  Handle& operator[](uint32_t i) { return pkts[i]; }
};

}  // namespace batchplane::exec
