// SPDX-License-Identifier: BSD-3-Clause
// scheduler.h - the packet scheduler of `egress` in virtual time: the engine's discipline, link and
// bounds, over packets without bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "egress/arbiter/backpressure.h"
#include "egress/bound/bound.h"
#include "egress/discipline/discipline.h"
#include "sim/packet.h"
#include "sim/scheduler_spec.h"

namespace batchplane::sim {

// Owner: the simulation.
class Scheduler {
 public:
  struct Refused {
    Packet* pkt;
    egress::Enqueued why;
  };
  // What passed in a plan.
  struct Metered {
    uint64_t pkts = 0;
    uint64_t bytes = 0;       // of the packets alone
    uint64_t wire_bytes = 0;  // on the link
  };
  // A flow's guarantee and its refused packets.
  struct Flow {
    bool is_known = false;
    uint64_t refused_pkts = 0;  // since take_promises()
    egress::Bound bound;        // without the arbiter's rounds
    Metered metered;
  };

  explicit Scheduler(const SchedulerSpec& spec);
  virtual ~Scheduler() = default;

  // Maps each traffic flow to a flow of the scheduler.
  void set_flows(std::vector<uint32_t> flow_of_traffic) {
    flow_of_traffic_ = std::move(flow_of_traffic);
  }
  [[nodiscard]] uint32_t flow_of(const Packet& pkt) const {
    return known(pkt.flow < flow_of_traffic_.size() ? flow_of_traffic_[pkt.flow] : 0);
  }
  // The queue of the flow with this number, as a route has it, is full: a packet for it is to be dropped, and
  // counts as refused.
  bool refuses(uint32_t number);
  [[nodiscard]] const Flow& flow(uint32_t number) const { return flows_[number]; }
  [[nodiscard]] uint32_t n_flows() const { return static_cast<uint32_t>(flows_.size()); }

  virtual void begin_round(uint64_t now_ns) = 0;
  // Reports, for packets that arrived in one path state and may still belong to several declared
  // flows, the flow with the longest bound; then forgets them.
  template <class Use>
  void take_promises(Use use) {
    for (uint32_t state = 0; state < promised_.size(); ++state) {
      if (promised_[state] != kNobody) use(static_cast<uint16_t>(state), promised_[state]);
      promised_[state] = kNobody;
    }
    for (Flow& flow : flows_) flow.refused_pkts = 0;
  }

  // For plans: the packet passes without waiting, and counts as what it would take of the link.
  void meter(const Packet& pkt);
  void begin_metering() {
    for (Flow& flow : flows_) flow.metered = {};
  }

  // Refused packets are in refused(), for the caller to drop.
  void put(Packet* pkt, uint64_t at_ns);
  virtual uint32_t release(Packet** pkts, uint32_t most, uint64_t now_ns) = 0;
  std::vector<Refused>& refused() { return refused_; }
  // When release() may find something; kNever while it is empty.
  static constexpr uint64_t kNever = ~0ULL;
  [[nodiscard]] virtual uint64_t next_ns() const = 0;
  [[nodiscard]] virtual uint32_t held_pkts() const = 0;
  [[nodiscard]] virtual uint32_t held_pkts(uint32_t flow) const = 0;
  // The next packet regardless of the link; nullptr if there is none.
  virtual Packet* drain() = 0;

 protected:
  virtual void enqueue(const egress::Descriptor& pkt) = 0;
  void refuse(const egress::Descriptor& pkt, egress::Enqueued why);
  void note_left(const egress::Descriptor& pkt);
  static Packet* packet_of(const egress::Descriptor& pkt) {
    return reinterpret_cast<Packet*>(pkt.handle());  // NOLINT(performance-no-int-to-ptr)
  }
  egress::Backpressure backpressure_;

 private:
  [[nodiscard]] uint32_t known(uint32_t flow) const {
    return flow < flows_.size() && flows_[flow].is_known ? flow : 0;
  }
  void note_promise(const Packet& pkt, uint32_t flow);

  egress::Framing framing_;
  bool keeps_departures_;
  std::vector<uint32_t> flow_of_traffic_;
  static constexpr uint32_t kNobody = ~0U;

  std::vector<Flow> flows_;         // by number
  std::vector<uint32_t> promised_;  // by path state
  std::vector<Refused> refused_;
};

// Throws ConfigError if the discipline refuses the parameters.
std::unique_ptr<Scheduler> make_scheduler(const SchedulerSpec& spec);

}  // namespace batchplane::sim
