// SPDX-License-Identifier: BSD-3-Clause
// context.h - what a module may use while it runs: the time, its gates, and drop, keep and emit.
#pragma once

#include <cstdint>

#include "exec/batch.h"

namespace batchplane::exec {

using ReasonIndex = uint16_t;

// Owner: one worker. A module sees it only during a call.
template <class Handle>
struct Context {
  static constexpr uint32_t kMaxEmitPkts = 2 * kMaxBatchPkts;

  struct Dropped {
    Handle pkt;
    ReasonIndex reason;
  };
  struct Emitted {
    Handle pkt;
    GateIndex gate;
  };

  uint64_t now_ns = 0;  // read once per loop, and again after >= 500 ns of work
  uint32_t batch_limit_pkts = kDefaultBatchPkts;  // B
  uint32_t n_fates =
      0;  // drop, keep and emit calls not settled yet: one word for the engine to test
  uint32_t n_removed = 0;  // packets removed from the batch in this call: dropped or kept
  uint32_t n_dropped = 0;
  uint32_t n_emitted = 0;
  alignas(64)
      GateIndex gates[kMaxBatchPkts + 32];  // a splitter fills [0, size); slack for vector loads
  Dropped dropped[kMaxBatchPkts + kMaxEmitPkts];
  Emitted emitted[kMaxEmitPkts];

  // Removes packet i from the batch; the engine counts it under `reason` and frees it, or sends it to the
  // module's drop gate. The module must not touch the slot afterwards.
  void drop(Batch<Handle>& batch, uint32_t i, ReasonIndex reason) {
    dropped[n_dropped++] = {batch.pkts[i], reason};
    batch.pkts[i] = Handle{};
    ++n_removed;
    ++n_fates;
  }

  // Removes packet i from the batch; the module owns it from now on and reports it in held_pkts().
  Handle keep(Batch<Handle>& batch, uint32_t i) {
    const Handle pkt = batch.pkts[i];
    batch.pkts[i] = Handle{};
    ++n_removed;
    ++n_fates;
    return pkt;
  }

  // Sends a packet that the module owns (kept earlier, or new) to `gate`, ahead of the packets in the batch:
  // a kept packet is older than those, so its flow stays in order. Returns false after kMaxEmitPkts emissions
  // in one call: the module then still owns the packet.
  bool emit(GateIndex gate, Handle pkt) {
    if (n_emitted == kMaxEmitPkts) return false;
    emitted[n_emitted++] = {pkt, gate};
    ++n_fates;
    return true;
  }

  // Drops a packet that the module owns (kept earlier, or new). Same bound as emit.
  bool drop_owned(Handle pkt, ReasonIndex reason) {
    if (n_dropped >= kMaxEmitPkts) return false;
    dropped[n_dropped++] = {pkt, reason};
    ++n_fates;
    return true;
  }

  // Closes the gaps that removed packets left: keeps the order, and each packet's gate with it.
  void compact(Batch<Handle>& batch) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      batch.pkts[kept] = batch.pkts[i];
      gates[kept] = gates[i];
      kept += batch.pkts[i] != Handle{} ? 1 : 0;
    }
    batch.size_pkts = kept;
    n_removed = 0;
  }
};

}  // namespace batchplane::exec
