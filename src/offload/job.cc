// SPDX-License-Identifier: BSD-3-Clause
#include "offload/job.h"

#include <algorithm>

namespace batchplane::offload {

template <class Function>
void Runner::note_fates(Context& ctx, Packet** pkts, uint32_t n_pkts, Function function) noexcept {
  Packet* all[exec::kMaxBatchPkts];
  std::copy_n(pkts, n_pkts, all);
  function();
  const bool has_gates = info_.shape == Shape::kSplitter;
  for (uint32_t i = 0; i < n_pkts; ++i) {
    if (pkts[i] != nullptr) pkts[i]->meta().drop_reason = has_gates ? ctx.gates[i] : GateIndex{0};
  }
  for (uint32_t i = 0; i < ctx.n_dropped; ++i) {
    ctx.dropped[i].pkt->meta().drop_reason =
        static_cast<uint16_t>(kDropFate | ctx.dropped[i].reason);
  }
  ctx.n_fates = ctx.n_removed = ctx.n_dropped = 0;
  std::copy_n(all, n_pkts, pkts);
}

void Runner::run(Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept {
  note_fates(ctx, pkts, n_pkts, [&] { info_.run(module_.get(), ctx, pkts, n_pkts); });
}

bool Runner::apply(KernelTable* table, Context& ctx, Packet** pkts, uint32_t n_pkts,
                   const uint8_t* results, const RewritingKernel::Rewritten* rewritten) noexcept {
  bool was_right = true;
  note_fates(ctx, pkts, n_pkts, [&] {
    Batch batch{pkts, n_pkts, exec::kNeverNs};
    Kernel& kernel = *module_->kernel();
    if (rewritten == nullptr) return kernel.apply(table, ctx, batch, results);
    was_right = kernel.rewriting()->apply_over(table, ctx, batch, results, rewritten);
  });
  return was_right;
}

}  // namespace batchplane::offload
