// SPDX-License-Identifier: BSD-3-Clause
// policer.cc - colours packets by rate, and drops or marks them by colour.
//
// in: 1   out: 1   drops: policer_green, policer_yellow, policer_red, too_short
// state: token buckets, one pair per meter; rates and actions, editable live
#include "base/error.h"
#include "core/module/live_table.h"
#include "core/module/register.h"
#include "modules/common/tally.h"
#include "modules/headers/flow_key.h"
#include "modules/headers/shared_reasons.h"
#include "modules/policy/policer_config.h"

namespace batchplane {
namespace {

const char* const kRemedy = "raise rate or burst, or give the colour another action";
const DropReason kGreenDropped{"policer_green", "a policer's action for green packets is to drop",
                               kRemedy};
const DropReason kYellowDropped{"policer_yellow",
                                "the packet was beyond the committed rate of a policer", kRemedy};
const DropReason kRedDropped{"policer_red", "the packet was beyond the rates of a policer",
                             kRemedy};

enum class Per : uint8_t { kModule, kMark, kVrf, kFlow };

Per per_of(const std::string& name) {
  if (name == "module") return Per::kModule;
  if (name == "mark") return Per::kMark;
  return name == "vrf" ? Per::kVrf : Per::kFlow;
}

class Policer final : public Module {
 public:
  explicit Policer(const Args& args)
      : per_(per_of(args.string("per"))),
        is_two_rate_(args.string("mode") == "trtcm"),
        n_meters_(per_ == Per::kModule ? 1 : args.u32("meters")),
        live_params_(live_params_of(args)),
        live_(std::make_unique<PolicerConfig>(
                  make_policer_config(is_two_rate_, live_params_, args.where() + ".")),
              std::make_unique<PolicerConfig>(), args.env().quiescence),
        meters_(std::make_unique<ColourMeters>(n_meters_, live_.current().profile)) {}

  void process(Context& ctx, Batch& batch) noexcept {
    const PolicerConfig& config = live_.read();
    const uint32_t n = batch.size_pkts;
    if (n == 0) __builtin_unreachable();  // otherwise g++ warns about uninitialised colours
    uint32_t meters[exec::kMaxBatchPkts];
    uint32_t bytes[exec::kMaxBatchPkts];
    uint8_t colours[exec::kMaxBatchPkts];
    uint32_t shortest = ~0U;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = l3_offset_of(pkt);
      const uint32_t len_bytes = pkt.len_bytes();
      shortest = std::min(shortest, len_bytes);
      bytes[i] = (len_bytes > l3 ? len_bytes - l3 : 0) + config.overhead_bytes;
      colours[i] = kGreen;
      meters[i] = 0;
    }
    if (shortest < net::kEthBytes) [[unlikely]] {
      drop_short(ctx, batch);
      return;
    }
    if (per_ != Per::kModule) choose_meters(batch, meters);
    if (config.is_aware) read_colours(config, batch, colours);
    meters_->mark(config.profile, ctx.now_ns, meters, bytes, colours, n);
    uint64_t pkts_of[kColours] = {};
    uint64_t bytes_of[kColours] = {};
    for (uint32_t i = 0; i < n; ++i) {
      pkts_of[colours[i]] += 1;
      bytes_of[colours[i]] += bytes[i];
    }
    for (uint32_t colour = 0; colour < kColours; ++colour) {
      pkts_[colour].add(pkts_of[colour]);
      bytes_[colour].add(bytes_of[colour]);
    }
    if (config.has_actions) act(config, ctx, batch, colours, pkts_of);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb != "set") return Module::command(verb, args);
    if (!args.is_dict()) throw ConfigError("expected a mapping", "set", "such as {cir_bps: 8000}");
    Dict given = live_params_;
    for (const auto& [key, value] : args.as_dict()) given[key] = value;
    std::vector<ConfigError> errors;
    const Args checked(live_policer_params(), given, "set", errors);
    if (!errors.empty()) throw ConfigError(errors.front());
    const Dict next = live_params_of(checked);
    const PolicerConfig config = make_policer_config(is_two_rate_, next, "set.");
    live_.edit([&](PolicerConfig& to) { to = config; });
    live_params_ = next;
    return show();
  }

  [[nodiscard]] Value show() const override {
    static constexpr const char* kNames[] = {"green", "yellow", "red"};
    Dict shown{{"meters", n_meters_}};
    for (uint32_t colour = 0; colour < kColours; ++colour) {
      shown[std::string(kNames[colour]) + "_pkts"] = pkts_[colour].value();
      shown[std::string(kNames[colour]) + "_bytes"] = bytes_[colour].value();
    }
    return shown;
  }

  [[nodiscard]] Dict saved_params() const override { return live_params_; }

  // If the kind and the number of meters are unchanged, the buckets keep their levels: changing the
  // rates does not refill them.
  void adopt(Module& old) noexcept override {
    auto& other = static_cast<Policer&>(old);
    for (uint32_t colour = 0; colour < kColours; ++colour) {
      pkts_[colour].set(other.pkts_[colour].value());
      bytes_[colour].set(other.bytes_[colour].value());
    }
    const bool is_same =
        per_ == other.per_ && is_two_rate_ == other.is_two_rate_ && n_meters_ == other.n_meters_;
    if (is_same) meters_.swap(other.meters_);
  }

 private:
  static Dict live_params_of(const Args& args) {
    Dict params;
    for (const ParamSpec& spec : live_policer_params()) params[spec.name] = args.at(spec.name);
    return params;
  }

  void choose_meters(Batch& batch, uint32_t* meters) const noexcept {
    const uint32_t n = batch.size_pkts;
    const uint64_t n_meters = n_meters_;
    if (per_ == Per::kMark) {
      for (uint32_t i = 0; i < n; ++i) meters[i] = batch[i]->mark() % n_meters_;
    } else if (per_ == Per::kVrf) {
      for (uint32_t i = 0; i < n; ++i) meters[i] = batch[i]->meta().vrf % n_meters_;
    } else {
      for (uint32_t i = 0; i < n; ++i) {
        const uint64_t hash = hash_any_flow(*batch[i]) >> 32;
        meters[i] = static_cast<uint32_t>(hash * n_meters >> 32);
      }
    }
  }

  // Hashes IPv6 by addresses, protocol and, for TCP and UDP, ports; everything else as hash_flow
  // does.
  static uint64_t hash_any_flow(Packet& pkt) noexcept {
    if (ip_kind_of(pkt) != IpKind::kIpv6) return hash_flow(pkt, 0);
    const uint32_t l3 = l3_offset_of(pkt);
    const auto& ip = header_in<net::Ipv6>(pkt, l3);
    const bool has_ports = (ip.next_header == net::kProtoTcp || ip.next_header == net::kProtoUdp) &&
                           pkt.len_bytes() >= l3 + net::kIpv6Bytes + sizeof(net::Ports);
    const uint64_t ports = has_ports ? behind<net::Ports>(ip).raw() : 0;
    const uint64_t src =
        mix_words(ip.src.high_raw(), ip.src.low_raw(), ports << 8 | ip.next_header);
    return mix_words(ip.dst.high_raw(), ip.dst.low_raw(), src);
  }

  static void read_colours(const PolicerConfig& config, Batch& batch, uint8_t* colours) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const IpKind kind = ip_kind_of(pkt);
      if (kind != IpKind::kIpv4 && kind != IpKind::kIpv6) continue;
      colours[i] = config.colour_of_dscp[dscp_of(pkt.data() + l3_offset_of(pkt), kind)];
    }
  }

  static void act(const PolicerConfig& config, Context& ctx, Batch& batch, const uint8_t* colours,
                  const uint64_t* pkts_of) noexcept {
    static constexpr const DropReason* kReasons[] = {&kGreenDropped, &kYellowDropped, &kRedDropped};
    uint64_t n_touched = 0;
    for (uint32_t colour = 0; colour < kColours; ++colour) {
      if (config.actions[colour].kind != ColourAction::Kind::kPermit) n_touched += pkts_of[colour];
    }
    if (n_touched == 0) return;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      const ColourAction action = config.actions[colours[i]];
      if (action.kind == ColourAction::Kind::kDrop) {
        ctx.drop(batch, i, *kReasons[colours[i]]);
      } else if (action.kind == ColourAction::Kind::kSetDscp) {
        Packet& pkt = *batch[i];
        const IpKind kind = ip_kind_of(pkt);
        if (kind != IpKind::kIpv4 && kind != IpKind::kIpv6) continue;
        set_dscp(pkt.data() + l3_offset_of(pkt), kind, action.dscp);
      }
    }
  }

  // Drops packets shorter than an Ethernet header and processes the rest again.
  void drop_short(Context& ctx, Batch& batch) noexcept {
    Packet* whole[exec::kMaxBatchPkts];
    uint32_t where[exec::kMaxBatchPkts];
    uint32_t n_whole = 0;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      if (batch[i]->len_bytes() < net::kEthBytes) {
        ctx.drop(batch, i, reason::kTooShort);
      } else {
        where[n_whole] = i;
        whole[n_whole++] = batch[i];
      }
    }
    if (n_whole == 0) return;
    Batch rest{whole, n_whole, batch.entry_bound_ns};
    process(ctx, rest);
    for (uint32_t i = 0; i < n_whole; ++i) batch[where[i]] = whole[i];
  }

  const Per per_;
  const bool is_two_rate_;
  const uint32_t n_meters_;
  Dict live_params_;
  LiveTable<PolicerConfig> live_;
  std::unique_ptr<ColourMeters> meters_;  // worker
  Tally pkts_[kColours];
  Tally bytes_[kColours];
};

std::vector<ParamSpec> policer_params() {
  std::vector<ParamSpec> params = {
      {.name = "mode",
       .type = ParamType::kString,
       .default_value = "srtcm",
       .help = "single-rate (RFC 2697) or two-rate (RFC 2698) three-colour marker",
       .choices = {"srtcm", "trtcm"}},
      {.name = "per",
       .type = ParamType::kString,
       .default_value = "module",
       .help = "what has a meter of its own: all packets together, each mark, VRF or flow",
       .choices = {"module", "mark", "vrf", "flow"}},
      {.name = "meters",
       .type = ParamType::kInt,
       .default_value = 1024,
       .help = "meters there are; marks and VRFs beyond, and flows of one hash, share",
       .min = 1,
       .max = 1 << 22}};
  const auto& live = live_policer_params();
  params.insert(params.end(), live.begin(), live.end());
  return params;
}

const Register<Policer> kPolicer{{
    .kind = "policer",
    .state = StateOf::kOneOwner,
    .help = "Colours packets green, yellow or red by the rate at which they come, and acts by it.",
    .params = policer_params(),
    .drops = {&kGreenDropped, &kYellowDropped, &kRedDropped, &reason::kTooShort},
    .notes = "Bytes are those of the IP packet and overhead_bytes. Buckets start full. Only IP "
             "packets get a DSCP. Live command: set {cir_bps, cbs_bytes, .., red_action}, any of "
             "them; mode, per and meters stay.",
}};

}  // namespace
}  // namespace batchplane
