// SPDX-License-Identifier: BSD-3-Clause
#include "modules/egress/egress_scheduler.h"

#include "egress/arbiter/arbiter.h"
#include "egress/discipline/disciplines.h"
#include "egress/tree/calendar.h"
#include "egress/tree/tree.h"
#include "modules/egress/connection.h"

namespace batchplane {
namespace {

bool carry_out(const EgressEdit& edit, egress::Discipline auto& discipline) noexcept {
  if (edit.kind != EgressEdit::Kind::kRemove) {
    discipline.configure(edit.number, edit.flow);
    return true;
  }
  if (discipline.backlog_pkts(edit.number) != 0) return false;
  discipline.remove(edit.number, [](const egress::Descriptor&) {});
  return true;
}

bool carry_out(const EgressEdit& edit, egress::Tree& tree) noexcept {
  if (edit.kind != EgressEdit::Kind::kRemove) {
    if (!tree.has(edit.number)) {
      tree.add(edit.number, edit.parent, edit.node);
    } else {
      tree.change(edit.number, edit.node);
      tree.move(edit.number, edit.parent);
    }
    return true;
  }
  if (tree.is_leaf(edit.number) && tree.backlog_pkts(edit.number) != 0) return false;
  return tree.remove(edit.number, [](const egress::Descriptor&) {}) != egress::Edited::kHasChildren;
}

template <egress::PacketOrder D>
class SchedulerOf final : public EgressScheduler {
 public:
  template <class Capacity>
  SchedulerOf(const EgressSettings& settings, const Capacity& capacity)
      : arbiter_(D(capacity), egress::Link(settings.rate_bps, settings.framing)),
        backpressure_(settings.capacity.flows) {}

  bool edit(const EgressEdit& edit) noexcept override {
    if (edit.kind == EgressEdit::Kind::kRate) {
      arbiter_.link().set_rate_bps(edit.rate_bps);
      return true;
    }
    return carry_out(edit, arbiter_.discipline());
  }

  void begin_round(uint64_t now_ns) noexcept override { arbiter_.begin_round(now_ns); }
  void take(egress::BatchMailbox& mailbox, EgressRefusals& refusals) noexcept override {
    arbiter_.take_from(mailbox, EgressRefusals::kMax - refusals.n, note_in(refusals));
  }
  void put(const egress::Descriptor* pkts, uint32_t n, EgressRefusals& refusals) noexcept override {
    arbiter_.put_in(pkts, n, note_in(refusals));
  }
  uint32_t release(uint64_t now_ns, Packet** pkts, uint32_t max,
                   EgressFlowCount* counts) noexcept override {
    egress::Descriptor released[exec::kMaxBatchPkts];
    uint32_t n = 0;
    backpressure_.begin_round();
    max = std::min(max, exec::kMaxBatchPkts);
    arbiter_.release(now_ns, max, [&](const egress::Descriptor& pkt) {
      pkts[n] = packet_of(pkt);
      pkts[n]->prefetch_meta();
      const uint32_t flow = pkt.flow & egress::kFlowMask;
      __builtin_prefetch(&counts[flow], 1);
      backpressure_.note_left(flow, backlog_pkts(flow));
      released[n++] = pkt;
    });
    for (uint32_t i = 0; i < n; ++i) {
      const egress::Descriptor& pkt = released[i];
      EgressFlowCount& count = counts[pkt.flow & egress::kFlowMask];
      if ((pkt.flow & egress::kMarkBit) != 0) [[unlikely]] {
        mark_congestion(*packet_of(pkt));
        bump(count.marked_pkts, 1);
      }
      bump(count.pkts, 1);
      bump(count.bytes, pkt.len_bytes());
      const uint64_t entry_ns = pkt.entry_ns(now_ns);
      count.waits.note(entry_ns < now_ns ? now_ns - entry_ns : 0);
    }
    return n;
  }
  void take_shed(EgressRefusals& refusals) noexcept override {
    arbiter_.take_shed([&](const egress::Descriptor& pkt, egress::Enqueued why) {
      const uint32_t flow = pkt.flow & egress::kFlowMask;
      refusals.all[refusals.n++] = {packet_of(pkt), flow, why};
      backpressure_.note_left(flow, backlog_pkts(flow));
    });
  }
  [[nodiscard]] const egress::Backpressure& backpressure() const noexcept override {
    return backpressure_;
  }
  bool drain(egress::Descriptor& pkt) noexcept override { return arbiter_.drain(pkt); }

  [[nodiscard]] uint32_t backlog_pkts() const noexcept override {
    return arbiter_.discipline().backlog_pkts();
  }
  [[nodiscard]] uint32_t backlog_pkts(uint32_t flow) const noexcept override {
    return arbiter_.discipline().backlog_pkts(flow);
  }
  [[nodiscard]] uint32_t backlog_bytes(uint32_t flow) const noexcept override {
    if constexpr (kTellsBytes) return arbiter_.discipline().backlog_bytes(flow);
    return 0;
  }
  [[nodiscard]] bool tells_bytes() const noexcept override { return kTellsBytes; }

 private:
  static constexpr bool kTellsBytes = requires(const D d, uint32_t flow) { d.backlog_bytes(flow); };

  auto note_in(EgressRefusals& refusals) {
    return [this, &refusals](const egress::Descriptor& pkt, egress::Enqueued why) {
      const uint32_t flow = pkt.flow & egress::kFlowMask;
      refusals.all[refusals.n++] = {packet_of(pkt), flow, why};
      const bool is_full = why == egress::Enqueued::kFull || why == egress::Enqueued::kPushedOut;
      if (is_full) backpressure_.note_refused(flow, backlog_pkts(flow));
    };
  }

  egress::Arbiter<D> arbiter_;
  egress::Backpressure backpressure_;
};

}  // namespace

egress::TreeCapacity tree_capacity(const EgressSettings& settings) {
  return {.leaves = settings.capacity.flows,
          .inner_nodes = settings.inner_nodes,
          .shaped_leaves = settings.shaped_flows,
          .pkts = settings.capacity.pkts,
          .connections = settings.connections,
          .codel = settings.codel,
          .pie_target_ns = settings.pie_target_ns,
          .lmax_bytes = settings.lmax_bytes,
          .framing = settings.framing,
          .catch_up_ns = settings.catch_up_ns};
}

std::unique_ptr<EgressScheduler> make_egress_scheduler(const EgressSettings& settings) {
  std::unique_ptr<EgressScheduler> made;
  if (settings.discipline == kTreeDiscipline) {
    return std::make_unique<SchedulerOf<egress::Tree>>(settings, tree_capacity(settings));
  }
  if (settings.discipline == kCalendarDiscipline) {
    return std::make_unique<SchedulerOf<egress::Calendar>>(settings, settings.capacity);
  }
  egress::with_discipline(settings.discipline, [&]<egress::Discipline D>() {
    made = std::make_unique<SchedulerOf<D>>(settings, settings.capacity);
  });
  return made;
}

}  // namespace batchplane
