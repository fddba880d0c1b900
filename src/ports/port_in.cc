// SPDX-License-Identifier: BSD-3-Clause
// port_in.cc - brings packets from a port into the pipeline.
//
// in: 0   out: 1   drops: not_our_mac, unicast_in_group_frame (packets that a port cannot take count in its
// rx_refused_pkts)   state: none
#include "core/module/register.h"
#include "ports/frame_filter.h"

namespace batchplane {
namespace {

class PortIn final : public Module {
 public:
  explicit PortIn(const Args& args) : port_(args.env().port(args.string("port"))) {
    const std::string& interface = args.string("interface");
    if (interface.empty()) return;
    const Interface& found = args.env().interface(interface);
    if (found.port != args.string("port")) {
      throw ConfigError("interface '" + interface + "' is on port '" + found.port + "', not on '" +
                            args.string("port") + "'",
                        args.where(), "name an interface of that port, or leave it out");
    }
    in_interface_ = found.index;
    if (!args.flag("any_mac")) filter_ = ports::FrameFilter(args.env().interfaces, found);
  }

  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    const uint32_t n = port_->rx_burst(pkts, max, ctx.now_ns);
    if (filter_.is_on()) {
      return filter_.all_plain(pkts, n, in_interface_) ? n : refuse(ctx, pkts, n);
    }
    if (in_interface_ == kNoInterface) return n;
    for (uint32_t i = 0; i < n; ++i) pkts[i]->meta().in_interface = in_interface_;
    return n;
  }

  [[nodiscard]] exec::RingCounts ring_counts() const noexcept override {
    return port_->ring_counts();
  }
  void begin_fill_period() noexcept override { port_->begin_fill_period(); }
  [[nodiscard]] bool times_polls() const override { return !port_->is_memory(); }
  [[nodiscard]] exec::ArrivalCounts arrival_counts() const override {
    const PortStats stats = port_->stats();
    return {stats.rx_missed_pkts + stats.rx_refused_pkts, port_->backlog_pkts()};
  }

 private:
  // Drops frames that are not for us; returns the number of the others, kept in order.
  [[gnu::noinline]] uint32_t refuse(Context& ctx, Packet** pkts, uint32_t n) const noexcept {
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const DropReason* const reason = filter_.refusal_of(*pkts[i]);
      if (reason == nullptr) {
        pkts[n_kept++] = pkts[i];
      } else {
        ctx.drop_owned(pkts[i], *reason);
      }
    }
    return n_kept;
  }

  const std::shared_ptr<Port> port_;
  ports::FrameFilter filter_;
  uint16_t in_interface_ = kNoInterface;
};

const Register<PortIn> kPortIn{{
    .kind = "port_in",
    .state = StateOf::kOneOwner,
    .help = "Brings packets from a port into the pipeline.",
    .params = {{.name = "port", .type = ParamType::kPort, .help = "name of the port"},
               {.name = "interface",
                .type = ParamType::kString,
                .default_value = "",
                .help = "interface that the packets come in on; empty = none"},
               {.name = "any_mac",
                .type = ParamType::kBool,
                .default_value = false,
                .help = "take frames for other hosts and groups too, as a bridge does"}},
    .drops = {&ports::kNotOurMac, &ports::kUnicastInGroup},
    .notes = "One port_in per port: a port is polled by one worker. With an interface it takes "
             "frames to the MACs of the port's interfaces, broadcasts, and those to all hosts, all "
             "routers and the solicited-node groups of own IPv6 addresses; the rest is dropped for "
             "not_our_mac. Interfaces without a MAC (recordings) take every frame, and so does a "
             "port_in that names none.",
    .feed = Feed::kPort,
}};

}  // namespace
}  // namespace batchplane
