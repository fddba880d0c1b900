// SPDX-License-Identifier: BSD-3-Clause
// vxlan_decap.cc - decapsulates frames from VXLAN tunnels and sends them to gates by VNI.
//
// in: 1   out: up to 4096 gates   state: the VNIs, editable live
// drops: unknown_vni, unknown_remote, not_vxlan, bad_vxlan, bad_l4_checksum, ecn_mismatch,
// too_short, bad_header_length, bad_total_length
#include "core/module/register.h"
#include "modules/common/item_book.h"
#include "modules/common/rule_table.h"
#include "modules/headers/frame_reasons.h"
#include "modules/headers/l4_header.h"
#include "modules/headers/tunnel_ecn.h"
#include "modules/headers/vlan_header.h"
#include "modules/headers/vxlan_header.h"

namespace batchplane {
namespace {

const DropReason kUnknownVni{"unknown_vni", "no entry has the packet's VXLAN network identifier",
                             "add the VNI, or look for the peer that sends it"};
const DropReason kNotVxlan{"not_vxlan", "the packet is no VXLAN over UDP and IPv4",
                           "connect other_gate to what should get the other packets"};
const DropReason kBadVxlan{"bad_vxlan", "the VXLAN header or the frame in it is broken",
                           "look at the peer that sends such packets"};
struct Vni {
  uint32_t gate = 0;
  uint32_t tunnel_id = 0;
  int32_t vrf = -1;
  uint32_t remote = 0;  // 0: any
};
struct VniTable {
  FlatTable<1> index;
  std::vector<Vni> vnis;
};

Vni parse(const Value& item, const std::string& where, uint32_t n_gates) {
  check_keys(item, {"vni", "gate", "tunnel_id", "vrf", "remote"}, where);
  const auto remote =
      item["remote"].is_string() ? net::parse_ipv4(item["remote"].as_string()) : std::nullopt;
  if (item.has("remote") && !remote.has_value()) {
    throw ConfigError("expected an IPv4 address", where + ".remote", "such as 192.0.2.2");
  }
  const int64_t vni = item["vni"].as_int();
  return {static_cast<uint32_t>(int_under(item, "gate", 0, int64_t{n_gates} - 1, 0, where)),
          static_cast<uint32_t>(int_under(item, "tunnel_id", 0, 0xffffffff, vni, where)),
          static_cast<int32_t>(int_under(item, "vrf", 0, 0xffff, -1, where)), remote.value_or(0)};
}
Dict format(const Vni& vni) {
  Dict item{{"gate", vni.gate}, {"tunnel_id", vni.tunnel_id}};
  if (vni.vrf >= 0) item["vrf"] = vni.vrf;
  if (vni.remote != 0) item["remote"] = net::format_ipv4(vni.remote);
  return item;
}

class VxlanDecap final : public Module {
 public:
  explicit VxlanDecap(const Args& args)
      : port_(static_cast<uint16_t>(args.u32("udp_port"))),
        verifies_sum_(args.flag("verify_udp_checksum")),
        other_gate_(args.integer("other_gate") < 0 ? kNoDefaultGate : args.u32("other_gate")),
        book_({.list_name = "vnis",
               .id_name = "vni",
               .max_id = vxlan::kMaxVni,
               .max_items = kMaxRules,
               .parse = parse,
               .format = format}),
        live_(std::make_unique<VniTable>(), std::make_unique<VniTable>(), args.env().quiescence) {
    book_.load(args.list("vnis"), args.where(), kMaxRuleGates);
    apply();
  }

  uint32_t link(uint32_t connected) override {
    uint32_t highest = 0;
    for (const auto& [id, vni] : book_.items()) highest = std::max(highest, vni.gate);
    return n_gates_ = gates_for(connected, highest, other_gate_);
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    const VniTable& table = live_.read();
    Packet* const* const pkts = batch.pkts;
    const uint32_t n = batch.size_pkts;
    uint64_t last_vni = ~0ULL;
    const Vni* vni = nullptr;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      const uint32_t l3 = l3_offset_of(pkt);
      ctx.gates[i] = 0;
      if (pkt.len_bytes() < l3) [[unlikely]] {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      const uint8_t* const header = pkt.data() + l3;
      l4::Place place = l4::find_plain(header, pkt.len_bytes() - l3);
      if (place.proto != net::kProtoUdp) [[unlikely]]
        place = l4::find(header, pkt.len_bytes() - l3);
      const auto& ip = header_at<net::Ipv4>(header);
      const auto& udp = header_at<net::Udp>(header + place.offset_bytes);
      if (place.find != l4::Find::kWhole || place.proto != net::kProtoUdp || place.is_v6 ||
          place.len_bytes < net::kUdpBytes || udp.dst_port != port_) [[unlikely]] {
        pass_or_drop(ctx, batch, i, place.find);
        continue;
      }
      if (const DropReason* reason = fault_of(header, place, udp); reason != nullptr) [[unlikely]] {
        ctx.drop(batch, i, *reason);
        continue;
      }
      const uint64_t key = behind<net::Vxlan>(udp).vni_word >> net::Vxlan::kVniShift;
      if (key != last_vni) {
        const uint32_t found = table.index.find({key});
        vni = found == FlatTable<1>::kMissing ? nullptr : &table.vnis[found];
        last_vni = key;
      }
      if (vni == nullptr) [[unlikely]] {
        ctx.drop(batch, i, kUnknownVni);
        continue;
      }
      if (vni->remote != 0 && vni->remote != ip.src) [[unlikely]] {
        ctx.drop(batch, i, frame::kUnknownRemote);
        continue;
      }
      const uint32_t inner_bytes = udp.length - kOwnBytes;
      const uint32_t ecn = ip.tos & vxlan::kEcnMask;
      unwrap(pkt, l3 + place.offset_bytes + kOwnBytes, inner_bytes);
      note(pkt.meta(), *vni);
      ctx.gates[i] = static_cast<GateIndex>(vni->gate);
      if (ecn != 0 && !carry_ecn(pkt, ecn)) [[unlikely]]
        ctx.drop(batch, i, kEcnMismatch);
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return Dict{{"vnis", book_.list()}};
    if (verb != "add" && verb != "delete" && verb != "replace") return Module::command(verb, args);
    book_.edit(verb, args, n_gates_);
    apply();
    return show();
  }
  [[nodiscard]] Value show() const override {
    const VniTable& table = live_.current();
    return Dict{{"vnis", static_cast<int64_t>(book_.items().size())},
                {"table_bytes",
                 static_cast<int64_t>(table.index.size_bytes() + table.vnis.size() * sizeof(Vni))}};
  }
  [[nodiscard]] Dict saved_params() const override { return {{"vnis", book_.list()}}; }

 private:
  static constexpr uint32_t kOwnBytes = net::kUdpBytes + sizeof(net::Vxlan);

  // Returns the drop reason of a broken VXLAN packet, or nullptr.
  [[nodiscard]] const DropReason* fault_of(const uint8_t* ip, const l4::Place& place,
                                           const net::Udp& udp) const noexcept {
    const uint32_t udp_bytes = udp.length;
    if (udp_bytes < kOwnBytes + net::kEthBytes || udp_bytes > place.len_bytes) return &kBadVxlan;
    if ((behind<net::Vxlan>(udp).flags & net::Vxlan::kHasVni) == 0) return &kBadVxlan;
    if (udp.checksum == 0 || !verifies_sum_) return nullptr;
    const uint64_t sum =
        l4::sum_bytes(bytes_of(udp), udp_bytes) + l4::sum_pseudo_header(ip, place, udp_bytes);
    return fold16(sum) == 0xffff ? nullptr : &l4::kBadL4Checksum;
  }

  void pass_or_drop(Context& ctx, Batch& batch, uint32_t i, l4::Find find) const noexcept {
    const bool is_broken = find != l4::Find::kBadVersion && l4::fault_of(find) != nullptr;
    if (is_broken) return ctx.drop(batch, i, *l4::fault_of(find));
    if (other_gate_ == kNoDefaultGate) return ctx.drop(batch, i, kNotVxlan);
    ctx.gates[i] = static_cast<GateIndex>(other_gate_);
  }

  static void unwrap(Packet& pkt, uint32_t outer_bytes, uint32_t inner_bytes) noexcept {
    pkt.pull_front(outer_bytes);
    pkt.set_len_bytes(inner_bytes);
    const uint8_t* const data = pkt.data();
    uint32_t l3 = net::kEthBytes;
    if (vlan::is_tag(header_at<net::Ethernet>(data).type)) [[unlikely]] {
      const uint32_t n_tags = vlan::count_tags(data, inner_bytes, vlan::kMaxTags).n;
      l3 += std::min(n_tags, vlan::kMaxTags) * vlan::kTagBytes;
    }
    pkt.meta().l3_offset_bytes = static_cast<uint8_t>(l3);
    pkt.meta().l4_offset_bytes = 0;
  }

  static void note(PacketMeta& meta, const Vni& vni) noexcept {
    meta.tunnel_id = vni.tunnel_id;
    if (vni.vrf >= 0) meta.vrf = static_cast<uint16_t>(vni.vrf);
  }

  void apply() {
    auto next = std::make_unique<VniTable>();
    for (const auto& [id, vni] : book_.items()) {
      next->index.insert_or_assign({id}, static_cast<uint32_t>(next->vnis.size()));
      next->vnis.push_back(vni);
    }
    auto spare = std::make_unique<VniTable>(*next);
    live_.replace(std::move(next), std::move(spare));
  }

  const uint16_t port_;
  const bool verifies_sum_;
  const uint32_t other_gate_;
  ItemBook<Vni> book_;
  LiveTable<VniTable> live_;
  uint32_t n_gates_ = 1;  // number of linked gates; the limit for live entries
};

const Register<VxlanDecap> kVxlanDecap{{
    .kind = "vxlan_decap",
    .state = StateOf::kShared,
    .help = "Takes frames out of VXLAN tunnels and sends them on by their VNI.",
    .params =
        {{.name = "vnis",
          .type = ParamType::kList,
          .default_value = List{},
          .help =
              "[{vni, gate: 0, tunnel_id, vrf, remote}], at most 65536; the tunnel noted is the "
              "VNI unless tunnel_id says else, the VRF is noted where one is given; with remote, "
              "packets from other addresses are dropped"},
         {.name = "udp_port",
          .type = ParamType::kInt,
          .default_value = net::Vxlan::kPort,
          .help = "destination port of tunnelled packets",
          .min = 1,
          .max = 65535},
         {.name = "verify_udp_checksum",
          .type = ParamType::kBool,
          .default_value = true,
          .help = "drop packets whose outer UDP checksum is there and wrong"},
         {.name = "other_gate",
          .type = ParamType::kInt,
          .default_value = -1,
          .help = "gate of packets that are no VXLAN, which stay as they are; -1 drops them",
          .min = -1,
          .max = kMaxRuleGates - 1}},
    .drops = {&kUnknownVni, &frame::kUnknownRemote, &kNotVxlan, &kBadVxlan, &l4::kBadL4Checksum,
              &kEcnMismatch, &reason::kTooShort, &reason::kBadHeaderLength,
              &reason::kBadTotalLength},
    .notes =
        "Put it behind the gate `local` of a lookup. Fragments of tunnelled packets are not "
        "put together: they count as other packets. Live commands: add {vni, gate, "
        "tunnel_id, vrf, remote} (changes an entry that is there), delete {vni}, replace {vnis}, "
        "list; add and delete take {items: [...]} for many.",
}};

}  // namespace
}  // namespace batchplane
