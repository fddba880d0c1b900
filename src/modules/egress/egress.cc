// SPDX-License-Identifier: BSD-3-Clause
// egress.cc - a packet scheduler between workers and a port: each sending worker has a mailbox; one
// task takes packets from all mailboxes and releases them at link rate.
//
// in: 1   out: 1   drops: mailbox_full, egress_full, egress_too_long, egress_no_flow, egress_shed
// state: the packets in mailboxes and queues, carried over by apply
#include <atomic>
#include <utility>
#include <vector>

#include "core/module/register.h"
#include "core/packet/packet_pool.h"
#include "egress/discipline/disciplines.h"
#include "modules/common/flow_tree.h"
#include "modules/common/item_syntax.h"
#include "modules/egress/connection.h"
#include "modules/egress/egress_book.h"
#include "modules/egress/egress_mailboxes.h"
#include "modules/egress/egress_params.h"
#include "modules/egress/egress_promises.h"
#include "modules/egress/egress_reasons.h"
#include "modules/egress/egress_status.h"
#include "modules/egress/flow_rule.h"

namespace batchplane {
namespace {

const DropReason kMailboxFull{
    "mailbox_full", "the scheduler did not keep up with this worker",
    "enlarge mailbox_pkts, or give the scheduler's task a core of its own"};
const DropReason kEgressTooLong{"egress_too_long",
                                "the packet is longer than its egress flow may send",
                                "raise lmax_bytes of the flow"};
const DropReason kEgressShed{
    "egress_shed", "the packet's queue keeps delays short by dropping some",
    "nothing to mend: its sender is to slow down; with ECN it would be told by a mark"};
const DropReason kEgressNoFlow{"egress_no_flow",
                               "the egress flow was removed while the packet was on its way",
                               "nothing to mend, unless it goes on"};

// Maximum number of flows that `show` lists.
constexpr size_t kMaxShownFlows = 1000;
// Live views show this many rows, and none above kMaxLiveFlows flows, since summing those up is
// slow.
constexpr uint32_t kShownLive = 8;
constexpr size_t kMaxLiveFlows = 20'000;
// Bounds of so many flows of a tree take half a millisecond, a twentieth of a control period.
constexpr size_t kFlowsBoundInAPeriod = 800;

class Egress final : public Module, public FlowTree {
 public:
  explicit Egress(const Args& args)
      : flow_rule_(args),
        settings_(egress_settings(args)),
        book_(make_egress_book(args, settings_)),
        mailboxes_(args.env().n_workers, args.u32("mailbox_pkts")),
        scheduler_(make_egress_scheduler(settings_)),
        counts_(settings_.capacity.flows),
        promises_(args.env().n_workers, settings_.capacity.flows),
        batch_limit_pkts_(args.env().batch_limit_pkts),
        place_(flow_tree_place(args.env(), args.name())) {
    place_->tree = this;
    book_->configure_all(*scheduler_);
    promises_.set(book_->bounds(settings_));
  }
  ~Egress() override {
    place_->tree = nullptr;
    give_up_held([](Packet* pkt) { PacketPool::free_bulk(&pkt, 1); });
  }
  void set_feeders(const std::vector<uint32_t>& workers) override {
    mailboxes_.set_feeders(workers);
    is_idle_ = false;
  }

  void stage(const TreeChange& change) override {
    if (!change.placed.empty() && !flow_rule_.is_by_mark()) {
      throw ConfigError("nodes of other modules are found by mark", change.placed.front().where,
                        "set flow_by: mark");
    }
    book_->stage(change, is_idle_);
  }
  void settle(bool is_wanted) noexcept override {
    book_->settle(is_wanted, is_idle_ ? scheduler_.get() : nullptr);
    has_other_bounds_ = true;
  }
  [[nodiscard]] bool is_free(uint32_t flow) const override { return book_->is_free(flow); }
  bool refuses(Packet& pkt) noexcept override {
    const uint32_t flow = scheduled_flow(pkt);
    if (!scheduler_->backpressure().is_full(flow)) [[likely]]
      return false;
    counts_.note_early(flow);
    return true;
  }

  void consume(Context& ctx, Batch& batch) noexcept {
    egress::Descriptor pkts[exec::kMaxBatchPkts];
    uint32_t slots[exec::kMaxBatchPkts];
    uint32_t n = 0;
    const egress::Backpressure& backpressure = scheduler_->backpressure();
    const bool has_connections = book_->has_connections();
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t flow = scheduled_flow(pkt);
      if (backpressure.is_full(flow)) [[unlikely]] {
        counts_.note_early(flow);
        ctx.drop(batch, i, reason::kEgressFull);
        continue;
      }
      enter_task(pkt, ctx.now_ns);
      slots[n] = i;
      const uint32_t word = has_connections ? connection_word(pkt, flow) : flow;
      pkts[n++] = descriptor_of(pkt, word, ctx.now_ns);
    }
    if (n != 0)
      promises_.note(ctx.worker_index, *batch[slots[0]], pkts[0].flow & egress::kFlowMask);
    if (ctx.worker_index == polling_worker_.load(std::memory_order_relaxed)) {
      put_directly(ctx, batch, pkts, slots, n);
      return;
    }
    const uint32_t taken = mailboxes_.put(ctx.worker_index, pkts, n);
    for (uint32_t i = taken; i < n; ++i) ctx.drop(batch, slots[i], kMailboxFull);
  }

  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    polling_worker_.store(ctx.worker_index, std::memory_order_relaxed);
    now_ns_.store(ctx.now_ns, std::memory_order_relaxed);
    book_->carry_out(*scheduler_);
    EgressRefusals refusals;
    scheduler_->begin_round(ctx.now_ns);
    mailboxes_.take_all(*scheduler_, refusals);
    drop_all(ctx, refusals);
    const uint32_t n = scheduler_->release(ctx.now_ns, pkts, max, counts_.data());
    bump(taken_pkts_, n);
    scheduler_->take_shed(refusals);
    drop_all(ctx, refusals);
    return n;
  }

  void inherit(Module& old_module) override {
    given_back_.reserve(old_module.max_held_pkts());
    const auto& old = static_cast<const Egress&>(old_module);
    if (is_of_one_make(old)) book_->inherit(*old.book_);
  }
  // No worker runs. A scheduler with the same settings, rate apart, is kept with all its packets;
  // otherwise the packets are moved one by one, and those that do not fit are given up with the old
  // module.
  void adopt(Module& old_module) noexcept override {
    auto& old = static_cast<Egress&>(old_module);
    if (keeps_departures_ == old.keeps_departures_) {
      bump(taken_pkts_, mailboxes_.adopt(old.mailboxes_));
    }
    if (is_of_one_make(old) && book_->can_take_over()) {
      std::swap(scheduler_, old.scheduler_);
      std::swap(counts_, old.counts_);
      scheduler_->edit({.kind = EgressEdit::Kind::kRate, .rate_bps = settings_.rate_bps});
      book_->take_over(*scheduler_, *old.book_);
      mailboxes_.note_moved(scheduler_->backlog_pkts());
    }
    move_from(old);
  }
  void give_up_held(const std::function<void(Packet*)>& take) override {
    egress::Descriptor pkt;
    while (next_held(pkt)) {
      bump(taken_pkts_, 1);
      take(packet_of(pkt));
    }
    for (Packet* refused : refused_) take(refused);
    refused_.clear();
  }

  [[nodiscard]] uint64_t held_pkts() const override { return mailboxes_.put_pkts() - taken_pkts(); }
  [[nodiscard]] uint64_t put_pkts(uint32_t worker) const override {
    return mailboxes_.put_pkts(worker);
  }
  [[nodiscard]] uint64_t taken_pkts() const override {
    return taken_pkts_.load(std::memory_order_acquire);
  }
  [[nodiscard]] uint32_t max_held_pkts() const override {
    return settings_.capacity.pkts + mailboxes_.capacity_pkts();
  }
  [[nodiscard]] bool may_emit() const override { return false; }
  // While the port accepts nothing, the backlog builds up in the queues here, where weights apply,
  // and not in mailboxes.
  [[nodiscard]] bool absorbs() const override { return true; }

  // Live commands: {"add" | "replace" | "delete": flows}, {"set": {rate_bps}}, "list", {"status":
  // EgressQuestion}.
  Value command(const std::string& verb, const Value& args) override {
    if (verb == "set") {
      set_rate(args);
    } else if (verb == "add") {
      book_->add(args);
    } else if (verb == "replace") {
      book_->replace(args);
    } else if (verb == "delete") {
      book_->remove(args);
    } else if (verb == "status") {
      renew_bounds();
      return status(parse_egress_question(args));
    } else if (verb == "bounds") {
      return bounds_of(args);
    } else if (verb != "list") {
      return Module::command(verb, args);
    }
    has_other_bounds_ = verb != "list" || has_other_bounds_;
    return show();
  }

  [[nodiscard]] Value show() const override {
    List flows;
    book_->each_flow([&](uint32_t flow, Dict said) {
      const EgressFlowCount& count = counts_[flow];
      said["flow"] = flow;
      said["backlog_pkts"] = scheduler_->backlog_pkts(flow);
      said["released_pkts"] = count.pkts.load();
      said["released_bytes"] = count.bytes.load();
      said["refused_pkts"] = counts_.refused_pkts(flow);
      if (const uint64_t marked = count.marked_pkts.load(); marked != 0) {
        said["marked_pkts"] = marked;
      }
      flows.emplace_back(std::move(said));
      return flows.size() < kMaxShownFlows;
    });
    Dict shown{{"discipline", settings_.discipline},
               {"rate_bps", settings_.rate_bps},
               {"held_pkts", held_pkts()},
               {"n_flows", static_cast<uint64_t>(book_->n_flows())},
               {"flows", flows}};
    if (book_->n_flows() <= kMaxLiveFlows) shown["status"] = status({.limit = kShownLive});
    return shown;
  }
  [[nodiscard]] bool is_scheduler() const override { return true; }
  void take_promises(
      const std::function<void(uint16_t state, const exec::EgressPromise&)>& use) override {
    // Others that are edited all the time would keep the control thread busy with bounds.
    if (periods_to_bounds_ != 0) {
      --periods_to_bounds_;
    } else {
      renew_bounds();
    }
    promises_.take(counts_, *scheduler_, batch_limit_pkts_, use);
  }
  [[nodiscard]] uint32_t scheduled_flow(Packet& pkt) const override {
    return book_->known(flow_rule_.number_of(pkt));
  }
  [[nodiscard]] Value for_simulation() const override {
    Dict numbers = egress_numbers(settings_);
    numbers["mailbox_pkts"] = mailboxes_.size_pkts();
    book_->tell_numbers(numbers);
    return numbers;
  }
  [[nodiscard]] Dict saved_params() const override {
    Dict saved = book_->saved_params();
    saved["rate_bps"] = settings_.rate_bps;
    return saved;
  }

 private:
  // Takes long for large trees, so it is left until somebody asks.
  void renew_bounds() const {
    if (!std::exchange(has_other_bounds_, false)) return;
    promises_.set(book_->bounds(settings_));
    periods_to_bounds_ = book_->n_flows() / kFlowsBoundInAPeriod;
  }
  // With the bounds last worked out.
  [[nodiscard]] Dict status(const EgressQuestion& question) const {
    Dict told = EgressStatus(*book_, *scheduler_, counts_, promises_).answer(question);
    told["discipline"] = settings_.discipline;
    told["rate_bps"] = settings_.rate_bps;
    told["held_pkts"] = held_pkts();
    told["now_ns"] = now_ns_.load(std::memory_order_relaxed);
    return told;
  }
  // For {flows: [number, ..]}, {flow, share_bps, bound_ns or null, why_not} of each: the longest wait,
  // without rounds of the worker, and what the flow may send for that.
  [[nodiscard]] List bounds_of(const Value& args) const {
    check_keys(args, {"flows"}, "bounds");
    if (!args["flows"].is_list())
      throw ConfigError("expected flows", "bounds.flows", "their numbers");
    renew_bounds();
    List told;
    for (const Value& number : args["flows"].as_list()) {
      const int64_t last = int64_t{settings_.capacity.flows} - 1;
      const auto flow = static_cast<uint32_t>(int_value(number, 0, last, "bounds.flows"));
      const egress::Bound& bound = promises_.bound_of(flow);
      told.emplace_back(Dict{{"flow", flow},
                             {"share_bps", bound.share_bps},
                             {"bound_ns", bound.has_one() ? Value(bound.total_ns()) : Value()},
                             {"why_not", egress::message_of(bound.why_not)}});
    }
    return told;
  }
  // Whether the two modules' schedulers are interchangeable: same settings but for the rate.
  [[nodiscard]] bool is_of_one_make(const Egress& old) const {
    EgressSettings as_it_was = old.settings_;
    as_it_was.rate_bps = settings_.rate_bps;
    return settings_ == as_it_was;
  }
  [[nodiscard]] egress::Descriptor descriptor_of(Packet& pkt, uint32_t word,
                                                 uint64_t came_ns) const noexcept {
    static_assert(egress::kTickShift == kDepartureTickShift);
    const auto handle = reinterpret_cast<uint64_t>(&pkt);
    if (keeps_departures_ && pkt.has_departure()) {
      return egress::Descriptor::departing(handle, pkt.len_bytes(), word, pkt.departure_ticks());
    }
    return egress::Descriptor::of(handle, pkt.len_bytes(), word, came_ns);
  }
  static const DropReason& reason_of(egress::Enqueued why) noexcept {
    if (why == egress::Enqueued::kTooLong) return kEgressTooLong;
    if (why == egress::Enqueued::kShed) return kEgressShed;
    return why == egress::Enqueued::kNoFlow ? kEgressNoFlow : reason::kEgressFull;
  }
  void note_refused(const EgressRefusals::One& one) noexcept {
    counts_.note_refused(one.flow, one.why);
  }
  void drop_all(Context& ctx, EgressRefusals& refusals) noexcept {
    for (uint32_t i = 0; i < refusals.n; ++i) {
      const EgressRefusals::One& one = refusals.all[i];
      note_refused(one);
      ctx.drop_owned(one.pkt, reason_of(one.why));
    }
    bump(taken_pkts_, refusals.n);
    refusals.n = 0;
  }
  // The scheduling worker needs no mailbox for its own packets.
  void put_directly(Context& ctx, Batch& batch, const egress::Descriptor* pkts,
                    const uint32_t* slots, uint32_t n) noexcept {
    EgressRefusals refusals;
    scheduler_->put(pkts, n, refusals);
    uint32_t n_pushed_out = 0;
    uint32_t i = 0;  // refusals are in batch order
    for (uint32_t k = 0; k < refusals.n; ++k) {
      const EgressRefusals::One& one = refusals.all[k];
      note_refused(one);
      if (one.why == egress::Enqueued::kPushedOut) {
        ctx.drop_owned(one.pkt, reason_of(one.why));
        ++n_pushed_out;
        continue;
      }
      while (packet_of(pkts[i]) != one.pkt) ++i;
      ctx.drop(batch, slots[i], reason_of(one.why));
    }
    mailboxes_.note_direct(ctx.worker_index, n - (refusals.n - n_pushed_out));
    bump(taken_pkts_, n_pushed_out);
  }

  // The next packet held anywhere, oldest first within each queue or mailbox.
  bool next_held(egress::Descriptor& pkt) noexcept {
    return scheduler_->drain(pkt) || mailboxes_.take_one(pkt);
  }
  void move_from(Egress& old) noexcept {
    egress::Descriptor pkt;
    scheduler_->begin_round(old.now_ns_.load(std::memory_order_relaxed));
    while (old.next_held(pkt)) {
      pkt.flow = book_->known_still(pkt.flow & egress::kFlowMask);
      if (keeps_departures_ != old.keeps_departures_) {
        pkt = descriptor_of(*packet_of(pkt), pkt.flow, task_entry_ns(*packet_of(pkt)));
      }
      EgressRefusals refusals;
      scheduler_->put(&pkt, 1, refusals);
      if (refusals.n == 0) {
        mailboxes_.note_moved(1);
      } else {
        given_back_.push_back(refusals.all[0].pkt);
      }
    }
    std::swap(old.refused_, given_back_);
  }

  void set_rate(const Value& args) {
    check_keys(args, {"rate_bps"}, "set");
    const auto rate_bps = static_cast<uint64_t>(int_value(
        args["rate_bps"], 0, static_cast<int64_t>(egress::Link::kMaxRateBps), "set.rate_bps"));
    book_->set_rate_bps(checked_egress_rate(rate_bps, "set.rate_bps"));
    settings_.rate_bps = rate_bps;
  }

  const FlowRule flow_rule_;
  EgressSettings settings_;
  const bool keeps_departures_ = settings_.discipline == kCalendarDiscipline;
  std::unique_ptr<EgressBook> book_;
  EgressMailboxes mailboxes_;
  std::unique_ptr<EgressScheduler> scheduler_;
  EgressCounts counts_;
  mutable EgressPromises promises_;
  bool is_idle_ = true;                    // no worker runs it yet. Control thread
  mutable bool has_other_bounds_ = false;  // than promises_ has. Control thread
  mutable size_t periods_to_bounds_ = 0;   // that the control loop waits with new ones
  const uint32_t batch_limit_pkts_;
  const std::shared_ptr<FlowTreePlace> place_;
  std::atomic<uint64_t> taken_pkts_{0};
  std::atomic<uint32_t> polling_worker_{~0U};
  std::atomic<uint64_t> now_ns_{0};  // of the last poll
  // Packets that a smaller scheduler refused or pushed out in an apply: the new module collects
  // them in given_back_ and swaps them into the old one's refused_.
  std::vector<Packet*> refused_;
  std::vector<Packet*> given_back_;
};

const Register<Egress> kEgress{{
    .kind = "egress",
    .state = StateOf::kOneOwner,
    .help = "Schedules what workers send: each flow gets its share of a link, whatever others do.",
    .params = egress_params(),
    .drops = {&kMailboxFull, &reason::kEgressFull, &kEgressTooLong, &kEgressNoFlow, &kEgressShed},
    .notes = "A task begins here: set `worker` to the core that schedules, and let port_out "
             "follow. Any number of workers may send into it. With `prio` a "
             "weight is a level, 1 to 64, and 64 goes first. Live: add, replace, delete flows; "
             "set rate_bps. A deleted flow's packets still go out.",
}};

}  // namespace
}  // namespace batchplane
