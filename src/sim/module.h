// SPDX-License-Identifier: BSD-3-Clause
// module.h - a module without a function: it takes time and sends packets along their flows'
// routes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/alias_table.h"
#include "egress/discipline/departures.h"
#include "exec/control.h"
#include "exec/snapshot.h"
#include "sim/traits.h"

namespace batchplane::sim {

class Queue;

// Of a module of kind `pace`.
struct Pacing {
  egress::Departures departures;
  egress::DepartureRule rule;
};

// What the module does with packets besides taking time.
enum class Role : uint8_t {
  kInput,    // not a node: a port or source polled by the task
  kPass,     // in-place
  kRoute,    // splitter: by the packet's flow
  kInTurn,   // splitter: round robin
  kRandom,   // splitter: at random
  kEgress,   // terminal where flows end
  kDrop,     // terminal that drops
  kQueue,    // terminal of one task, input of another
  kDeadEnd,  // behind gates that lead nowhere
};

// Owner: the simulation; touched by one simulated worker at a time.
struct Module {
  // Fields used by a run.
  uint64_t batch_ticks = 0;                // cost_per_batch
  uint64_t pkt_ticks = 0;                  // cost_per_pkt
  const uint64_t* table_ticks = nullptr;   // replaces both: [n] for a batch of n
  const uint16_t* gate_of_flow = nullptr;  // kRoute; kPass: kDropMark if the flow ends here
  Role role = Role::kPass;
  bool may_drop = false;  // some flow ends here
  uint16_t n_gates = 0;
  uint16_t turn = 0;
  uint16_t static_flow = 0;
  const uint16_t* flow_of_state = nullptr;
  Queue* queue = nullptr;
  uint32_t ring = 0;                // of the queue that packets are put into here
  uint32_t leg = exec::Leg::kNone;  // the leg that ends at the queue here
  // kPass: null but for `pace`, and for `early_drop`, whose packets this queue's scheduler may refuse.
  std::unique_ptr<Pacing> pacing;
  Queue* refused_by = nullptr;
  std::vector<uint32_t> numbers;  // of these: the flow's number, by traffic flow
  Rng rng{1};

  static constexpr uint16_t kDropMark = 0xffff;

  std::unique_ptr<AliasTable> weights;  // kRandom with weights
  std::vector<uint64_t> table;
  std::vector<uint16_t> gates;
  std::vector<uint64_t> stamps;  // per gate: the last batch that took it
  uint64_t stamp = 0;
  // If another branch is merged into these: the gates that take its packets in turn.
  std::vector<uint16_t> siblings;
  uint32_t sibling_turn = 0;
  uint16_t merged_gate = kDropMark;
  std::string name;
  std::string kind;
  uint32_t index = 0;  // in the pipeline
  CostLaw cost;

  [[nodiscard]] bool has_numbers() const { return pacing != nullptr || refused_by != nullptr; }

  void set_cost(const CostLaw& next, uint32_t batch_limit_pkts);
  // Cost of a batch that is not empty and within the limit.
  [[nodiscard]] uint64_t ticks_of(uint32_t n_pkts) const {
    return table_ticks != nullptr ? table_ticks[n_pkts] : batch_ticks + pkt_ticks * n_pkts;
  }
};

// Advances the worker's clock by the cost of a run on n_pkts, noise included.
void charge_run(Context& ctx, const Module& module, uint32_t n_pkts);

using RunFunction = exec::Node<Traits>::Run;
// The function that the executor calls for a module.
[[nodiscard]] RunFunction run_function(const Module& module);

// Why a simulated packet was dropped; drop counters have one slot each.
enum Reason : uint16_t {
  kRouteEnds,
  kUnconnected,
  kQueueFull,
  kOverflow,
  kEarlyDrop,
  kMailboxFull,
  kEgressFull,
  kEgressTooLong,
  kEgressShed,
  kRefused,
  kPaceHorizon,
  kReasons
};
[[nodiscard]] const std::vector<exec::DropReasonInfo>& drop_reasons();

}  // namespace batchplane::sim
