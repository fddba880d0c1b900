// SPDX-License-Identifier: BSD-3-Clause
#include "core/graph/trace.h"

#include <algorithm>
#include <cstring>

#include "core/module/module.h"
#include "core/module/traits.h"

namespace batchplane {
namespace {

const DropReason kEngineOverflow{"engine_overflow",
                                 "a module emitted more packets than it declared",
                                 "a defect of that module; report it"};
// The ring to another task uses the same reason.
const DropReason kQueueFull{"queue_full", "the queue of the next module or task had no room",
                            "enlarge it (queue_pkts, size_pkts), give its module a larger weight, "
                            "or that task another core"};
const DropReason kEarlyDrop{
    "early_drop", "a module further on was congested, so the packet was dropped at the entry",
    "give the congested module a larger weight, or send less"};

void note(Context& ctx, const ExecNode& node, Packet* pkt, TraceEventKind kind, uint16_t detail,
          uint32_t batch_pkts) noexcept {
  const uint8_t id = pkt->meta().trace_id;
  if (id == 0 || !ctx.tracer->knows(id)) return;
  const TraceEvent event{TscClock::instance().now_ns(),
                         node.rank,
                         ctx.task_index,
                         detail,
                         static_cast<uint16_t>(batch_pkts),
                         id,
                         kind};
  if (kind == TraceEventKind::kDrop) {
    ctx.tracer->note_drop(event, node.drop_target == nullptr);
  } else {
    ctx.tracer->note(event);
  }
}

}  // namespace

Tracer::Tracer(uint8_t first_id, uint32_t n_pkts, uint32_t n_session_pkts,
               std::function<bool(const uint8_t*, uint32_t)> accepts,
               std::vector<const void*> queues, std::atomic<uint32_t>& ended)
    : accepts_(std::move(accepts)),
      queues_(std::move(queues)),
      events_(size_t{n_session_pkts} * kEventsPerPkt),
      ended_(&ended),
      first_id_(first_id) {
  packets_.reserve(n_pkts);
}

void Tracer::tag(Packet* const* pkts, uint32_t n, uint64_t now_ns) noexcept {
  for (uint32_t i = 0; i < n && packets_.size() < packets_.capacity(); ++i) {
    Packet& pkt = *pkts[i];
    if (accepts_ && !accepts_(pkt.data(), pkt.len_bytes())) continue;
    Captured captured{now_ns, pkt.len_bytes(), std::min(pkt.len_bytes(), kSnapBytes), {}};
    std::memcpy(captured.bytes, pkt.data(), captured.snap_bytes);
    pkt.meta().trace_id = static_cast<uint8_t>(first_id_ + packets_.size());
    packets_.push_back(captured);
  }
}

void Tracer::note_drop(const TraceEvent& event, bool is_end) noexcept {
  for (uint32_t i = n_events_; i-- > 0;) {
    TraceEvent& earlier = events_[i];
    if (earlier.trace_id != event.trace_id) continue;
    if (earlier.kind != TraceEventKind::kEnd) break;
    earlier = event;
    if (!is_end) ended_->fetch_sub(1, std::memory_order_release);
    return;
  }
  if (n_events_ < events_.size()) events_[n_events_++] = event;
  if (is_end) ended_->fetch_add(1, std::memory_order_release);
}

bool Tracer::goes_on_behind(const void* module) const noexcept {
  return std::ranges::find(queues_, module) != queues_.end();
}

void CoreTraits::before_run(Context& ctx, Node& node, const Batch& batch) noexcept {
  if (ctx.tracer == nullptr) {
    __builtin_prefetch(&node.cost, 1);
    return;
  }
  const bool is_end = node.after == exec::After::kEnd && !ctx.tracer->goes_on_behind(node.module);
  for (uint32_t i = 0; i < batch.size_pkts; ++i) {
    note(ctx, node, batch.pkts[i], TraceEventKind::kRun, 0, batch.size_pkts);
    // Packets given to a terminal must not be read afterwards.
    if (is_end) note(ctx, node, batch.pkts[i], TraceEventKind::kEnd, 0, batch.size_pkts);
  }
}

void CoreTraits::on_run(Context& ctx, Node& node, const Batch& batch) noexcept {
  ctx.cause = exec::kNoCause;
  if (ctx.tracer != nullptr) {
    for (uint32_t i = 0; i < ctx.n_dropped; ++i) {
      note(ctx, node, ctx.dropped[i].pkt, TraceEventKind::kDrop, ctx.dropped[i].reason,
           batch.size_pkts);
    }
    if (node.after != exec::After::kScatter) return;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      if (batch.pkts[i] == nullptr) continue;
      note(ctx, node, batch.pkts[i], TraceEventKind::kGate, ctx.gates[i], batch.size_pkts);
    }
    return;
  }
  const uint64_t now = TscClock::cycles();
  uint64_t cycles = now - ctx.last_cycles;
  cycles -= std::min<uint64_t>(cycles, ctx.clock_cost_cycles);
  const uint64_t n = batch.size_pkts;
  if (node.usual_cost.believes(n, cycles)) node.cost.add(n, cycles);
  // The time for these records, whose cache lines are cold, must not count for the next module.
  _mm_lfence();
  ctx.last_cycles = TscClock::cycles();
}

void CoreTraits::on_hold(Context& ctx, Node& node, Packet* const* pkts, uint32_t n) noexcept {
  if (ctx.tracer == nullptr) return;
  for (uint32_t i = 0; i < n; ++i) note(ctx, node, pkts[i], TraceEventKind::kHold, 0, n);
}

uint16_t CoreTraits::overflow_reason() noexcept { return kEngineOverflow.index(); }
uint16_t CoreTraits::queue_full_reason() noexcept { return kQueueFull.index(); }
uint16_t CoreTraits::early_drop_reason() noexcept { return kEarlyDrop.index(); }

void CoreTraits::free(Context& ctx, Node& /*node*/, Packet* pkt, uint16_t /*reason*/) noexcept {
  ctx.free(pkt);
}

}  // namespace batchplane
