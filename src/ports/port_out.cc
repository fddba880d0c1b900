// SPDX-License-Identifier: BSD-3-Clause
// port_out.cc - sends packets out of a port; flows end here.
//
// in: 1   out: none   drops: tx_full, mtu_exceeded   state: packets that wait for the port (when_full: wait)
#include <algorithm>
#include <array>

#include "base/net.h"
#include "core/module/register.h"

namespace batchplane {
namespace {

const DropReason kTxFull{
    "tx_full", "the port did not take the packet",
    "the link is down, or slower than the traffic: look at show ports, give it "
    "more, or set tx_retries"};
const DropReason kMtuExceeded{"mtu_exceeded", "the packet is longer than the interface's MTU",
                              "raise mtu_bytes, or send fragmentation needed with on_drop"};

class PortOut final : public Module {
 public:
  explicit PortOut(const Args& args)
      : port_(args.env().port(args.string("port"))),
        tx_retries_(args.u32("tx_retries")),
        waits_(args.string("when_full") == "wait") {
    if (!args.string("interface").empty()) {
      mtu_bytes_ = args.env().interface(args.string("interface")).mtu_bytes;
    }
  }

  void consume(Context& ctx, Batch& batch) noexcept {
    Packet* pkts[exec::kMaxBatchPkts];
    uint32_t slot[exec::kMaxBatchPkts];
    uint32_t n = 0;
    const uint32_t mtu_bytes = std::min(mtu_bytes_, port_->tx_mtu_bytes());
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      if (l3_bytes(*batch[i]) > mtu_bytes) [[unlikely]] {
        ctx.drop(batch, i, kMtuExceeded);
        continue;
      }
      pkts[n] = batch[i];
      slot[n++] = i;
    }
    // Nothing may overtake waiting packets.
    uint32_t done = n_waiting_ == 0 ? port_->tx_burst(pkts, n) : 0;
    uint32_t tries_left = tx_retries_;
    while (done < n && n_waiting_ == 0) {
      // The MTU may have just shrunk: the blocking packet is dropped, the others continue.
      if (l3_bytes(*pkts[done]) > port_->tx_mtu_bytes()) {
        ctx.drop(batch, slot[done++], kMtuExceeded);
      } else if (tries_left-- == 0) {
        break;
      }
      done += port_->tx_burst(pkts + done, n - done);
    }
    for (uint32_t k = done; k < n; ++k) {
      if (waits_ && n_waiting_ < kMaxWaitingPkts) {
        waiting_[n_waiting_++] = ctx.keep(batch, slot[k]);
      } else {
        ctx.drop(batch, slot[k], kTxFull);
      }
    }
  }

  [[nodiscard]] uint64_t housekeep_interval_ns() const override {
    if (waits_) return kRetryIntervalNs;
    return port_->wants_push() ? kPushIntervalNs : 0;
  }
  void housekeep(Context& ctx, uint64_t /*budget_ns*/) noexcept override {
    if (n_waiting_ != 0) send_waiting(ctx);
    port_->push();
  }

  // While packets wait, the task polls nothing: the backlog stays where it is scheduled.
  [[nodiscard]] bool wants_backpressure() const override { return waits_; }
  [[nodiscard]] uint32_t room_pkts(uint32_t /*worker*/) const noexcept override {
    return n_waiting_ == 0 ? ~0U : 0;
  }
  [[nodiscard]] uint64_t held_pkts() const override { return n_waiting_; }
  [[nodiscard]] uint32_t max_held_pkts() const override { return waits_ ? kMaxWaitingPkts : 0; }
  [[nodiscard]] bool may_emit() const override { return false; }
  void adopt(Module& old_module) noexcept override {
    auto& old = static_cast<PortOut&>(old_module);
    if (!waits_) return;
    std::swap(waiting_, old.waiting_);
    std::swap(n_waiting_, old.n_waiting_);
  }
  void give_up_held(const std::function<void(Packet*)>& take) override {
    for (uint32_t i = 0; i < n_waiting_; ++i) take(waiting_[i]);
    n_waiting_ = 0;
  }

 private:
  static constexpr uint64_t kPushIntervalNs = 1'000'000;
  static constexpr uint64_t kRetryIntervalNs = 1'000;
  static constexpr uint32_t kMaxWaitingPkts = 2 * exec::kMaxBatchPkts;

  // Flows end here: packets are metered before the port gets them.
  void send_waiting(Context& ctx) noexcept {
    const uint32_t n = std::min(n_waiting_, exec::kMaxBatchPkts);
    if (ctx.meter->is_nearly_full(n)) ctx.meter->flush(ctx.now_ns);
    const EgressNotes notes(*this, waiting_.data(), n);
    const uint32_t sent = port_->tx_burst(waiting_.data(), n);
    for (uint32_t i = 0; i < sent; ++i) notes.record(*ctx.meter, i);
    std::copy(waiting_.begin() + sent, waiting_.begin() + n_waiting_, waiting_.begin());
    n_waiting_ -= sent;
    // The MTU may have shrunk meanwhile.
    if (n_waiting_ != 0 && l3_bytes(*waiting_[0]) > port_->tx_mtu_bytes()) {
      ctx.drop_owned(waiting_[0], kMtuExceeded);
      std::copy(waiting_.begin() + 1, waiting_.begin() + n_waiting_, waiting_.begin());
      --n_waiting_;
    }
  }

  // Length of the Ethernet payload. Padding of short frames counts, but does not matter.
  static uint32_t l3_bytes(Packet& pkt) {
    const uint32_t len = pkt.len_bytes();
    if (len < net::kEthBytes) [[unlikely]]
      return 0;
    constexpr uint32_t kTaggedBytes = net::kEthBytes + net::kVlanTagBytes;
    const bool is_tagged =
        header_in<net::Ethernet>(pkt, 0).type == net::kTypeVlan && len >= kTaggedBytes;
    return len - (is_tagged ? kTaggedBytes : net::kEthBytes);
  }

  const std::shared_ptr<Port> port_;
  const uint32_t tx_retries_;
  const bool waits_;
  uint32_t mtu_bytes_ = ~0U;
  uint32_t n_waiting_ = 0;
  std::array<Packet*, kMaxWaitingPkts> waiting_;  // for the port, oldest first
};

const Register<PortOut> kPortOut{{
    .kind = "port_out",
    .state = StateOf::kOneOwner,
    .help = "Sends packets out of a port; flows end here.",
    .params = {{.name = "port", .type = ParamType::kPort, .help = "name of the port"},
               {.name = "interface",
                .type = ParamType::kString,
                .default_value = "",
                .help = "interface whose MTU is kept; empty = no check"},
               {.name = "tx_retries",
                .default_value = 0,
                .help = "tries again so often for what the port did not take at once",
                .min = 0,
                .max = 1000},
               {.name = "when_full",
                .type = ParamType::kString,
                .default_value = "drop",
                .help =
                    "what the port does not take; wait: keep it, in order, and poll nothing until "
                    "it has gone",
                .choices = {"drop", "wait"}}},
    .drops = {&kTxFull, &kMtuExceeded},
    .is_egress = true,
    .notes =
        "when_full: wait belongs behind an egress scheduler, or in a task of its own: a port that "
        "takes nothing holds back all inputs of its task.",
}};

}  // namespace
}  // namespace batchplane
