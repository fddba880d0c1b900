// SPDX-License-Identifier: BSD-3-Clause
#include "sim/scheduler.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "egress/arbiter/arbiter.h"
#include "egress/bound/tree_bound.h"
#include "egress/discipline/disciplines.h"
#include "egress/tree/calendar.h"
#include "egress/tree/tree.h"

namespace batchplane::sim {
namespace {

[[noreturn]] void refuse_flow(const std::string& why, uint32_t number) {
  throw ConfigError(why, "simulation.schedulers", "of flow or node " + std::to_string(number));
}

void fill(const SchedulerSpec& spec, egress::Discipline auto& discipline) {
  for (const auto& [number, params] : spec.flows) {
    const egress::Configured done = discipline.configure(number, params);
    if (done != egress::Configured::kYes) refuse_flow(message_of(done), number);
  }
}

void fill(const SchedulerSpec& spec, egress::Tree& tree) {
  for (const egress::PlacedNode& node : spec.nodes) {
    const egress::Edited done = tree.add(node.number, node.parent, node.params);
    if (done != egress::Edited::kYes) refuse_flow(message_of(done), node.number);
  }
}

template <egress::PacketOrder D>
class SchedulerOf final : public Scheduler {
 public:
  template <class Capacity>
  SchedulerOf(const SchedulerSpec& spec, const Capacity& capacity)
      : Scheduler(spec), arbiter_(D(capacity), egress::Link(spec.rate_bps, spec.framing)) {
    fill(spec, arbiter_.discipline());
  }

  void begin_round(uint64_t now_ns) override { arbiter_.begin_round(now_ns); }
  uint32_t release(Packet** pkts, uint32_t most, uint64_t now_ns) override {
    uint32_t n = 0;
    backpressure_.begin_round();
    arbiter_.release(now_ns, most, [&](const egress::Descriptor& pkt) {
      pkts[n++] = packet_of(pkt);
      note_left(pkt);
    });
    arbiter_.take_shed(
        [this](const egress::Descriptor& pkt, egress::Enqueued why) { refuse(pkt, why); });
    // Neither the link nor room in the batch is missing: all packets left wait for their rates.
    waits_for_rates_ = n < most && arbiter_.link().is_free(now_ns);
    return n;
  }
  [[nodiscard]] uint64_t next_ns() const override {
    if (held_pkts() == 0) return kNever;
    if constexpr (egress::TimedOrder<D>) {
      if (waits_for_rates_) return const_cast<D&>(arbiter_.discipline()).next_ready_ns();
    }
    return arbiter_.link().free_at_ns();
  }
  [[nodiscard]] uint32_t held_pkts() const override { return arbiter_.discipline().backlog_pkts(); }
  [[nodiscard]] uint32_t held_pkts(uint32_t flow) const override {
    return arbiter_.discipline().backlog_pkts(flow);
  }
  Packet* drain() override {
    egress::Descriptor pkt;
    return arbiter_.drain(pkt) ? packet_of(pkt) : nullptr;
  }

 private:
  void enqueue(const egress::Descriptor& pkt) override {
    arbiter_.put_in(&pkt, 1, [this](const egress::Descriptor& refused, egress::Enqueued why) {
      refuse(refused, why);
    });
    waits_for_rates_ = false;
  }

  egress::Arbiter<D> arbiter_;
  bool waits_for_rates_ = false;
};

}  // namespace

Scheduler::Scheduler(const SchedulerSpec& spec)
    : backpressure_(spec.capacity.flows),
      framing_(spec.framing),
      keeps_departures_(spec.discipline == "calendar"),
      flows_(spec.capacity.flows) {
  const egress::Server server{.rate_bps = spec.rate_bps, .framing = spec.framing};
  if (spec.discipline == "tree") {
    const std::vector<egress::Bound> bounds = egress::tree_bounds(spec.tree, spec.nodes, server);
    for (const egress::PlacedNode& node : spec.nodes) {
      if (node.number >= flows_.size()) continue;
      flows_[node.number] = {.is_known = true, .bound = bounds[node.number]};
    }
    return;
  }
  const egress::Crowd crowd = egress::crowd_of(spec.flows, spec.capacity.pkts);
  for (const auto& [number, params] : spec.flows) {
    flows_[number] = {.is_known = true,
                      .bound = egress::bound_of(spec.discipline, params, crowd, server)};
  }
}

void Scheduler::note_promise(const Packet& pkt, uint32_t flow) {
  if (pkt.path_state >= promised_.size()) promised_.resize(pkt.path_state + 1U, kNobody);
  uint32_t& promised = promised_[pkt.path_state];
  if (promised == kNobody || flows_[promised].bound.total_ns() < flows_[flow].bound.total_ns()) {
    promised = flow;
  }
}

bool Scheduler::refuses(uint32_t number) {
  const uint32_t flow = known(number);
  if (!backpressure_.is_full(flow)) return false;
  ++flows_[flow].refused_pkts;
  return true;
}

void Scheduler::put(Packet* pkt, uint64_t at_ns) {
  const uint32_t flow = flow_of(*pkt);
  note_promise(*pkt, flow);
  const auto handle = reinterpret_cast<uint64_t>(pkt);
  enqueue(keeps_departures_ && pkt->has_departure
              ? egress::Descriptor::departing(handle, pkt->len_bytes(), flow, pkt->departure_ticks)
              : egress::Descriptor::of(handle, pkt->len_bytes(), flow, at_ns));
}

void Scheduler::note_left(const egress::Descriptor& pkt) {
  const uint32_t flow = pkt.flow & egress::kFlowMask;
  backpressure_.note_left(flow, held_pkts(flow));
}

void Scheduler::meter(const Packet& pkt) {
  const uint32_t flow = flow_of(pkt);
  note_promise(pkt, flow);
  Metered& metered = flows_[flow].metered;
  metered.pkts += 1;
  metered.bytes += pkt.len_bytes();
  metered.wire_bytes += framing_.wire_bytes(pkt.len_bytes());
}

void Scheduler::refuse(const egress::Descriptor& pkt, egress::Enqueued why) {
  const uint32_t flow = pkt.flow & egress::kFlowMask;
  ++flows_[flow].refused_pkts;
  refused_.push_back({packet_of(pkt), why});
  if (why == egress::Enqueued::kShed) note_left(pkt);
  const bool is_full = why == egress::Enqueued::kFull || why == egress::Enqueued::kPushedOut;
  if (is_full) backpressure_.note_refused(flow, held_pkts(flow));
}

std::unique_ptr<Scheduler> make_scheduler(const SchedulerSpec& spec) {
  if (spec.discipline == "tree") {
    return std::make_unique<SchedulerOf<egress::Tree>>(spec, spec.tree);
  }
  if (spec.discipline == "calendar") {
    return std::make_unique<SchedulerOf<egress::Calendar>>(spec, spec.capacity);
  }
  std::unique_ptr<Scheduler> made;
  egress::with_discipline(spec.discipline, [&]<egress::Discipline D>() {
    made = std::make_unique<SchedulerOf<D>>(spec, spec.capacity);
  });
  if (made == nullptr) {
    throw ConfigError("unknown discipline '" + spec.discipline + "'", "simulation.schedulers");
  }
  return made;
}

}  // namespace batchplane::sim
