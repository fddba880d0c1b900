// SPDX-License-Identifier: BSD-3-Clause
// error_module.h - common base of icmp_error and icmp6_error, which turn dropped packets into ICMP
// errors to their senders.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/module/module.h"
#include "modules/headers/shared_reasons.h"
#include "modules/icmp/icmp_rate.h"
#include "modules/route/route_commands.h"

namespace batchplane {

// `Kind`, the derived module, provides is_due(pkt, error), source_of(pkt) (all zero: no source),
// write(pkt, error, source, mtu_bytes), kErrors, needs_mtu(error) and kMinMtuBytes.
template <class Family, class Kind>
class ErrorModule : public Module {
 public:
  explicit ErrorModule(const Args& args)
      : interfaces_(args.env().interfaces),
        routes_(args.string("table").empty()
                    ? nullptr
                    : shared_route_table<Family>(args.env(), args.string("table"))),
        mtu_bytes_(args.u32("mtu_bytes")),
        kinds_(icmp::kinds_of(Kind::kErrors)),
        budget_(args) {}

  void process(Context& ctx, Batch& batch) noexcept {
    auto& kind = static_cast<Kind&>(*this);
    budget_.refill(ctx.now_ns);
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const icmp::ErrorKind error = kinds_[pkt.meta().drop_reason % kMaxDropReasons];
      typename Family::Address source{};
      if (error.type != 0 && kind.is_due(pkt, error)) source = kind.source_of(pkt);
      const bool needs_mtu = Kind::needs_mtu(error);
      const uint32_t mtu_bytes = needs_mtu ? mtu_of(pkt) : 0;
      if (Family::is_zero(source) || (needs_mtu && mtu_bytes == 0)) {
        ctx.drop(batch, i, reason::kIcmpNotDue);
        continue;
      }
      if (!budget_.take()) {
        ctx.drop(batch, i, reason::kIcmpRateLimited);
        continue;
      }
      kind.write(pkt, error, source, mtu_bytes);
    }
  }

  static std::vector<ParamSpec> params(const char* needs_table) {
    return {
        {.name = "table",
         .type = ParamType::kString,
         .default_value = "",
         .help = std::string("the route table of the lookup in front; needed for ") + needs_table +
                 ", unless mtu_bytes is given"},
        {.name = "mtu_bytes",
         .type = ParamType::kInt,
         .unit = "bytes",
         .default_value = 0,
         .help = "the longest packet that the sender is told of, as in front of a tunnel; 0: the "
                 "MTU of the next hop's interface",
         .min = 0,
         .max = 65535},
        icmp::errors_per_s_spec(),
        icmp::burst_spec()};
  }

 protected:
  // Turns the packet into the quotation of the error, with `front_bytes` in front for new headers.
  static void quote(Packet& pkt, uint32_t front_bytes, uint32_t ip_bytes, uint32_t quoted_bytes) {
    PacketMeta& meta = pkt.meta();
    const uint32_t l3 = meta.l3_offset_bytes;
    if (l3 < front_bytes) {
      pkt.push_front(front_bytes - l3);
    } else {
      pkt.pull_front(l3 - front_bytes);
    }
    pkt.set_len_bytes(front_bytes + quoted_bytes);
    meta.l3_offset_bytes = net::kEthBytes;
    meta.l4_offset_bytes = static_cast<uint8_t>(net::kEthBytes + ip_bytes);
    meta.flags |= kMetaOriginated;
  }
  [[nodiscard]] const std::vector<Interface>& interfaces() const { return interfaces_; }

 private:
  // The configured MTU, or that of the outgoing interface; 0 when unknown.
  [[nodiscard]] uint32_t mtu_of(Packet& pkt) const noexcept {
    if (mtu_bytes_ != 0) return std::max<uint32_t>(mtu_bytes_, Kind::kMinMtuBytes);
    if (routes_ == nullptr || !routes_->is_built()) return 0;
    const NextHop* hop = routes_->hops().at(pkt.meta().next_hop);
    if (hop == nullptr) return 0;
    const uint16_t interface =
        hop->interface == kArrivalInterface ? pkt.meta().in_interface : hop->interface;
    return interface < interfaces_.size()
               ? std::max<uint32_t>(interfaces_[interface].mtu_bytes, Kind::kMinMtuBytes)
               : 0;
  }

  const std::vector<Interface> interfaces_;
  const std::shared_ptr<RouteTableOf<Family>> routes_;
  const uint32_t mtu_bytes_;
  const icmp::ErrorKinds kinds_;
  icmp::ErrorBudget budget_;
};

}  // namespace batchplane
