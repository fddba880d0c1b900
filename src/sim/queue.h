// SPDX-License-Identifier: BSD-3-Clause
// queue.h - a bounded ring between two tasks; each packet carries the time at which it was put in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "exec/demand.h"
#include "sim/loop_order.h"
#include "sim/packet.h"
#include "sim/scheduler.h"
#include "sim/slots.h"
#include "sim/stage.h"

namespace batchplane::sim {

// The ring of one producing worker. A consumer whose clock is behind the producer's sees only
// packets that were there at its own time, unless clocks are joined.
class QueueRing {
 public:
  QueueRing(uint32_t size_pkts, uint32_t credit_pkts, bool holds_back)
      : size_pkts_(size_pkts), credit_pkts_(credit_pkts), holds_back_(holds_back) {}

  // For plans, where workers' clocks are independent: packets do not wait in the ring, there is
  // room for all, and their age is the same on both sides.
  void join_clocks() {
    joins_clocks_ = true;
    size_pkts_ = ~0U;
    credit_pkts_ = ~0U;
  }

  [[nodiscard]] uint32_t room_pkts() const { return left_of(credit_pkts_); }
  // A producer that is held back has already polled packets that are still to come: they may fill
  // the ring beyond the credit.
  [[nodiscard]] uint32_t space_pkts() const {
    return left_of(holds_back_ ? size_pkts_ : credit_pkts_);
  }
  void set_credit(uint32_t credit_pkts) {
    if (!joins_clocks_) credit_pkts_ = credit_pkts;
  }
  // False if full.
  bool put(Packet* pkt, uint64_t now_ns) {
    if (space_pkts() == 0) {
      ++lost_pkts_;
      return false;
    }
    slots_.push_back({pkt, now_ns});
    return true;
  }
  uint32_t take(Packet** pkts, uint32_t most, uint64_t now_ns) {
    // Like the engine's queue: read a burst, and peek at the next one.
    const uint32_t polls = seen_pkts_ < most ? 1 : fill_.due();
    if (polls != 0) {
      look(now_ns);
      fill_.look(seen_pkts_, polls);
    }
    uint32_t n = 0;
    while (n < most && n < seen_pkts_) {
      if (joins_clocks_) move_clock(slots_.front(), now_ns);
      pkts[n++] = slots_.front().pkt;
      slots_.pop_front();
    }
    seen_pkts_ -= n;
    if (n != 0 && seen_pkts_ < most) look(now_ns);
    return n;
  }
  // When the next packet becomes visible; kNeverNs while empty.
  [[nodiscard]] uint64_t next_ns() const {
    return slots_.empty() ? ~0ULL : slots_.front().since_ns;
  }
  [[nodiscard]] uint64_t held_pkts() const { return slots_.size(); }
  void add_to(exec::InputCounts& all) const {
    all.ring.waiting_pkts += slots_.size();
    all.ring.ring_pkts += size_pkts_;
    all.ring.fill.add(fill_);
    all.arrivals.lost_pkts += lost_pkts_;
  }
  void begin_fill_period() { fill_.begin_period(); }
  template <class Take>
  void take_everything(Take take_pkt) {
    for (size_t i = 0; i < slots_.size(); ++i) take_pkt(slots_[i].pkt);
    slots_.clear();
    seen_pkts_ = 0;
  }
  [[nodiscard]] uint64_t lost_pkts() const { return lost_pkts_; }
  void add_lost(uint64_t pkts) { lost_pkts_ += pkts; }

 private:
  [[nodiscard]] uint32_t left_of(uint32_t pkts) const {
    return pkts - std::min(pkts, static_cast<uint32_t>(slots_.size()));
  }
  void look(uint64_t now_ns) {
    const auto is_seen = [&](const Slot& slot) { return joins_clocks_ || slot.since_ns <= now_ns; };
    while (seen_pkts_ < slots_.size() && is_seen(slots_[seen_pkts_])) ++seen_pkts_;
  }
  static void move_clock(const Slot& slot, uint64_t now_ns) {
    const auto moved_ns = [&](uint64_t then_ns) {
      return now_ns - std::min(now_ns, slot.since_ns - std::min(slot.since_ns, then_ns));
    };
    slot.pkt->entry_ns = moved_ns(slot.pkt->entry_ns);
    slot.pkt->task_entry_ns = moved_ns(slot.pkt->task_entry_ns);
  }

  uint32_t size_pkts_;
  uint32_t credit_pkts_;  // of them
  bool holds_back_;
  bool joins_clocks_ = false;
  Slots slots_;
  uint32_t seen_pkts_ = 0;  // by its consumer, at its last look
  uint64_t lost_pkts_ = 0;
  RingFill fill_;
};

// One ring per producing worker, polled in turn so that none starves another. If the queue has a
// scheduler, the rings are its mailboxes: every packet enters it and comes out in its order. If the
// queue has a stage, the stage takes from the rings and is polled instead.
class Queue {
 public:
  Queue(uint32_t size_pkts, uint32_t credit_pkts, bool holds_back)
      : size_pkts_(size_pkts), credit_pkts_(credit_pkts), holds_back_(holds_back) {}
  explicit Queue(const SchedulerSpec& spec)
      : size_pkts_(spec.mailbox_pkts),
        credit_pkts_(spec.mailbox_pkts),
        holds_back_(false),
        scheduler_(make_scheduler(spec)) {}

  // From now on, workers that the queue gives something to do are added to `woken`: its reader by
  // the first packet, the writer of a ring by room in it.
  void wake(Woken& woken, uint32_t reader) {
    woken_ = &woken;
    reader_ = reader;
    writers_.resize(rings_.size(), reader);
    look_for_far_writers();
  }
  void set_writer(uint32_t ring, uint32_t worker) {
    writers_.resize(rings_.size(), worker);
    writers_[ring] = worker;
    look_for_far_writers();
  }

  // Whether another worker takes what is put into the ring.
  [[nodiscard]] bool is_far(size_t ring) const {
    return ring < writers_.size() && writers_[ring] != reader_;
  }
  // Whether another worker puts something in.
  [[nodiscard]] bool is_fed_from_afar() const { return is_fed_from_afar_; }

  // Null if there is none in use.
  [[nodiscard]] Scheduler* scheduler() { return scheduler_.get(); }
  [[nodiscard]] const Scheduler* scheduler() const { return scheduler_.get(); }

  // Null if there is none.
  [[nodiscard]] Stage* stage() { return stage_.get(); }
  [[nodiscard]] const Stage* stage() const { return stage_.get(); }
  void set_stage(std::unique_ptr<Stage> stage) { stage_ = std::move(stage); }

  // Returns the number of the new ring.
  uint32_t add_ring() {
    rings_.emplace_back(size_pkts_, credit_pkts_, holds_back_);
    return static_cast<uint32_t>(rings_.size() - 1);
  }
  [[nodiscard]] uint32_t size_pkts() const { return size_pkts_; }
  [[nodiscard]] bool holds_back() const { return holds_back_; }
  [[nodiscard]] uint32_t credit_pkts() const { return credit_pkts_; }
  void set_credit(uint32_t credit_pkts) {
    credit_pkts_ = credit_pkts;
    for (QueueRing& ring : rings_) ring.set_credit(credit_pkts);
  }
  void join_clocks() {
    for (QueueRing& ring : rings_) ring.join_clocks();
  }
  // For plans: packets pass the scheduler without waiting, and are metered.
  void free_link() { meter_ = std::move(scheduler_); }
  // The scheduler of a plan; null if there is none.
  [[nodiscard]] Scheduler* meter() const { return meter_.get(); }
  [[nodiscard]] uint32_t room_pkts(uint32_t ring) const { return rings_[ring].room_pkts(); }
  [[nodiscard]] uint32_t space_pkts(uint32_t ring) const { return rings_[ring].space_pkts(); }
  bool put(uint32_t ring, Packet* pkt, uint64_t now_ns) {
    if (woken_ != nullptr && rings_[ring].held_pkts() == 0) woken_->add(reader_, now_ns);
    return rings_[ring].put(pkt, now_ns);
  }
  uint32_t take(Packet** pkts, uint32_t most, uint64_t now_ns) {
    if (scheduler_ != nullptr) {
      take_in(now_ns);
      return scheduler_->release(pkts, most, now_ns);
    }
    for (size_t k = 0; k < rings_.size(); ++k) {
      const size_t at = next_;
      if (++next_ == rings_.size()) next_ = 0;
      const bool is_tight = rings_[at].room_pkts() < exec::kMaxBatchPkts;
      if (const uint32_t n = rings_[at].take(pkts, most, now_ns); n != 0) {
        for (uint32_t i = 0; meter_ != nullptr && i < n; ++i) meter_->meter(*pkts[i]);
        if (is_tight && holds_back_ && woken_ != nullptr)
          woken_->add(writers_[at], Woken::kUnknown);
        return n;
      }
    }
    return 0;
  }
  // If there is a scheduler: takes what is visible in the mailboxes by now.
  void take_in(uint64_t now_ns) {
    scheduler_->begin_round(now_ns);
    constexpr uint32_t kAtOnce = 32;
    Packet* pkts[kAtOnce];
    for (QueueRing& ring : rings_) {
      while (const uint32_t n = ring.take(pkts, kAtOnce, now_ns)) {
        for (uint32_t i = 0; i < n; ++i) scheduler_->put(pkts[i], pkts[i]->task_entry_ns);
      }
    }
  }
  // When the next packet becomes visible; kNeverNs while empty.
  [[nodiscard]] uint64_t next_ns() const {
    uint64_t next_ns = scheduler_ == nullptr ? ~0ULL : scheduler_->next_ns();
    for (const QueueRing& ring : rings_) next_ns = std::min(next_ns, ring.next_ns());
    return stage_ == nullptr ? next_ns : stage_->next_ns(next_ns);
  }
  // That all its rings hold.
  [[nodiscard]] uint64_t most_pkts() const { return rings_.size() * size_pkts_; }
  [[nodiscard]] uint64_t held_pkts() const {
    uint64_t held = scheduler_ == nullptr ? 0 : scheduler_->held_pkts();
    if (stage_ != nullptr) held += stage_->inside_pkts();
    for (const QueueRing& ring : rings_) held += ring.held_pkts();
    return held;
  }
  [[nodiscard]] exec::InputCounts counts(uint64_t taken_pkts) const {
    exec::InputCounts all{.taken_pkts = taken_pkts};
    if (scheduler_ == nullptr) all.ring.credit_pkts = credit_pkts_;
    for (const QueueRing& ring : rings_) ring.add_to(all);
    if (scheduler_ != nullptr) all.ring.waiting_pkts += scheduler_->held_pkts();
    if (stage_ != nullptr) {
      all.ring.waiting_pkts += stage_->inside_pkts();
      all.ring.ring_pkts += stage_->max_inside_pkts();
      all.stage = stage_->period();
    }
    return all;
  }
  void begin_fill_period() {
    for (QueueRing& ring : rings_) ring.begin_fill_period();
  }

  // When another graph replaces the queue's: its contents move on to another object as they are, or
  // the waiting packets are handed out.
  void take_over(Queue& old) {
    rings_ = std::move(old.rings_);
    next_ = old.next_;
    credit_pkts_ = old.credit_pkts_;
    scheduler_ = std::move(old.scheduler_);
    stage_ = std::move(old.stage_);
  }
  // The same if the producers have changed.
  void take_over_stage(Queue& old) {
    stage_ = std::move(old.stage_);
    old.take_everything([this](Packet* pkt) { stage_->carry(pkt); });
    set_credit(old.credit_pkts_);
    add_lost(old.lost_pkts());
  }
  template <class Take>
  void take_everything(Take take_pkt) {
    while (Packet* pkt = scheduler_ == nullptr ? nullptr : scheduler_->drain()) take_pkt(pkt);
    for (QueueRing& ring : rings_) ring.take_everything(take_pkt);
  }
  [[nodiscard]] uint64_t lost_pkts() const {
    uint64_t lost = 0;
    for (const QueueRing& ring : rings_) lost += ring.lost_pkts();
    return lost;
  }
  void add_lost(uint64_t pkts) { rings_.front().add_lost(pkts); }

 private:
  void look_for_far_writers() {
    is_fed_from_afar_ =
        std::ranges::any_of(writers_, [&](uint32_t writer) { return writer != reader_; });
  }

  const uint32_t size_pkts_;
  uint32_t credit_pkts_;
  const bool holds_back_;  // its producers
  std::vector<QueueRing> rings_;
  std::vector<uint32_t> writers_;  // worker of each ring
  uint32_t reader_ = 0;            // worker
  bool is_fed_from_afar_ = false;
  Woken* woken_ = nullptr;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Scheduler> meter_;  // of a plan, instead
  std::unique_ptr<Stage> stage_;
  size_t next_ = 0;
};

}  // namespace batchplane::sim
