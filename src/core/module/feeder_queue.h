// SPDX-License-Identifier: BSD-3-Clause
// feeder_queue.h - joins two tasks: one or more workers put packets in, another task polls them.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/spsc_ring.h"
#include "core/module/args.h"
#include "core/module/feeder_rings.h"
#include "core/module/module.h"
#include "core/packet/packet_pool.h"

namespace batchplane {

namespace reason {
extern const DropReason kQueueFull;
}

[[nodiscard]] std::vector<ParamSpec> queue_params();

// Single writer; on a cache line of its own.
class alignas(64) LostCount {
 public:
  void add(uint64_t n) {
    pkts_.store(pkts_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t get() const { return pkts_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> pkts_{0};
};

// Base of modules that some workers put packets into and one worker polls: a ring per feeding worker,
// credits, losses, legs. Derived classes poll, and declare queue_params().
class FeederQueue : public Module {
 public:
  using Ring = SpscRing<Packet*>;

  explicit FeederQueue(const Args& args)
      : size_pkts_(args.u32("size_pkts")),
        batch_limit_pkts_(args.env().batch_limit_pkts),
        has_backpressure_(args.flag("backpressure")),
        rings_(args.env().n_workers, size_pkts_),
        lost_(args.env().n_workers),
        legs_(args.env().n_workers, exec::Leg::kNone) {
    if (has_backpressure_ && size_pkts_ < args.env().batch_limit_pkts) {
      throw ConfigError(
          "a queue of " + std::to_string(size_pkts_) + " packets never has room for a batch",
          args.where() + ".size_pkts",
          "with backpressure at least " + std::to_string(args.env().batch_limit_pkts));
    }
    const uint32_t credit_pkts = args.u32("credit_pkts");
    check_credit(credit_pkts == 0 ? size_pkts_ : credit_pkts, args.where() + ".credit_pkts");
    use_credit(credit_pkts == 0 ? size_pkts_ : credit_pkts);
  }
  ~FeederQueue() override {
    give_up_held([](Packet* pkt) { PacketPool::free_bulk(&pkt, 1); });
  }

  void set_feeders(const std::vector<uint32_t>& workers) override {
    rings_.set_feeders(workers);
    use_credit(credit_pkts());
  }
  void prepare_feeders(const std::vector<uint32_t>& workers) override {
    rings_.prepare(workers);
    for (const uint32_t w : workers) rings_[w].set_credit(ring_credit());
  }
  void switch_feeders(const std::function<void(Packet*)>& take) noexcept override {
    rings_.switch_over([&](Ring& ring) {
      Packet* pkt = nullptr;
      while (ring.dequeue(&pkt, 1) == 1) take(pkt);
    });
  }
  void set_leg(uint32_t worker, uint32_t leg) override { legs_[worker] = leg; }

  // Enqueues the batch, on the worker that brings it.
  void put(Context& ctx, Batch& batch) noexcept {
    end_leg(ctx, batch);
    for (Packet* pkt : batch) enter_task(*pkt, ctx.now_ns);
    Ring& ring = rings_[ctx.worker_index];
    const uint32_t n = batch.size_pkts;
    const uint32_t taken = ring.enqueue(batch.pkts, n);
    if (taken == n) [[likely]]
      return;
    for (uint32_t i = taken; i < n; ++i) ctx.drop(batch, i, reason::kQueueFull);
    lost_[ctx.worker_index].add(n - taken);
  }

  // Both sides are stopped between two runs, so one thread may use both ends here.
  void adopt(Module& old_module) noexcept override {
    auto& old = static_cast<FeederQueue&>(old_module);
    for (size_t w = 0; w < std::min(lost_.size(), old.lost_.size()); ++w) {
      lost_[w].add(old.lost_[w].get());
    }
    // Packets already there are taken over regardless of the credit.
    for (const uint32_t w : rings_.feeders()) rings_[w].set_credit(size_pkts_);
    for (const uint32_t w : old.rings_.feeders()) {
      if (rings_.take_over(old.rings_, w)) continue;
      move_pkts(old.rings_[w], rings_[rings_.has(w) ? w : rings_.feeders().front()]);
    }
    use_credit(credit_pkts());
  }

  [[nodiscard]] uint64_t held_pkts() const override {
    uint64_t held = 0;
    for (const uint32_t w : rings_.feeders()) held += rings_[w].size();
    return held;
  }
  [[nodiscard]] uint64_t put_pkts(uint32_t worker) const override {
    return rings_[worker].produced();
  }
  [[nodiscard]] uint64_t taken_pkts() const override {
    uint64_t taken = 0;
    for (const uint32_t w : rings_.feeders()) taken += rings_[w].consumed();
    return taken;
  }
  [[nodiscard]] uint32_t max_held_pkts() const override { return rings_.max_pkts(); }
  [[nodiscard]] exec::RingCounts ring_counts() const noexcept override {
    exec::RingCounts all{.ring_pkts = max_held_pkts(), .credit_pkts = credit_pkts()};
    for (const uint32_t w : rings_.feeders()) {
      all.waiting_pkts += rings_[w].size();
      all.fill.add(rings_[w].fill());
    }
    return all;
  }
  void begin_fill_period() noexcept override {
    for (const uint32_t w : rings_.feeders()) rings_[w].begin_fill_period();
  }
  [[nodiscard]] exec::ArrivalCounts arrival_counts() const override {
    exec::ArrivalCounts all;
    for (const LostCount& lost : lost_) all.lost_pkts += lost.get();
    return all;
  }
  [[nodiscard]] bool may_emit() const override { return false; }
  [[nodiscard]] bool wants_backpressure() const override { return has_backpressure_; }
  // A sender that is held back has already polled packets that are yet to arrive: these may exceed the
  // credit. While there is room for a batch, the reader's index, which moves in another core's cache, need not
  // be read again.
  [[nodiscard]] uint32_t room_pkts(uint32_t worker) const noexcept override {
    const uint32_t beyond_pkts = ring_credit() - std::min(ring_credit(), credit_pkts());
    const uint32_t free_pkts = rings_[worker].free_slots(beyond_pkts + batch_limit_pkts_);
    return free_pkts - std::min(free_pkts, beyond_pkts);
  }
  [[nodiscard]] uint32_t space_pkts(uint32_t worker) const noexcept override {
    return rings_[worker].free_slots();
  }
  void give_up_held(const std::function<void(Packet*)>& take) override {
    Packet* pkt = nullptr;
    for (const uint32_t w : rings_.feeders()) {
      while (rings_[w].dequeue(&pkt, 1) == 1) take(pkt);
    }
  }

  [[nodiscard]] Value show() const override {
    List fill;
    for (const uint32_t w : rings_.feeders()) fill.emplace_back(rings_[w].size());
    return Dict{{"size_pkts", size_pkts_},
                {"credit_pkts", credit_pkts()},
                {"held_pkts", held_pkts()},
                {"held_by_feeder", fill}};
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb != "set") return Module::command(verb, args);
    const Dict* const given = args.is_dict() ? &args.as_dict() : nullptr;
    if (given == nullptr || given->size() != 1 || !given->contains("credit_pkts") ||
        !given->at("credit_pkts").is_int()) {
      throw ConfigError("expected {credit_pkts: packets}", "set", "such as {credit_pkts: 64}");
    }
    const int64_t credit_pkts = given->at("credit_pkts").as_int();
    set_credit(static_cast<uint32_t>(std::clamp<int64_t>(credit_pkts, 0, 1LL << 30)));
    return show();
  }
  [[nodiscard]] Dict saved_params() const override { return {{"credit_pkts", credit_pkts()}}; }
  [[nodiscard]] uint32_t ring_pkts() const override { return size_pkts_; }
  [[nodiscard]] uint32_t credit_pkts() const override {
    return credit_pkts_.load(std::memory_order_relaxed);
  }
  void set_credit(uint32_t credit_pkts) override {
    check_credit(credit_pkts, "credit_pkts");
    use_credit(credit_pkts);
  }

 protected:
  // Next packets of one ring, taking rings in turn; 0 when all are empty.
  uint32_t take(Packet** pkts, uint32_t max) noexcept {
    for (size_t k = 0; k < rings_.feeders().size(); ++k) {
      Ring& ring = rings_.next();
      const uint32_t n = ring.dequeue(pkts, max);
      if (n == 0) continue;
      ring.peek(max, [](const Packet* pkt) { prefetch_whole(pkt); });
      return n;
    }
    return 0;
  }

 private:
  void check_credit(uint32_t credit_pkts, const std::string& where) const {
    const uint32_t least_pkts = has_backpressure_ ? batch_limit_pkts_ : 1;
    if (credit_pkts >= least_pkts && credit_pkts <= size_pkts_) return;
    throw ConfigError("a credit of " + std::to_string(credit_pkts) + " packets is out of range",
                      where,
                      std::to_string(least_pkts) + " to size_pkts, " + std::to_string(size_pkts_));
  }
  // Limit beyond which packets are lost, or their senders held back.
  [[nodiscard]] uint32_t ring_credit() const {
    return has_backpressure_ ? size_pkts_ : credit_pkts();
  }
  void use_credit(uint32_t pkts) {
    credit_pkts_.store(pkts, std::memory_order_relaxed);
    for (const uint32_t w : rings_.feeders()) rings_[w].set_credit(ring_credit());
  }
  void end_leg(Context& ctx, Batch& batch) const noexcept {
    const uint32_t leg = legs_[ctx.worker_index];
    if (leg == exec::Leg::kNone) return;
    if (ctx.meter->is_nearly_full(batch.size_pkts)) [[unlikely]]
      ctx.meter->flush(ctx.now_ns);
    for (Packet* pkt : batch) ctx.meter->record_leg(leg, 1, task_entry_ns(*pkt));
  }
  static void move_pkts(Ring& from, Ring& to) noexcept {
    Packet* pkt = nullptr;
    while (to.free_slots() != 0 && from.dequeue(&pkt, 1) == 1) to.enqueue(&pkt, 1);
  }

  const uint32_t size_pkts_;
  const uint32_t batch_limit_pkts_;
  const bool has_backpressure_;
  FeederRings<Ring> rings_;
  std::vector<LostCount> lost_;  // by worker: packets dropped on a full ring
  std::vector<uint32_t> legs_;   // by worker
  std::atomic<uint32_t> credit_pkts_{0};
};

}  // namespace batchplane
