// SPDX-License-Identifier: BSD-3-Clause
// drop.cc - drops all packets on purpose, and counts them.
//
// in: any   out: none   drops: discarded   state: none
#include "core/module/register.h"

namespace batchplane {
namespace {

const DropReason kDiscarded{"discarded", "the pipeline sends these packets to a drop module",
                            "nothing to mend, unless they should not have come here"};

class Drop final : public Module {
 public:
  explicit Drop(const Args& /*args*/) {}

  void consume(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) ctx.drop(batch, i, kDiscarded);
  }
};

const Register<Drop> kDrop{{
    .kind = "drop",
    .state = StateOf::kNone,
    .help = "Drops every packet, with the reason `discarded`.",
    .drops = {&kDiscarded},
}};

}  // namespace
}  // namespace batchplane
