// SPDX-License-Identifier: BSD-3-Clause
// context.h - the worker's context that modules get with every call.
#pragma once

#include <cstdint>

#include "core/module/drop_reason.h"
#include "core/packet/packet.h"
#include "core/packet/packet_pool.h"
#include "exec/context.h"
#include "exec/flow_meter.h"
#include "exec/node.h"

namespace batchplane {

using Batch = exec::Batch<Packet*>;
using exec::GateIndex;

class Tracer;

// now_ns, gates, batch_limit_pkts, keep() and emit() come from exec::Context.
struct Context : exec::Context<Packet*> {
  static constexpr uint32_t kFreeListPkts = 512;

  PacketPool* pool = nullptr;  // for packets that a module makes itself
  exec::FlowMeter* meter = nullptr;
  Tracer* tracer = nullptr;
  uint16_t worker_index = 0;
  uint16_t task_index = 0;
  uint64_t originated_pkts = 0;
  uint8_t cause = exec::kNoCause;  // instrumented runs: why a buffer released the present batch
  uint64_t last_cycles = 0;        // instrumented runs: last clock reading of the chain
  uint32_t clock_cost_cycles = 0;  // cost of one reading
  uint32_t n_free = 0;
  Packet* free_list[kFreeListPkts];

  using exec::Context<Packet*>::drop;
  void drop(Batch& batch, uint32_t i, const DropReason& reason) {
    exec::Context<Packet*>::drop(batch, i, reason.index());
  }
  bool drop_owned(Packet* pkt, const DropReason& reason) {
    return exec::Context<Packet*>::drop_owned(pkt, reason.index());
  }

  // A new packet of `len` bytes made by the module (ARP request, ICMP error); nullptr when the pool is empty.
  // Send it with emit(). Its metadata says that it entered now and that the router made it.
  Packet* originate(uint32_t len_bytes) {
    Packet* pkt = nullptr;
    if (pool == nullptr || !pool->alloc_bulk(&pkt, 1)) return nullptr;
    pkt->reset(len_bytes);
    pkt->meta() = PacketMeta{};
    pkt->meta().entry_ns = now_ns;
    pkt->meta().in_interface = kNoInterface;
    pkt->meta().flags = kMetaOriginated;
    ++originated_pkts;
    return pkt;
  }

  // Frees a packet; packets return to their pool in bulk.
  void free(Packet* pkt) {
    if (n_free == kFreeListPkts) flush_free();
    free_list[n_free++] = pkt;
  }
  void free(Packet* const* pkts, uint32_t n) {
    if (n_free + n > kFreeListPkts) flush_free();
    for (uint32_t i = 0; i < n; ++i) free_list[n_free + i] = pkts[i];
    n_free += n;
  }
  void flush_free() {
    if (n_free != 0) PacketPool::free_bulk(free_list, n_free);
    n_free = 0;
  }
};

}  // namespace batchplane
