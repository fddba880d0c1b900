// SPDX-License-Identifier: BSD-3-Clause
#include "modules/egress/egress_scheduler.h"

#include "egress/arbiter/arbiter.h"
#include "egress/discipline/disciplines.h"

namespace batchplane {
namespace {

template <egress::Discipline D>
class SchedulerOf final : public EgressScheduler {
 public:
  explicit SchedulerOf(const EgressSettings& settings)
      : arbiter_(D(settings.capacity), egress::Link(settings.rate_bps, settings.overhead_bytes)),
        backpressure_(settings.capacity.flows) {}

  egress::Configured configure(uint32_t flow, const egress::FlowParams& params) override {
    return arbiter_.discipline().configure(flow, params);
  }
  void remove(uint32_t flow) override {
    arbiter_.discipline().remove(flow, [](const egress::Descriptor&) {});
  }
  void set_rate_bps(uint64_t rate_bps) override { arbiter_.link().set_rate_bps(rate_bps); }

  void take(egress::BatchMailbox& mailbox, EgressRefusals& refusals) noexcept override {
    arbiter_.take_from(mailbox, EgressRefusals::kMax - refusals.n, note_in(refusals));
  }
  void put(const egress::Descriptor* pkts, uint32_t n, EgressRefusals& refusals) noexcept override {
    arbiter_.put_in(pkts, n, note_in(refusals));
  }
  uint32_t release(uint64_t now_ns, Packet** pkts, uint32_t max,
                   EgressFlowCount* counts) noexcept override {
    uint32_t n = 0;
    backpressure_.begin_round();
    return arbiter_.release(now_ns, max, [&](const egress::Descriptor& pkt) {
      pkts[n] = packet_of(pkt);
      pkts[n++]->prefetch_meta();
      EgressFlowCount& count = counts[pkt.flow];
      bump(count.pkts, 1);
      bump(count.bytes, pkt.len_bytes());
      const uint32_t left_pkts = backlog_pkts(pkt.flow);
      count.backlog_pkts.store(left_pkts, std::memory_order_relaxed);
      backpressure_.note_released(pkt.flow, left_pkts);
    });
  }
  [[nodiscard]] const egress::Backpressure& backpressure() const noexcept override {
    return backpressure_;
  }
  bool drain(egress::Descriptor& pkt) noexcept override {
    return arbiter_.discipline().dequeue(pkt);
  }

  [[nodiscard]] uint32_t backlog_pkts() const noexcept override {
    return arbiter_.discipline().backlog_pkts();
  }
  [[nodiscard]] uint32_t backlog_pkts(uint32_t flow) const noexcept override {
    return arbiter_.discipline().backlog_pkts(flow);
  }

 private:
  auto note_in(EgressRefusals& refusals) {
    return [this, &refusals](const egress::Descriptor& pkt, egress::Enqueued why) {
      refusals.all[refusals.n++] = {packet_of(pkt), pkt.flow, why};
      if (why == egress::Enqueued::kFull) {
        backpressure_.note_refused(pkt.flow, backlog_pkts(pkt.flow));
      }
    };
  }

  egress::Arbiter<D> arbiter_;
  egress::Backpressure backpressure_;
};

}  // namespace

std::unique_ptr<EgressScheduler> make_egress_scheduler(const EgressSettings& settings) {
  std::unique_ptr<EgressScheduler> made;
  egress::with_discipline(settings.discipline, [&]<egress::Discipline D>() {
    made = std::make_unique<SchedulerOf<D>>(settings);
  });
  return made;
}

}  // namespace batchplane
