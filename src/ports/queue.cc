// SPDX-License-Identifier: BSD-3-Clause
// queue.cc - joins two tasks: one or more workers put packets in, another task polls them.
//
// in: 1   out: 1   drops: queue_full   state: packets in its rings, carried over by apply
#include "core/module/feeder_queue.h"
#include "core/module/register.h"

namespace batchplane {
namespace {

class Queue final : public FeederQueue {
 public:
  using FeederQueue::FeederQueue;

  void consume(Context& ctx, Batch& batch) noexcept { put(ctx, batch); }
  uint32_t poll(Context& /*ctx*/, Packet** pkts, uint32_t max) noexcept { return take(pkts, max); }
};

const Register<Queue> kQueue{{
    .kind = "queue",
    .state = StateOf::kOneOwner,
    .help = "Hands packets to a task on another worker, without ever blocking.",
    .params = queue_params(),
    .drops = {&reason::kQueueFull},
    .notes = "The delay of a flow counts on through a queue; age limits behind it count from the "
             "time at which a packet was put in.",
}};

}  // namespace
}  // namespace batchplane
