// SPDX-License-Identifier: BSD-3-Clause
// local_tap.cc - connects the router to the kernel of its host: ssh or a routing daemon runs behind
// this interface.
//
// in: 1 (IPv4 for the router itself)   out: 1 (packets that the kernel sends)
// drops: tap_full, tap_too_long, too_short
// Frames are copied at both ends, so no packet is held and none crosses threads.
#include <algorithm>

#include "core/module/register.h"
#include "modules/headers/arp.h"
#include "modules/headers/shared_reasons.h"
#include "modules/tap/kernel_tap.h"

namespace batchplane {
namespace {

const DropReason kTapFull{"tap_full", "the kernel takes packets more slowly than they come",
                          "look for a flood to the router's own addresses; limit it in front"};
const DropReason kTapTooLong{"tap_too_long", "a packet for the kernel is longer than the TAP's MTU",
                             "raise mtu_bytes of the local_tap, or lower that of the interface"};

KernelTapConfig config_of(const Args& args) {
  KernelTapConfig config{.name = args.string("name"),
                         .mac = *net::parse_mac(args.string("mac")),
                         .mtu_bytes = args.u32("mtu_bytes")};
  if (config.name.empty() || config.name.size() > 15 ||
      config.name.find_first_of("/ %:") != std::string::npos) {
    throw ConfigError("'" + config.name + "' is no name for an interface", args.where() + ".name",
                      "1 to 15 characters, without blank, slash, colon and percent sign");
  }
  if ((config.mac[0] & 1) != 0)
    throw ConfigError("expected a unicast MAC address", args.where() + ".mac");
  if (args.string("address").empty()) return config;
  const auto address = net::parse_interface_address(args.string("address"));
  if (!address) {
    throw ConfigError("'" + args.string("address") + "' is no address with a prefix length",
                      args.where() + ".address", "such as 10.0.0.1/24");
  }
  config.has_address = true;
  config.address = *address;
  return config;
}

class LocalTap final : public Module {
 public:
  explicit LocalTap(const Args& args) : config_(config_of(args)) {
    if (args.env().is_check || args.env().is_offline) return;
    try {
      tap_ = KernelTap::open(config_);
    } catch (const ConfigError& error) {
      throw ConfigError(error.what(), args.where(), error.fix());
    }
  }

  void consume(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = pkt.meta().l3_offset_bytes;
      if (pkt.len_bytes() < l3 + net::kIpv4Bytes) {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      const uint32_t ip_bytes = pkt.len_bytes() - l3;
      if (ip_bytes > config_.mtu_bytes) {
        ctx.drop(batch, i, kTapTooLong);
        continue;
      }
      const uint32_t n_taken = tap_->to_kernel().produce(1, [&](uint32_t, KernelTap::Frame& frame) {
        arp::write_eth(frame.data, config_.mac, KernelTap::peer_mac(), net::kTypeIpv4);
        std::memcpy(frame.data + net::kEthBytes, pkt.data() + l3, ip_bytes);
        frame.len_bytes = net::kEthBytes + ip_bytes;
      });
      if (n_taken == 0) {
        ctx.drop(batch, i, kTapFull);
      } else {
        ctx.free(&pkt);
      }
    }
  }

  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    const uint32_t n = std::min(max, tap_->from_kernel().size());
    if (n == 0 || !ctx.pool->alloc_bulk(pkts, n)) return 0;
    tap_->from_kernel().consume(n, [&](uint32_t i, const KernelTap::Frame& frame) {
      pkts[i]->reset(frame.len_bytes);
      std::memcpy(pkts[i]->data(), frame.data, frame.len_bytes);
      pkts[i]->meta() = PacketMeta{.entry_ns = ctx.now_ns, .in_interface = kNoInterface};
    });
    return n;
  }

  [[nodiscard]] Value show() const override {
    if (tap_ == nullptr) return Dict{};
    const KernelTapStats stats = tap_->stats();
    return Dict{{"interface", config_.name},          {"to_kernel_pkts", stats.to_kernel_pkts},
                {"refused_pkts", stats.refused_pkts}, {"from_kernel_pkts", stats.from_kernel_pkts},
                {"ignored_pkts", stats.ignored_pkts}, {"arp_answers", stats.arp_answers}};
  }

 private:
  const KernelTapConfig config_;
  std::shared_ptr<KernelTap> tap_;
};

const Register<LocalTap> kLocalTap{{
    .kind = "local_tap",
    .state = StateOf::kOneOwner,
    .help = "Joins the router to the kernel by a TAP interface: packets to the host, and from it.",
    .params = {{.name = "name",
                .type = ParamType::kString,
                .default_value = "bp0",
                .help = "of the interface that is made"},
               {.name = "address",
                .type = ParamType::kString,
                .default_value = "",
                .help = "of the kernel's end, such as 10.0.0.1/24: one of the router's own; empty "
                        "= set none"},
               {.name = "mac",
                .type = ParamType::kMac,
                .default_value = "02:00:00:00:fe:01",
                .help = "of the kernel's end"},
               {.name = "mtu_bytes",
                .type = ParamType::kInt,
                .unit = "bytes",
                .default_value = 1500,
                .help = "of the interface",
                .min = 576,
                .max = 2026}},
    .drops = {&kTapFull, &kTapTooLong, &reason::kTooShort},
    .is_egress = true,
    .notes = "Put it behind the gate `other` of icmp_echo; its output goes to an ipv4_lookup. The "
             "kernel's ARP "
             "requests are answered for every address, so `ip route add default dev bp0` sends all "
             "through the "
             "router. Needs CAP_NET_ADMIN.",
    .opens = [](const Dict&) -> std::optional<Opens> {
      return Opens{.what = "a device of the kernel", .stand_in = "queue"};
    },
    .makes_interfaces = true,
}};

}  // namespace
}  // namespace batchplane
