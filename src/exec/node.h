// SPDX-License-Identifier: BSD-3-Clause
// node.h - one module of a task's graph as the executor sees it: its function, where its batches go, and its
// held packets.
//
// A chain is a node and the nodes that it reaches by pointer: successors with a single predecessor and
// trigger 0. A chain's functions are adjacent in memory (Step), and its batches are counted once, at its
// head; the counts of the other nodes follow from that (Executor::totals).
#pragma once

#include <cstdint>

#include "base/cost_fit.h"
#include "exec/batch.h"
#include "exec/usual_cost.h"

namespace batchplane::exec {

// Why a buffer released packets.
enum class Cause : uint8_t { kFull, kAge, kIdle, kChange };
inline constexpr uint32_t kCauses = 4;
// In place of a cause: not released by a buffer.
inline constexpr uint8_t kNoCause = kCauses;
inline constexpr const char* kCauseNames[kCauses] = {"full", "age", "idle", "change"};

struct CauseCount {
  uint64_t firings = 0;
  uint64_t pkts = 0;
  uint64_t wait_ns = 0;  // sum over firings of the time since the buffer was last empty
};

// A buffer that is full this many times as often as it is released for other reasons takes turns with others.
inline constexpr int32_t kFullPerOther = 8;
inline constexpr int32_t kMaxFullness = 64 * kFullPerOther;  // gaps come in clusters

// Where a batch goes after the module's function, or after the last function of a chain.
enum class After : uint8_t {
  kDirect,   // same array, next node's function: no queue in between
  kEnqueue,  // into the next node's queue (it merges, or buffers)
  kScatter,  // by the gate index of each packet
  kEnd,      // the module took the packets
};

// The fractional buffer: a node's own input queue, and the head of the chain that begins here. Owner: the
// worker that runs the task. Packets [0, size) are held in arrival order. The capacity is fixed at load time
// so that append never overflows: B of the input, plus B-1 held here and at each ancestor, plus the packets
// that modules may emit on their own.
template <class Handle>
struct alignas(64) Queue {
  // One cache line: all that a batch touches of the head when it passes an unbuffered chain.
  Handle* pkts = nullptr;
  uint32_t size_pkts = 0;
  uint16_t trigger_pkts = 0;
  uint16_t release_at_pkts = 0;        // trigger, or less where it takes its turn
  uint64_t entry_bound_ns = kNeverNs;  // lower bound of the task-entry times held
  const void* steps = nullptr;         // Node::Step[n_steps]
  void* tail = nullptr;                // Node at the end of the chain
  uint64_t batches = 0;  // batches that entered here: queued, scattered, or first of a run
  uint64_t entered_pkts = 0;
  uint16_t rank = 0;
  uint8_t n_steps = 1;
  After chain_after : 2 = After::kEnd;  // after of the tail
  bool is_direct : 1 = false;   // one input, trigger 0: a batch may pass by pointer while size is 0
  bool is_changed : 1 = false;  // held packets leave no room for its turn: settle at the next loop
  bool is_listed : 1 = false;   // among the buffers that the executor looks through
  uint16_t work_per_batch_ns = 40;  // of the chain; used only to decide when the clock is due
  uint16_t work_per_pkt_16ths_ns = 16 * 10;

  uint32_t seen_pkts = 0;  // size after the last append or firing
  uint32_t capacity_pkts = 0;
  uint64_t since_ns = 0;  // when the first packet held arrived
  uint64_t age_limit_ns = 0;
  uint64_t late_releases = 0;
  uint64_t arrived_batches = 0;  // batches that reached the buffer while its trigger was > 0
  uint64_t arrived_pkts = 0;
  CauseCount causes[kCauses];
  // Rises with each full release, falls by kFullPerOther with one for age or idleness. Below 0 the buffer
  // does not take turns.
  int32_t fullness = kFullPerOther;
  uint64_t counted_full = 0;  // full releases that count in it
  uint16_t turn_pkts = 0;     // first release after a change, before the packets held then
  // Of a scheduled unit: any packet makes it ready (trigger 1). The control thread reads this, so it shares
  // no byte with what the worker writes.
  bool is_untriggered = false;

  // The trigger as set: a unit's queue holds packets with trigger 0 too.
  [[nodiscard]] uint32_t wanted_trigger_pkts() const { return is_untriggered ? 0 : trigger_pkts; }
};

// Executions and packets of a node; see Executor::totals.
struct NodeTotals {
  uint64_t batches = 0;
  uint64_t pkts = 0;
};

// What crossing a gate does to a packet's path state: nothing, set a constant, or look it up in a map.
struct PathOp {
  static constexpr uint16_t kKeep = 0xffff;
  uint16_t constant = kKeep;
  const uint16_t* map = nullptr;
};

template <class Traits>
struct Node {
  using Handle = typename Traits::Handle;
  // Passed in registers: a batch in memory would cost each call two loads.
  using Run = void (*)(void* module, typename Traits::Context&, Handle* pkts,
                       uint32_t n_pkts) noexcept;
  struct Step {
    Run run;
    void* module;
  };
  static constexpr uint32_t kMaxSteps = 250;  // of one chain

  Run run = nullptr;
  void* module = nullptr;
  Node* next = nullptr;  // in-place nodes: the only successor
  Queue<Handle>* queue = nullptr;
  Queue<Handle>** targets = nullptr;  // input queue behind each gate (in-place: gate 0)
  After after = After::kEnd;
  bool has_path_ops = false;
  bool scatters_by_vector = false;
  uint16_t n_gates = 0;
  uint16_t rank = 0;

  PathOp* path_ops = nullptr;            // per gate; [n_gates] is the drop gate
  Queue<Handle>* drop_target = nullptr;  // on_drop: gate
  Node* sole_predecessor = nullptr;  // in-place node whose only successor this is; none when that
                                     // emits: emitted packets queue up here, no batch may pass them
  uint16_t n_inputs = 0;
  uint32_t chain_position = 0;    // in the longest possible chain; links are cut every kMaxSteps
  uint64_t* drops = nullptr;      // per reason: packets that ended here
  uint64_t* handed_on = nullptr;  // per reason: sent to the drop gate; nodes with a drop target
  uint64_t dropped_pkts = 0;      // the sum of both
  CostSamples cost;
  UsualCost usual_cost;

  // Counts that did not enter through the queue: see Executor::totals.
  NodeTotals folded;     // passes by pointer under earlier links
  NodeTotals link_base;  // the predecessor's totals when the present link began
  NodeTotals missing;    // what the predecessor has removed from batches since then
};

}  // namespace batchplane::exec
