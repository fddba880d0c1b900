// SPDX-License-Identifier: BSD-3-Clause
// egress.cc - a packet scheduler between workers and a port: every worker has a mailbox, one task takes
// from all of them and releases packets at link rate.
//
// in: 1   out: 1   drops: mailbox_full, egress_full, egress_too_long, egress_no_flow   state: the
// packets in mailboxes and queues, carried over by apply
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "base/spsc_ring.h"
#include "core/module/register.h"
#include "core/packet/packet_pool.h"
#include "modules/common/item_syntax.h"
#include "modules/egress/egress_flows.h"
#include "modules/egress/egress_scheduler.h"
#include "modules/policy/dscp_field.h"

namespace batchplane {
namespace {

const DropReason kMailboxFull{
    "mailbox_full", "the scheduler did not keep up with this worker",
    "enlarge mailbox_pkts, or give the scheduler's task a core of its own"};
const DropReason kEgressFull{"egress_full", "the egress queue of the packet's flow is full",
                             "the flow sends more than its share: raise its weight or limit_pkts"};
const DropReason kEgressTooLong{"egress_too_long",
                                "the packet is longer than its egress flow may send",
                                "raise lmax_bytes of the flow"};
const DropReason kEgressNoFlow{"egress_no_flow",
                               "the egress flow was removed while the packet was on its way",
                               "nothing to mend, unless it goes on"};

enum class FlowBy : uint8_t { kMark, kDscp, kVrf, kInterface };

FlowBy flow_by_of(const std::string& name) {
  if (name == "dscp") return FlowBy::kDscp;
  if (name == "vrf") return FlowBy::kVrf;
  return name == "interface" ? FlowBy::kInterface : FlowBy::kMark;
}

uint32_t dscp_flow_of(Packet& pkt) {
  const IpKind kind = ip_kind_of(pkt);
  if (kind != IpKind::kIpv4 && kind != IpKind::kIpv6) return 0;
  return dscp_of(pkt.data() + l3_offset_of(pkt), kind);
}

uint64_t checked_rate(uint64_t rate_bps, const std::string& where) {
  if (rate_bps != 0 && rate_bps < egress::Link::kMinRateBps) {
    throw ConfigError("a link of " + std::to_string(rate_bps) + " bit/s is too slow", where,
                      "at least " + std::to_string(egress::Link::kMinRateBps) + ", or 0 for none");
  }
  return rate_bps;
}

// What the control side wants of the scheduler; the polling worker does it between two rounds.
struct Edit {
  enum class Kind : uint8_t { kConfigure, kRemove, kRate } kind = Kind::kConfigure;
  uint32_t flow = 0;
  egress::FlowParams params;
  uint64_t rate_bps = 0;
};

class Egress final : public Module {
 public:
  explicit Egress(const Args& args)
      : flow_by_(flow_by_of(args.string("flow_by"))),
        mailbox_pkts_(args.u32("mailbox_pkts")),
        flows_(parse_egress_flows(args)),
        otherwise_(default_egress_flow(args)),
        settings_{.discipline = args.string("discipline"),
                  .capacity = {args.u32("max_flows"), args.u32("total_limit_pkts")},
                  .rate_bps = checked_rate(args.u64("rate_bps"), args.where() + ".rate_bps"),
                  .overhead_bytes = args.u32("overhead_bytes")},
        scheduler_(make_egress_scheduler(settings_)),
        is_known_(settings_.capacity.flows),
        counts_(settings_.capacity.flows),
        edits_(kMaxEdits) {
    leaving_.reserve(settings_.capacity.flows);
    for (const auto& [flow, params] : flows_) {
      scheduler_->configure(flow, params);
      is_known_[flow].store(true, std::memory_order_relaxed);
    }
    for (uint32_t w = 0; w < args.env().n_workers; ++w) {
      mailboxes_.push_back(std::make_unique<egress::BatchMailbox>(mailbox_pkts_));
    }
  }
  ~Egress() override {
    give_up_held([](Packet* pkt) { PacketPool::free_bulk(&pkt, 1); });
  }

  void consume(Context& ctx, Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    egress::Descriptor pkts[exec::kMaxBatchPkts];
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *batch[i];
      PacketMeta& meta = pkt.meta();
      const uint64_t waited_ns = ctx.now_ns - std::min(ctx.now_ns, meta.entry_ns);
      meta.task_entry_delta_ns = static_cast<uint32_t>(
          std::min<uint64_t>(waited_ns, std::numeric_limits<uint32_t>::max()));
      pkts[i] = egress::Descriptor::of(reinterpret_cast<uint64_t>(&pkt), pkt.len_bytes(),
                                       flow_of_packet(pkt), ctx.now_ns);
    }
    if (ctx.worker_index == polling_worker_.load(std::memory_order_relaxed)) {
      put_inline(ctx, batch, pkts);
      return;
    }
    const uint32_t taken = mailboxes_[ctx.worker_index]->put(pkts, n);
    for (uint32_t i = taken; i < n; ++i) ctx.drop(batch, i, kMailboxFull);
  }

  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    polling_worker_.store(ctx.worker_index, std::memory_order_relaxed);
    apply_edits();
    EgressRefusals refusals;
    for (size_t k = 0; k < mailboxes_.size() && refusals.n < EgressRefusals::kMax; ++k) {
      scheduler_->take(*mailboxes_[next_mailbox_], refusals);
      if (++next_mailbox_ == mailboxes_.size()) next_mailbox_ = 0;
    }
    for (uint32_t i = 0; i < refusals.n; ++i) refuse(ctx, refusals.all[i]);
    const uint32_t n = scheduler_->release(ctx.now_ns, pkts, max, counts_.data());
    bump(taken_pkts_, n + refusals.n);
    return n;
  }

  // Both sides are stopped between two runs. A scheduler of the same kind and size goes on with all that
  // it holds; into another one packets move one by one, and what does not fit is given up with the old.
  void adopt(Module& old_module) noexcept override {
    auto& old = static_cast<Egress&>(old_module);
    if (settings_.discipline == old.settings_.discipline &&
        settings_.capacity == old.settings_.capacity &&
        settings_.overhead_bytes == old.settings_.overhead_bytes &&
        mailbox_pkts_ == old.mailbox_pkts_ && mailboxes_.size() == old.mailboxes_.size()) {
      go_on_with(old);
      return;
    }
    egress::Descriptor pkt;
    while (scheduler_->backlog_pkts() < settings_.capacity.pkts && old.drain(pkt)) {
      if (pkt.flow >= is_known_.size() || !is_known_[pkt.flow].load()) pkt.flow = 0;
      EgressRefusals refusals;
      scheduler_->put(&pkt, 1, refusals);
      if (refusals.n != 0) {
        old.lost_ = pkt;
        old.has_lost_ = true;
        break;
      }
      bump(moved_in_pkts_, 1);
    }
  }
  void give_up_held(const std::function<void(Packet*)>& take) override {
    egress::Descriptor pkt;
    while (drain(pkt))
      take(reinterpret_cast<Packet*>(pkt.handle()));  // NOLINT(performance-no-int-to-ptr)
  }

  [[nodiscard]] uint64_t held_pkts() const override { return put_pkts() - taken_pkts(); }
  [[nodiscard]] uint64_t put_pkts() const override {
    uint64_t put = inline_pkts_.load(std::memory_order_acquire) +
                   moved_in_pkts_.load(std::memory_order_acquire);
    for (const auto& mailbox : mailboxes_) put += mailbox->put_pkts();
    return put;
  }
  [[nodiscard]] uint64_t taken_pkts() const override {
    return taken_pkts_.load(std::memory_order_acquire);
  }
  [[nodiscard]] uint32_t max_held_pkts() const override {
    return settings_.capacity.pkts + mailbox_pkts_ * static_cast<uint32_t>(mailboxes_.size());
  }
  [[nodiscard]] bool may_emit() const override { return false; }

  // Live: {"add" | "replace" | "delete": flows}, {"set": {rate_bps}}, "list".
  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return show();
    if (verb == "set") {
      set_rate(args);
    } else if (verb == "add" || verb == "replace" || verb == "delete") {
      edit_flows(verb, items_under(args, "flows"));
    } else {
      return Module::command(verb, args);
    }
    return show();
  }

  [[nodiscard]] Value show() const override {
    List flows;
    for (const auto& [flow, params] : flows_) {
      const EgressFlowCount& count = counts_[flow];
      flows.push_back(Dict{{"flow", flow},
                           {"weight", params.weight},
                           {"backlog_pkts", count.backlog_pkts.load()},
                           {"released_pkts", count.pkts.load()},
                           {"released_bytes", count.bytes.load()},
                           {"refused_pkts", count.refused_pkts.load()}});
    }
    return Dict{{"discipline", settings_.discipline},
                {"rate_bps", settings_.rate_bps},
                {"held_pkts", held_pkts()},
                {"flows", flows}};
  }
  [[nodiscard]] Dict saved_params() const override {
    return {{"flows", flow_list()}, {"rate_bps", settings_.rate_bps}};
  }

 private:
  static constexpr uint32_t kMaxEdits = 1024;

  [[nodiscard]] uint32_t flow_of_packet(Packet& pkt) const noexcept {
    uint32_t flow = 0;
    switch (flow_by_) {
      case FlowBy::kMark:
        flow = pkt.mark();
        break;
      case FlowBy::kDscp:
        flow = dscp_flow_of(pkt);
        break;
      case FlowBy::kVrf:
        flow = pkt.meta().vrf;
        break;
      case FlowBy::kInterface:
        flow = pkt.meta().in_interface;
        break;
    }
    if (flow >= is_known_.size()) return 0;
    return is_known_[flow].load(std::memory_order_relaxed) ? flow : 0;
  }

  static const DropReason& reason_of(egress::Enqueued why) noexcept {
    if (why == egress::Enqueued::kTooLong) return kEgressTooLong;
    return why == egress::Enqueued::kNoFlow ? kEgressNoFlow : kEgressFull;
  }
  void refuse(Context& ctx, const EgressRefusals::One& one) noexcept {
    bump(counts_[one.flow].refused_pkts, 1);
    ctx.drop_owned(one.pkt, reason_of(one.why));
  }
  // The worker that schedules needs no mailbox for its own packets.
  void put_inline(Context& ctx, Batch& batch, const egress::Descriptor* pkts) noexcept {
    const uint32_t n = batch.size_pkts;
    EgressRefusals refusals;
    scheduler_->put(pkts, n, refusals);
    uint32_t next = 0;  // refusals come in the order of the batch
    for (uint32_t i = 0; next < refusals.n; ++i) {
      const EgressRefusals::One& one = refusals.all[next];
      if (batch[i] != one.pkt) continue;
      bump(counts_[one.flow].refused_pkts, 1);
      ctx.drop(batch, i, reason_of(one.why));
      ++next;
    }
    bump(inline_pkts_, n - refusals.n);
  }

  // Whatever is inside, oldest first within each place.
  bool drain(egress::Descriptor& pkt) noexcept {
    bool has = std::exchange(has_lost_, false);
    if (has) pkt = lost_;
    has = has || scheduler_->drain(pkt);
    for (size_t w = 0; w < mailboxes_.size() && !has; ++w) has = mailboxes_[w]->take(&pkt, 1) == 1;
    if (has) bump(taken_pkts_, 1);
    return has;
  }
  // Flows that are not declared any more keep what they hold, and leave when it is gone.
  void go_on_with(Egress& old) noexcept {
    std::swap(scheduler_, old.scheduler_);
    std::swap(mailboxes_, old.mailboxes_);
    std::swap(counts_, old.counts_);
    bump(taken_pkts_, old.taken_pkts_.exchange(0));
    bump(moved_in_pkts_, old.moved_in_pkts_.exchange(0));
    bump(inline_pkts_, old.inline_pkts_.exchange(0));
    if (settings_.rate_bps != old.settings_.rate_bps) scheduler_->set_rate_bps(settings_.rate_bps);
    for (const auto& [flow, params] : old.flows_) {
      if (!flows_.contains(flow)) leaving_.push_back(flow);
    }
    for (const auto& [flow, params] : flows_) scheduler_->configure(flow, params);
  }

  void apply_edits() noexcept {
    Edit edit;
    while (edits_.dequeue(&edit, 1) == 1) {
      switch (edit.kind) {
        case Edit::Kind::kConfigure:
          scheduler_->configure(edit.flow, edit.params);
          break;
        case Edit::Kind::kRemove:
          leaving_.push_back(edit.flow);
          break;
        case Edit::Kind::kRate:
          scheduler_->set_rate_bps(edit.rate_bps);
          break;
      }
    }
    if (leaving_.empty()) [[likely]]
      return;
    const uint32_t flow = leaving_.back();
    if (is_known_[flow].load(std::memory_order_relaxed)) {
      leaving_.pop_back();  // added again meanwhile
    } else if (scheduler_->backlog_pkts(flow) == 0) {
      scheduler_->remove(flow, [](Packet*) {});
      leaving_.pop_back();
    } else {
      std::swap(leaving_.front(), leaving_.back());
    }
  }

  void order(const Edit& edit) {
    if (edits_.enqueue(&edit, 1) == 1) return;
    throw ConfigError("too many changes at once", "egress", "the scheduler's worker does not run");
  }
  void set_rate(const Value& args) {
    check_keys(args, {"rate_bps"}, "set");
    const auto rate_bps = static_cast<uint64_t>(int_value(
        args["rate_bps"], 0, static_cast<int64_t>(egress::Link::kMaxRateBps), "set.rate_bps"));
    checked_rate(rate_bps, "set.rate_bps");
    order({.kind = Edit::Kind::kRate, .rate_bps = rate_bps});
    settings_.rate_bps = rate_bps;
  }
  void edit_flows(const std::string& verb, const List& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string where = "flows[" + std::to_string(i) + "]";
      const auto [flow, params] =
          parse_egress_flow(items[i], otherwise_, settings_.capacity.flows, where);
      if (verb == "delete") {
        remove_flow(flow, where);
        continue;
      }
      if ((verb == "add") == flows_.contains(flow)) {
        throw ConfigError(verb == "add" ? "the flow exists" : "there is no such flow", where,
                          verb == "add" ? "replace it" : "add it");
      }
      order({.flow = flow, .params = params});
      flows_[flow] = params;
      is_known_[flow].store(true, std::memory_order_relaxed);
    }
  }
  void remove_flow(uint32_t flow, const std::string& where) {
    if (flow == 0 || !flows_.contains(flow)) {
      throw ConfigError(flow == 0 ? "flow 0 takes what no other flow has" : "there is no such flow",
                        where, "delete another");
    }
    is_known_[flow].store(false, std::memory_order_relaxed);
    flows_.erase(flow);
    order({.kind = Edit::Kind::kRemove, .flow = flow});
  }
  [[nodiscard]] List flow_list() const {
    List list;
    for (const auto& [flow, params] : flows_) list.push_back(egress_flow_value(flow, params));
    return list;
  }

  const FlowBy flow_by_;
  const uint32_t mailbox_pkts_;
  EgressFlows flows_;  // as the control side wants them
  const egress::FlowParams otherwise_;
  EgressSettings settings_;
  std::unique_ptr<EgressScheduler> scheduler_;
  std::vector<std::unique_ptr<egress::BatchMailbox>> mailboxes_;  // by worker that puts in
  std::vector<std::atomic<bool>> is_known_;                       // by flow
  std::vector<EgressFlowCount> counts_;                           // by flow
  SpscRing<Edit> edits_;
  std::vector<uint32_t> leaving_;  // flows, until their queues are empty
  std::atomic<uint64_t> taken_pkts_{0};
  std::atomic<uint64_t> inline_pkts_{0};    // put in by the worker that polls
  std::atomic<uint64_t> moved_in_pkts_{0};  // by adopt
  std::atomic<uint32_t> polling_worker_{~0U};
  size_t next_mailbox_ = 0;
  egress::Descriptor lost_;  // what a change of scheduler had no room for
  bool has_lost_ = false;
};

ParamSpec count(const char* name, uint32_t default_value, double max, const char* help) {
  return {.name = name,
          .unit = "pkts",
          .default_value = default_value,
          .help = help,
          .min = 1,
          .max = max};
}

const Register<Egress> kEgress{{
    .kind = "egress",
    .state = StateOf::kOneOwner,
    .help = "Schedules what workers send: each flow gets its share of a link, whatever others do.",
    .params = {{.name = "discipline",
                .type = ParamType::kString,
                .default_value = "qfq_plus",
                .help = "which flow is next",
                .choices = {"fifo", "prio", "drr", "wf2q_plus", "qfq", "qfq_plus"}},
               {.name = "rate_bps",
                .type = ParamType::kInt,
                .unit = "bps",
                .default_value = 0,
                .help = "rate at which packets are released; 0 = as fast as the port takes them",
                .min = 0,
                .max = static_cast<double>(egress::Link::kMaxRateBps)},
               {.name = "overhead_bytes",
                .unit = "bytes",
                .default_value = 0,
                .help = "what each packet takes on the link besides; 24 on Ethernet",
                .min = 0,
                .max = 1000},
               {.name = "flow_by",
                .type = ParamType::kString,
                .default_value = "mark",
                .help = "the number that says which flow a packet belongs to",
                .choices = {"mark", "dscp", "vrf", "interface"}},
               {.name = "flows",
                .type = ParamType::kList,
                .default_value = List{},
                .help = "{flow, weight, lmax_bytes, limit_pkts}; others belong to flow 0"},
               {.name = "lmax_bytes",
                .unit = "bytes",
                .default_value = 1600,
                .help = "longest packet of a flow that says nothing else",
                .min = 64,
                .max = egress::kMaxPktBytes},
               count("limit_pkts", 1000, 1 << 20, "queue of a flow that says nothing else"),
               count("total_limit_pkts", 16384, 1 << 24, "queues of all flows together"),
               {.name = "max_flows",
                .default_value = 1024,
                .help = "flows have numbers below this",
                .min = 1,
                .max = kMaxEgressFlows},
               count("mailbox_pkts", 1024, 1 << 20, "what each worker may have handed over")},
    .drops = {&kMailboxFull, &kEgressFull, &kEgressTooLong, &kEgressNoFlow},
    .notes = "A task begins here: set `worker` to the core that schedules, and let port_out "
             "follow. Several "
             "workers send into it through a `queue` each, with the same `worker`. With `prio` a "
             "weight is a level, 1 to 64, and 64 goes first. Live: add, replace, delete flows; "
             "set rate_bps. A deleted flow's packets still go out.",
}};

}  // namespace
}  // namespace batchplane
