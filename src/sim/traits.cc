// SPDX-License-Identifier: BSD-3-Clause
// traits.cc - the executor's callbacks: the end of a packet, and records while a simulation is
// watched.
#include "sim/traits.h"

#include <algorithm>

#include "sim/module.h"
#include "sim/source.h"

namespace batchplane::sim {
namespace {

// The release began before the firing's cost was charged; that time counts as age, too.
void note_ages(Context& ctx, const Traits::Node& node, const exec::Batch<Packet*>& batch) {
  const uint64_t now_ns = ctx.clock.ticks >> kTicksPerNsLog2;
  ReleaseAges& ages = ctx.recorder->ages[static_cast<const Module*>(node.module)->index];
  ages.releases += 1;
  ages.pkts += batch.size_pkts;
  for (uint32_t i = 0; i < batch.size_pkts; ++i) {
    // A packet that was too old before it could be polled counts as due when it was polled.
    const uint64_t polled_ns = batch.pkts[i]->polled_ns;
    const uint64_t since_ns = std::max(batch.pkts[i]->task_entry_ns,
                                       polled_ns - std::min(polled_ns, node.queue->age_limit_ns));
    ages.worst_ns = std::max(ages.worst_ns, now_ns - std::min(now_ns, since_ns));
  }
}

}  // namespace

uint16_t Traits::overflow_reason() noexcept { return kOverflow; }
uint16_t Traits::queue_full_reason() noexcept { return kQueueFull; }
uint16_t Traits::early_drop_reason() noexcept { return kEarlyDrop; }

void Context::note_left(const Packet& pkt) {
  Source* const source = closed_loops[pkt.flow];
  if (source != nullptr) source->note_left(clock.ticks >> kTicksPerNsLog2);
}

void Traits::free(Context& ctx, Node& /*node*/, Packet* pkt, uint16_t /*reason*/) noexcept {
  if (pkt->trace_id != kUntraced) {
    PacketRecord& record = ctx.recorder->packets[pkt->trace_id];
    record.exit_ns = ctx.clock.ticks >> kTicksPerNsLog2;
    record.is_dropped = true;
  }
  ctx.end(pkt);
}

void Traits::before_run(Context& ctx, Node& node, const exec::Batch<Packet*>& batch) noexcept {
  if (ctx.recorder == nullptr || !ctx.recorder->is_on()) return;
  const uint64_t now_ns = ctx.clock.ticks >> kTicksPerNsLog2;
  if (!ctx.recorder->ages.empty() && ctx.cause != exec::kNoCause) note_ages(ctx, node, batch);
  if (!ctx.recorder->has_packets()) return;
  for (uint32_t i = 0; i < batch.size_pkts; ++i) {
    const uint32_t id = batch.pkts[i]->trace_id;
    if (id == kUntraced) continue;
    const Module& module = *static_cast<const Module*>(node.module);
    ctx.recorder->add_hop({id, module.index, 0, now_ns, now_ns, batch.size_pkts});
  }
}

void Traits::on_run(Context& ctx, Node& node, const exec::Batch<Packet*>& batch) noexcept {
  const uint64_t ticks = ctx.clock.ticks - ctx.chain_start_ticks;
  const uint64_t start_ns = ctx.chain_start_ticks >> kTicksPerNsLog2;
  const uint64_t end_ns = ctx.clock.ticks >> kTicksPerNsLog2;
  ctx.chain_start_ticks = ctx.clock.ticks;
  node.cost.add(batch.size_pkts, ticks);
  Recorder* const recorder = ctx.recorder;
  if (recorder != nullptr && recorder->is_on()) {
    const Module& module = *static_cast<const Module*>(node.module);
    recorder->add_execution({start_ns, end_ns, module.index, batch.size_pkts, ctx.cause});
    for (size_t i = recorder->hops.size(); i-- > 0;) {
      Hop& hop = recorder->hops[i];
      if (hop.module != module.index || hop.start_ns != start_ns) break;
      hop.end_ns = end_ns;
    }
  }
  ctx.cause = exec::kNoCause;
}

void Traits::on_hold(Context& ctx, Node& /*node*/, Packet* const* pkts, uint32_t n) noexcept {
  if (ctx.recorder == nullptr || !ctx.recorder->is_on()) return;
  for (uint32_t i = 0; i < n; ++i) {
    if (pkts[i]->trace_id == kUntraced) continue;
    ctx.recorder->note_arrival(pkts[i]->trace_id, ctx.clock.ticks >> kTicksPerNsLog2);
  }
}

}  // namespace batchplane::sim
