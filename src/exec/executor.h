// SPDX-License-Identifier: BSD-3-Clause
// executor.h - carries batches through one task's graph until only held packets remain.
//
// Shared by the data plane and the simulator: packets are opaque handles, the clock is passed in, and the run
// order is a policy. Traits supply:
//   Handle                         nullable packet handle
//   Context                        derives from exec::Context<Handle>
//   Clock::now_ns()
//   task_entry_ns(h), path_state(h), set_path_state(h, s), prefetch_meta(h), prefetch_data(h)
//   begin_chain(ctx)               instrumented runs only: before the functions of a chain
//   before_run(ctx, node, batch), on_run(ctx, node, batch)
//                                  instrumented runs only: around a module's function
//   charge_firing(ctx, n)          a buffer releases n packets: charges the cost in virtual time
//   on_fire(ctx, cause)            instrumented runs only: before the chain that a release runs
//   on_hold(ctx, node, pkts, n)    instrumented runs only: packets stay in a buffer
//   free(ctx, h)                   frees a dropped packet
//   overflow_reason(), queue_full_reason(), early_drop_reason()
//                                  reasons for the executor's own drops
//   Order                          the RunOrder of its executors
// Owner: one worker. Nothing here throws, allocates, locks or logs after construction.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "exec/chains.h"
#include "exec/context.h"
#include "exec/deadline_order.h"
#include "exec/flow_meter.h"
#include "exec/node.h"
#include "exec/run_order.h"
#include "exec/scatter.h"
#include "exec/unit_queues.h"

namespace batchplane::exec {

// Counted by the executor itself; cumulative, one writer.
struct ExecutorStats {
  uint64_t runs = 0;
  uint64_t in_pkts = 0;
  uint64_t dropped_pkts = 0;
  uint64_t emitted_pkts = 0;
  uint64_t clock_reads = 0;
  uint64_t overflow_pkts = 0;          // dropped because a module emitted more than it declared
  uint64_t work_ns = 0;                // work done, by the cost law
  uint32_t worst_firings_per_run = 0;  // since the last epoch
};

// A release that starts more than this after its deadline counts as late (docs/age-limits.md).
inline constexpr uint64_t kLateReleaseNs = 20'000;

template <class Traits, RunOrder Order = typename Traits::Order>
class Executor {
 public:
  using Handle = typename Traits::Handle;
  using Context = typename Traits::Context;
  using Clock = typename Traits::Clock;
  using Node = exec::Node<Traits>;
  using Step = typename Node::Step;
  using Queue = exec::Queue<Handle>;
  using Batch = exec::Batch<Handle>;

  // Work after which a run reads the clock again.
  static constexpr uint64_t kClockDue16thsNs = 500 * 16;

  // `nodes` in rank order, linked and with queues attached; they outlive the executor.
  Executor(std::span<Node> nodes, Context& ctx, Clock& clock, FlowMeter& meter);

  // Reads the clock, and books the delays of packets that have left since the last reading.
  uint64_t read_clock() {
    const uint64_t now_ns = clock_.now_ns();
    ctx_.now_ns = now_ns;
    meter_.flush(now_ns);
    stats_.work_ns += work_16ths_ns_ / 16;
    work_16ths_ns_ = 0;
    ++stats_.clock_reads;
    return now_ns;
  }

  // Call after each batch that may have left: its cost would otherwise count as delay of the batches before
  // it.
  void read_clock_if_due() {
    if (work_16ths_ns_ >= kClockDue16thsNs) [[unlikely]]
      read_clock();
  }

  // Runs (executor_chains.inl, executor_fates.inl). The batch enters at `first` and is carried on until only
  // held packets remain. Instrumented runs report each step to Traits.
  void run(Node& first, Batch batch, bool is_instrumented);
  // Runs all ready nodes (after changes, or emissions outside a run).
  void drain() { is_instrumented() ? drain_ready<true>() : drain_ready<false>(); }
  // Carries on what a module queued in the context outside a run (timers).
  void settle_module(Node& node) {
    if (ctx_.n_fates != 0) settle_fates(node);
    drain();
  }
  // While on, every run and every release is instrumented.
  void set_tracing(bool is_on) { is_tracing_ = is_on; }
  // The same for one loop, so that releases by age, idleness or change are sampled like runs.
  void set_sampling(bool is_on) { is_sampling_ = is_on; }

  // Buffers (executor_buffers.inl). q in 0..B. `release_at` staggers the first release: 1..q more packets are
  // to come until then. Held packets that leave no room for them leave at the next loop (settle_changes).
  void set_trigger(Node& node, uint32_t trigger_pkts, uint32_t release_at_pkts);
  // Fires what nodes of at least this rank hold that such changes left without room.
  void settle_changes(uint32_t from_rank = 0);
  // Whether the next loop has changes to settle.
  [[nodiscard]] bool has_changes() const { return any_changed_; }
  // Moves the packets that the same module held in an older graph in here, oldest first, as far as there is
  // room.
  void adopt_held(Node& node, Queue& old_queue);
  // The most packets that adopt_held() leaves at a node.
  [[nodiscard]] uint32_t room_for_held_pkts(const Node& node) const {
    const uint32_t unit = unit_of(node);
    return unit != 0 ? units_->units[unit].queue_pkts : ctx_.batch_limit_pkts - 1;
  }
  // Whether any buffer has a trigger or still holds packets: only then do entry bounds matter.
  [[nodiscard]] bool has_buffers() const { return !buffered_.empty(); }
  [[nodiscard]] uint64_t held_pkts() const;
  // Packets in buffers that may fire by themselves, at marked nodes of at least this rank.
  [[nodiscard]] uint64_t buffered_pkts(const std::vector<uint8_t>& marked_by_rank,
                                       uint32_t from_rank = 0) const {
    uint64_t held = 0;
    for (const Node* node : buffered_) {
      const bool is_meant = node->rank >= from_rank && marked_by_rank[node->rank] != 0;
      held += is_meant ? node->queue->size_pkts : 0;
    }
    return held;
  }

  // Ages (executor_age.inl). Fires every buffer whose age limit has passed, earliest deadline first. Costs
  // one comparison when none has.
  void check_ages() {
    if (ctx_.now_ns >= next_release_ns_) [[unlikely]]
      units_ == nullptr ? fire_expired() : wake_units();
  }
  void set_age_limit(Node& node, uint64_t age_limit_ns);
  [[nodiscard]] uint64_t next_release_ns() const { return next_release_ns_; }
  // For an idle input: fires the buffer that holds the oldest packet, among nodes of at least this rank.
  // False when none of them holds packets.
  bool release_oldest(uint32_t from_rank = 0);

  // Units (executor_units.inl): under explicit scheduling, packets that arrive at a unit wait there for its
  // turn. Call before the first run, with the plan by which the queues were laid out.
  void schedule(const UnitPlan& plan);
  [[nodiscard]] bool is_scheduled() const { return units_ != nullptr; }
  // Other tasks run on the worker between two turns, so each turn ends with a clock reading.
  void set_shares_worker(bool shares) {
    if (units_ != nullptr) units_->shares_worker = shares;
  }
  [[nodiscard]] bool has_ready_units() const {
    return units_ != nullptr && units_->schedule.has_runnable();
  }
  void settle_charge(uint64_t now_ns);
  uint32_t next_unit(bool with_input);
  // Bookkeeping for a loop that found the input empty and no unit ready.
  void note_idle_turn(uint64_t now_ns);
  void begin_turn(uint32_t unit);
  void end_turn(uint32_t unit, uint64_t began_ns);
  // The turn found nothing: packets that releases and timers bring next are not charged to the input.
  void leave_turn() { units_->is_polling = false; }
  // Runs one batch of the unit's queue and carries it on to the next units; returns its size.
  uint32_t run_unit(uint32_t unit);
  // 0: the node is not a unit.
  [[nodiscard]] uint32_t unit_of(const Node& node) const {
    return units_ == nullptr ? 0 : units_->unit_of_rank[node.rank];
  }
  // Whether the queues of all units from this rank on take one more batch. If not, fires the last of them that
  // holds packets.
  bool has_unit_room(uint32_t from_rank);
  void set_weight(uint32_t unit, uint32_t weight) { units_->schedule.set_weight(unit, weight); }
  // Makes the unit ready at this interval, however few packets its queue holds; 0 = no such rule.
  void set_pace(const Node& node, uint64_t pace_ns);
  [[nodiscard]] const UnitQueues<Handle>* units() const { return units_.get(); }

  // Run order by deadline (executor_deadline.inl), where Order supports it. Call before the first run, with
  // queues that have room for the backlog.
  void run_by_deadline(const DeadlineRules& rules) {
    ready_.choose_deadlines(rules, static_cast<uint32_t>(nodes_.size()));
  }
  void set_budget(const Node& node, uint64_t budget_ns) { ready_.set_budget(node.rank, budget_ns); }
  // Whether any node is left ready for a later loop.
  [[nodiscard]] bool has_ready() const { return MayRunByDeadline<Order> && !ready_.empty(); }
  // Whether there is room for another input batch beside the packets that wait for their turn.
  [[nodiscard]] bool may_poll() const;
  // Call when nothing was polled: runs waiting nodes. False when there are none.
  bool resume();

  // Counts. See Chains.
  [[nodiscard]] static NodeTotals totals(const Node& node) { return Chains<Traits>::totals(node); }
  void set_totals(Node& node, NodeTotals wanted) { Chains<Traits>::set_totals(node, wanted); }
  [[nodiscard]] ExecutorStats& stats() { return stats_; }
  [[nodiscard]] std::span<Node> nodes() { return nodes_; }

  // Work by the cost law (executor_work.inl). Updates the estimate of when the clock is due with the costs
  // that sampled runs measured.
  void refresh_work_estimates(double ns_per_cycle);
  // The same for one node with known costs. Last node first, since a chain's head holds the sum.
  void set_work_estimate(Node& node, const CostLaw::Line& cost);
  // Work up to now, including the part since the last clock reading.
  [[nodiscard]] uint64_t work_so_far_ns() const { return stats_.work_ns + work_16ths_ns_ / 16; }

 private:
  // executor_chains.inl
  template <bool kInstrumented>
  void enter(Node& first, Batch& batch);
  template <bool kInstrumented>
  void drain_ready();
  template <bool kInstrumented>
  void run_chain(Queue& first, Handle* pkts, uint32_t n_pkts, uint64_t entry_bound_ns);
  template <bool kInstrumented>
  Queue* scatter(Node& node, Handle* pkts, uint32_t n, uint64_t entry_bound_ns);
  template <bool kInstrumented>
  void deliver(Queue& queue, uint64_t entry_bound_ns);
  template <bool kInstrumented>
  void append(Queue& queue, const Batch& batch);
  [[nodiscard]] bool is_instrumented() const { return is_tracing_ || is_sampling_; }
  void mark_ready(const Queue& queue) {
    if constexpr (MayRunByDeadline<Order>) {
      if (ready_.is_by_deadline()) return mark_by_deadline(queue);
    }
    ready_.mark(queue.rank);
  }

  // executor_fates.inl
  uint32_t settle_step(Node& node, Handle* pkts, uint32_t n_pkts);
  void settle_fates(Node& node);
  void push_one(Node& from, Queue& queue, Handle pkt);
  void cross(Node& node, uint32_t gate, Handle pkt);
  void apply_path_ops(Node& node, Handle* pkts, uint32_t n_pkts);

  // executor_buffers.inl
  template <bool kInstrumented>
  void arrived(Queue& queue, uint64_t entry_bound_ns);
  template <bool kInstrumented>
  void run_ready(Node& node);
  template <bool kInstrumented>
  void fire(Node& node, uint32_t n_pkts, uint32_t offset_pkts, Cause cause);
  void fire_any(Node& node, uint32_t n_pkts, uint32_t offset_pkts, Cause cause) {
    is_instrumented() ? fire<true>(node, n_pkts, offset_pkts, cause)
                      : fire<false>(node, n_pkts, offset_pkts, cause);
  }
  void fire_whole(Node& node, Cause cause);
  static void rejoin(Queue& queue);
  static void take_turn(Queue& queue) {
    if (queue.turn_pkts != 0) queue.release_at_pkts = queue.turn_pkts;
  }
  void keep_rest(Queue& queue, uint32_t fired_pkts);
  void prefetch_held(const Queue& queue, uint32_t n_pkts) const;
  void list_buffer(Node& node);
  void unlist_buffer(Node& node);

  // executor_age.inl
  static uint64_t filled(const Queue& queue) {
    return queue.causes[static_cast<uint32_t>(Cause::kFull)].firings +
           queue.causes[static_cast<uint32_t>(Cause::kChange)].firings;
  }
  size_t find_due();
  void fire_expired();
  uint64_t oldest_entry_ns(const Queue& queue) const;
  static void note_release(Queue& queue, uint64_t late_ns) {
    if (late_ns > kLateReleaseNs) ++queue.late_releases;
  }

  // executor_deadline.inl
  static uint64_t work_ns_of(const Queue& queue, uint32_t n_pkts);
  [[nodiscard]] uint32_t next_batch_pkts(const Queue& queue) const;
  // True for a heavy branch, which takes its turn instead of running at once.
  [[nodiscard]] bool waits_for_turn(const Queue& queue, uint32_t n_pkts) const {
    if constexpr (MayRunByDeadline<Order>) {
      return ready_.is_by_deadline() && work_ns_of(queue, n_pkts) >= ready_.rules().heavy_ns;
    }
    return false;
  }
  void mark_by_deadline(const Queue& queue);
  template <bool kInstrumented>
  void drain_by_deadline();
  template <bool kInstrumented>
  void run_next(Node& node);
  void mark_expired();

  // executor_units.inl
  template <bool kInstrumented>
  void drain_followers();
  uint32_t fire_unit(uint32_t unit, Cause cause);
  void refresh_unit(uint32_t unit);
  void unit_arrived(uint32_t unit);
  void drop_tail(Queue& queue, uint32_t kept_pkts, uint16_t reason);
  void wake_units();
  bool release_unit(uint32_t from_rank);
  void set_unit_trigger(uint32_t unit, uint32_t trigger_pkts);

  std::span<Node> nodes_;
  Chains<Traits> chains_;
  Context& ctx_;
  Clock& clock_;
  FlowMeter& meter_;
  Order ready_;
  std::vector<Node*> buffered_;  // trigger > 0, or still holding; capacity reserved
  struct Due {
    uint64_t at_ns;
    uint64_t filled;  // how often it had filled up then
    Node* node;
  };
  std::vector<Due> due_;  // of buffered_, while they are released; capacity reserved
  uint64_t work_16ths_ns_ = 0;
  bool any_changed_ = false;
  bool is_tracing_ = false;
  bool is_sampling_ = false;
  bool may_run_heavy_ = false;           // by deadline: in this loop, after its poll
  uint64_t next_release_ns_ = kNeverNs;  // lower bound over all buffers
  uint32_t firings_ = 0;
  ExecutorStats stats_;
  std::unique_ptr<UnitQueues<Handle>> units_;  // explicit scheduling only
};

}  // namespace batchplane::exec

#include "exec/executor_age.inl"
#include "exec/executor_buffers.inl"
#include "exec/executor_chains.inl"
#include "exec/executor_deadline.inl"
#include "exec/executor_fates.inl"
#include "exec/executor_units.inl"
#include "exec/executor_work.inl"
