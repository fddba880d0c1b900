// SPDX-License-Identifier: BSD-3-Clause
// egress_scheduler.h - one interface to the arbiters of all disciplines: one virtual call per
// batch, not per packet.
#pragma once

#include <memory>
#include <string>

#include "core/packet/packet.h"
#include "egress/aqm/codel.h"
#include "egress/arbiter/backpressure.h"
#include "egress/arbiter/batch_mailbox.h"
#include "egress/discipline/discipline.h"
#include "egress/discipline/framing.h"
#include "egress/discipline/link.h"
#include "egress/tree/tree_params.h"
#include "modules/egress/egress_count.h"
#include "modules/egress/egress_edit.h"

namespace batchplane {

inline Packet* packet_of(const egress::Descriptor& pkt) {
  return reinterpret_cast<Packet*>(pkt.handle());  // NOLINT(performance-no-int-to-ptr)
}

// Packets that the discipline refused or pushed out (kPushedOut); the caller drops them.
struct EgressRefusals {
  static constexpr uint32_t kMax = 256;
  struct One {
    Packet* pkt;
    uint32_t flow;
    egress::Enqueued why;
  };
  uint32_t n = 0;
  One all[kMax];
};

// Owner: the polling worker; before the start and after the end the control thread.
class EgressScheduler {
 public:
  virtual ~EgressScheduler() = default;

  // Applies a checked edit. Returns false if the flow or node to remove still has packets or
  // children.
  virtual bool edit(const EgressEdit& edit) noexcept = 0;

  // Sets the current time; call before taking packets.
  virtual void begin_round(uint64_t now_ns) noexcept = 0;
  // Takes packets from one mailbox as long as `refusals` has room for all of them.
  virtual void take(egress::BatchMailbox& mailbox, EgressRefusals& refusals) noexcept = 0;
  // Releases at most `max` packets that the link can send by now.
  virtual uint32_t release(uint64_t now_ns, Packet** pkts, uint32_t max,
                           EgressFlowCount* counts) noexcept = 0;
  // Packets that queues have dropped since the last call; the caller drops them.
  virtual void take_shed(EgressRefusals& refusals) noexcept = 0;
  // Any worker. Tells whether a worker may drop packets of a flow itself.
  [[nodiscard]] virtual const egress::Backpressure& backpressure() const noexcept = 0;
  // Enqueues packets directly, without a mailbox.
  virtual void put(const egress::Descriptor* pkts, uint32_t n,
                   EgressRefusals& refusals) noexcept = 0;
  // Takes the next packet regardless of the link rate; returns false if there is none.
  virtual bool drain(egress::Descriptor& pkt) noexcept = 0;

  [[nodiscard]] virtual uint32_t backlog_pkts() const noexcept = 0;
  // Any thread.
  [[nodiscard]] virtual uint32_t backlog_pkts(uint32_t flow) const noexcept = 0;
  [[nodiscard]] virtual uint32_t backlog_bytes(uint32_t flow) const noexcept = 0;
  // False: the discipline counts only packets.
  [[nodiscard]] virtual bool tells_bytes() const noexcept = 0;
};

inline constexpr const char* kTreeDiscipline = "tree";
inline constexpr const char* kCalendarDiscipline = "calendar";

struct EgressSettings {
  std::string discipline;
  egress::Capacity capacity;
  // Tree only: inner nodes including the link, flows that may have rates, and the longest packet.
  uint32_t inner_nodes = 1;
  uint32_t shaped_flows = 0;
  uint32_t lmax_bytes = 0;
  uint32_t connections = 0;  // connections in queues with CoDel
  egress::CodelParams codel;
  uint64_t pie_target_ns = 0;
  uint64_t catch_up_ns = egress::kCatchUpNs;
  uint64_t rate_bps = 0;
  egress::Framing framing;

  bool operator==(const EgressSettings&) const = default;
};

[[nodiscard]] egress::TreeCapacity tree_capacity(const EgressSettings& settings);
// Returns nullptr for an unknown discipline.
std::unique_ptr<EgressScheduler> make_egress_scheduler(const EgressSettings& settings);

}  // namespace batchplane
