// SPDX-License-Identifier: BSD-3-Clause
// sink.cc - counts every packet as sent and frees it: the egress of pipelines that need no port.
//
// in: 1   out: none   drops: none   state: none (the engine counts packets and delays of flows)
#include "core/module/register.h"

namespace batchplane {
namespace {

class Sink final : public Module {
 public:
  explicit Sink(const Args& /*args*/) {}

  void consume(Context& ctx, Batch& batch) noexcept { ctx.free(batch.pkts, batch.size_pkts); }
};

const Register<Sink> kSink{{
    .kind = "sink",
    .state = StateOf::kNone,
    .help = "Counts every packet as sent and frees it; flows end here.",
    .is_egress = true,
    .notes = "Packets that should count as lost go to `drop` instead.",
}};

}  // namespace
}  // namespace batchplane
