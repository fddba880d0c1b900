// SPDX-License-Identifier: BSD-3-Clause
// port_out.cc - sends packets out of a port; flows end here.
//
// in: 1   out: none   drops: tx_full, mtu_exceeded   state: none
#include <algorithm>

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
      : port_(args.env().port(args.string("port"))), tx_retries_(args.u32("tx_retries")) {
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
    uint32_t done = port_->tx_burst(pkts, n);
    uint32_t tries_left = tx_retries_;
    while (done < n) {
      // The MTU may have become smaller just now: the packet in the way ends, the others go on.
      if (l3_bytes(*pkts[done]) > port_->tx_mtu_bytes()) {
        ctx.drop(batch, slot[done++], kMtuExceeded);
      } else if (tries_left-- == 0) {
        break;
      }
      done += port_->tx_burst(pkts + done, n - done);
    }
    for (uint32_t k = done; k < n; ++k) ctx.drop(batch, slot[k], kTxFull);
  }

  [[nodiscard]] uint64_t housekeep_interval_ns() const override {
    return port_->wants_push() ? kPushIntervalNs : 0;
  }
  void housekeep(Context& /*ctx*/, uint64_t /*budget_ns*/) noexcept override { port_->push(); }

 private:
  static constexpr uint64_t kPushIntervalNs = 1'000'000;

  // Length of what the Ethernet header carries. Padding of short frames counts, and never matters.
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
  uint32_t mtu_bytes_ = ~0U;
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
                .max = 1000}},
    .drops = {&kTxFull, &kMtuExceeded},
    .is_egress = true,
}};

}  // namespace
}  // namespace batchplane
