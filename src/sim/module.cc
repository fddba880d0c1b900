// SPDX-License-Identifier: BSD-3-Clause
// module.cc - the functions that stand in for modules.
#include "sim/module.h"

#include <algorithm>

#include "sim/queue.h"

namespace batchplane::sim {
namespace {

// Sum of twelve uniform draws less six: close to a normal draw, and the same on every machine.
double normal(Rng& rng) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += rng.uniform();
  return sum;
}

}  // namespace

void charge_run(Context& ctx, const Module& module, uint32_t n_pkts) {
  uint64_t ticks = module.ticks_of(n_pkts);
  if (ctx.noise_sigma != 0) [[unlikely]] {
    const double factor = 1 + ctx.noise_sigma * normal(ctx.noise);
    ticks = static_cast<uint64_t>(static_cast<double>(ticks) * std::max(factor, 0.1));
  }
  ctx.clock.ticks += ticks;
}

namespace {

// Drops the packet if its route ends here.
bool is_ended(Context& ctx, const Module& module, exec::Batch<Packet*>& batch, uint32_t i) {
  if (!module.may_drop || module.gate_of_flow[batch[i]->flow] != Module::kDropMark) return false;
  ctx.drop(batch, i, kRouteEnds);
  return true;
}

void drop_ended(Context& ctx, const Module& module, Packet** pkts, uint32_t n_pkts) {
  exec::Batch<Packet*> batch{pkts, n_pkts, exec::kNeverNs};
  for (uint32_t i = 0; i < n_pkts; ++i) (void)is_ended(ctx, module, batch, i);
}

void run_pass(void* self, Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept {
  const Module& module = *static_cast<const Module*>(self);
  charge_run(ctx, module, n_pkts);
  if (module.may_drop) drop_ended(ctx, module, pkts, n_pkts);
}

void run_pace(void* self, Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept {
  const Module& module = *static_cast<const Module*>(self);
  charge_run(ctx, module, n_pkts);
  exec::Batch<Packet*> batch{pkts, n_pkts, exec::kNeverNs};
  egress::Departures& departures = module.pacing->departures;
  for (uint32_t i = 0; i < n_pkts; ++i) {
    if (is_ended(ctx, module, batch, i)) continue;
    Packet& pkt = *pkts[i];
    const uint64_t at_ns = departures.next_ns(departures.flow_of(module.numbers[pkt.flow]),
                                              pkt.len_bytes(), ctx.now_ns, module.pacing->rule);
    if (at_ns == egress::Departures::kBeyondHorizon) {
      ctx.drop(batch, i, kPaceHorizon);
      continue;
    }
    pkt.departure_ticks = egress::departure_ticks_of(at_ns);
    pkt.has_departure = true;
  }
}

void run_early_drop(void* self, Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept {
  const Module& module = *static_cast<const Module*>(self);
  charge_run(ctx, module, n_pkts);
  Scheduler* const scheduler = module.refused_by->scheduler();  // in a plan: none
  exec::Batch<Packet*> batch{pkts, n_pkts, exec::kNeverNs};
  for (uint32_t i = 0; i < n_pkts; ++i) {
    if (is_ended(ctx, module, batch, i)) continue;
    if (scheduler != nullptr && scheduler->refuses(module.numbers[pkts[i]->flow]))
      ctx.drop(batch, i, kEgressFull);
  }
}

// Cost of scattering the batch: none if all packets take one gate.
void charge_scatter(Context& ctx, Module& module, uint32_t n_pkts) {
  const uint64_t branch_ticks = to_ticks(ctx.loop.scatter_per_branch_ns);
  const uint64_t pkt_ticks = to_ticks(ctx.loop.scatter_per_pkt_ns);
  if (branch_ticks == 0 && pkt_ticks == 0) return;
  ++module.stamp;
  uint32_t n_branches = 0;
  for (uint32_t i = 0; i < n_pkts; ++i) {
    uint64_t& seen = module.stamps[ctx.gates[i]];
    n_branches += seen != module.stamp ? 1 : 0;
    seen = module.stamp;
  }
  if (n_branches > 1) {
    ctx.clock.ticks += branch_ticks * (n_branches - 1) + pkt_ticks * n_pkts;
  }
}

// Gates for packets of a merged branch, here and further on, where no route names a gate: siblings
// in turn.
void merge_gates(Context& ctx, Module& module, uint32_t n_pkts) {
  for (uint32_t i = 0; i < n_pkts; ++i) {
    uint16_t& gate = ctx.gates[i];
    if (gate != module.merged_gate && gate < module.n_gates) continue;
    if (gate == Module::kDropMark) continue;
    gate = module.siblings[module.sibling_turn];
    module.sibling_turn =
        module.sibling_turn + 1 < module.siblings.size() ? module.sibling_turn + 1 : 0;
  }
}

// Finishes a split once the gates are known.
void finish_split(Context& ctx, Module& module, uint32_t n_pkts) {
  if (!module.siblings.empty()) [[unlikely]]
    merge_gates(ctx, module, n_pkts);
  charge_scatter(ctx, module, n_pkts);
}

void run_route(void* self, Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept {
  Module& module = *static_cast<Module*>(self);
  charge_run(ctx, module, n_pkts);
  const uint16_t* const gates = module.gate_of_flow;
  for (uint32_t i = 0; i < n_pkts; ++i) ctx.gates[i] = gates[pkts[i]->flow];
  if (module.may_drop) [[unlikely]] {
    if (!module.siblings.empty()) merge_gates(ctx, module, n_pkts);
    drop_ended(ctx, module, pkts, n_pkts);
  } else {
    finish_split(ctx, module, n_pkts);
  }
}

void run_in_turn(void* self, Context& ctx, Packet** /*pkts*/, uint32_t n_pkts) noexcept {
  Module& module = *static_cast<Module*>(self);
  charge_run(ctx, module, n_pkts);
  for (uint32_t i = 0; i < n_pkts; ++i) {
    ctx.gates[i] = module.turn;
    module.turn = static_cast<uint16_t>(module.turn + 1 == module.n_gates ? 0 : module.turn + 1);
  }
  finish_split(ctx, module, n_pkts);
}

void run_random(void* self, Context& ctx, Packet** /*pkts*/, uint32_t n_pkts) noexcept {
  Module& module = *static_cast<Module*>(self);
  charge_run(ctx, module, n_pkts);
  if (module.weights == nullptr) {
    for (uint32_t i = 0; i < n_pkts; ++i) {
      ctx.gates[i] = static_cast<exec::GateIndex>(module.rng.below(module.n_gates));
    }
  } else {
    for (uint32_t i = 0; i < n_pkts; ++i) ctx.gates[i] = module.weights->pick(module.rng.next());
  }
  finish_split(ctx, module, n_pkts);
}

void note_last_leg(exec::FlowMeter& meter, uint16_t flow, Packet* const* pkts, uint32_t n_pkts) {
  const uint32_t leg = meter.last_leg_of(flow);
  for (uint32_t i = 0; i < n_pkts; ++i) meter.record_leg(leg, 1, pkts[i]->task_entry_ns);
}

// Books packets as the engine does: one record for a batch of one flow and one entry time.
void run_egress(void* self, Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept {
  const Module& module = *static_cast<const Module*>(self);
  exec::FlowMeter& meter = *ctx.meter;
  if (meter.is_nearly_full(n_pkts)) [[unlikely]]
    meter.flush(ctx.now_ns);
  charge_run(ctx, module, n_pkts);
  ctx.clock.ticks += to_ticks(ctx.loop.egress_per_pkt_ns) * n_pkts;
  for (uint32_t i = 0; i < n_pkts;) {
    Packet* const pkt = pkts[i];
    const uint16_t flow = module.flow_of_state == nullptr ? module.static_flow
                                                          : module.flow_of_state[pkt->path_state];
    uint32_t n_same = 1;
    for (; i + n_same < n_pkts; ++n_same) {
      const Packet& other = *pkts[i + n_same];
      if (other.entry_ns != pkt->entry_ns || other.path_state != pkt->path_state) break;
    }
    meter.record(flow, n_same, pkt->entry_ns);
    if (meter.has_legs()) note_last_leg(meter, flow, pkts + i, n_same);
    i += n_same;
  }
  for (uint32_t i = 0; i < n_pkts; ++i) {
    if (pkts[i]->trace_id != kUntraced) [[unlikely]]
      ctx.recorder->packets[pkts[i]->trace_id].exit_ns = ctx.clock.ticks >> kTicksPerNsLog2;
    ctx.end(pkts[i]);
  }
}

void run_drop(void* self, Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept {
  charge_run(ctx, *static_cast<const Module*>(self), n_pkts);
  exec::Batch<Packet*> batch{pkts, n_pkts, exec::kNeverNs};
  for (uint32_t i = 0; i < n_pkts; ++i) ctx.drop(batch, i, kRouteEnds);
}

void run_dead_end(void* /*self*/, Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept {
  exec::Batch<Packet*> batch{pkts, n_pkts, exec::kNeverNs};
  for (uint32_t i = 0; i < n_pkts; ++i) ctx.drop(batch, i, kUnconnected);
}

void run_queue(void* self, Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept {
  const Module& module = *static_cast<const Module*>(self);
  charge_run(ctx, module, n_pkts);
  const uint64_t hop_ticks =
      module.queue->is_far(module.ring) ? to_ticks(ctx.loop.hop.send_per_pkt_ns) : 0;
  ctx.clock.ticks += (to_ticks(ctx.loop.ring_take_per_pkt_ns) + hop_ticks) * n_pkts;
  const uint64_t now_ns = ctx.clock.ticks >> kTicksPerNsLog2;
  exec::Batch<Packet*> batch{pkts, n_pkts, exec::kNeverNs};
  Stage* const stage = module.queue->stage();
  if (ctx.meter->is_nearly_full(n_pkts)) [[unlikely]]
    ctx.meter->flush(ctx.now_ns);
  Scheduler* const scheduler = module.queue->scheduler();
  for (uint32_t i = 0; i < n_pkts; ++i) {
    Packet* const pkt = pkts[i];
    if (scheduler != nullptr && scheduler->refuses(scheduler->flow_of(*pkt))) {
      ctx.drop(batch, i, kEgressFull);
      continue;
    }
    if (stage != nullptr && stage->refuses(module.ring)) {
      ctx.drop(batch, i, kRefused);
      continue;
    }
    ctx.meter->record_leg(module.leg, 1, pkt->task_entry_ns);
    pkt->task_entry_ns = std::max(ctx.now_ns, pkt->entry_ns);
    if (!module.queue->put(module.ring, pkt, now_ns)) {
      ctx.drop(batch, i, scheduler == nullptr ? kQueueFull : kMailboxFull);
    } else if (pkt->trace_id != kUntraced) {
      ctx.recorder->note_arrival(pkt->trace_id, now_ns);
    }
  }
}

}  // namespace

void Module::set_cost(const CostLaw& next, uint32_t batch_limit_pkts) {
  cost = next;
  batch_ticks = to_ticks(next.line().cost_per_batch_ns);
  pkt_ticks = to_ticks(next.line().cost_per_pkt_ns);
  table.clear();
  if (next.is_table()) table.push_back(0);
  for (uint32_t n = 1; next.is_table() && n <= batch_limit_pkts; ++n) {
    table.push_back(to_ticks(next.ns(n)));
  }
  table_ticks = table.empty() ? nullptr : table.data();
}

RunFunction run_function(const Module& module) {
  if (module.pacing != nullptr) return &run_pace;
  if (module.refused_by != nullptr) return &run_early_drop;
  switch (module.role) {
    case Role::kRoute:
      return &run_route;
    case Role::kInTurn:
      return &run_in_turn;
    case Role::kRandom:
      return &run_random;
    case Role::kEgress:
      return &run_egress;
    case Role::kDrop:
      return &run_drop;
    case Role::kQueue:
      return &run_queue;
    case Role::kDeadEnd:
      return &run_dead_end;
    case Role::kPass:
    case Role::kInput:
      break;
  }
  return &run_pass;
}

const std::vector<exec::DropReasonInfo>& drop_reasons() {
  static const std::vector<exec::DropReasonInfo> kInfos = {
      {"route_ends", "the packet's flow ends at this module",
       "nothing to mend: it is dropped here"},
      {"unconnected_gate", "the gate that the packet took leads nowhere", "connect the gate"},
      {"queue_full", "the queue of the next module or task had no room",
       "enlarge it (queue_pkts), give its module a larger weight, or slow down its producer"},
      {"engine_overflow", "a queue inside the task overflowed",
       "a defect of the simulator; report it"},
      {"early_drop", "a module further on was congested, so the packet was dropped at the entry",
       "give the congested module a larger weight, or send less"},
      {"mailbox_full", "the scheduler did not keep up with this worker",
       "enlarge mailbox_pkts, or give the scheduler's task a core of its own"},
      {"egress_full", "the egress queue of the packet's flow is full, or the longest while all are",
       "the flow sends more than its share: raise its weight or limit_pkts"},
      {"egress_too_long", "the packet is longer than its egress flow may send",
       "raise lmax_bytes of the flow"},
      {"egress_shed", "the packet's queue keeps delays short by dropping some",
       "nothing to mend: its sender is to slow down"},
      {"refused_by_placement", "no device has time for the packet",
       "add a device, or let the module run on more of them"},
      {"pace_horizon", "the packet's departure would be farther ahead than the horizon of a pace",
       "its flow sends more than rate_bps: raise that, or horizon_us if it only bursts"},
  };
  return kInfos;
}

}  // namespace batchplane::sim
