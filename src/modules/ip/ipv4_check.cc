// SPDX-License-Identifier: BSD-3-Clause
// ipv4_check.cc - passes only well-formed IPv4 packets and records their header offsets.
//
// in: 1   out: 1   drops: one per kind of fault   state: none
#include "core/module/register.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

constexpr uint32_t kGroups = 224;  // first octet of multicast; above it reserved and broadcast

const DropReason kGroupDestination{"group_destination",
                                   "the packet is for a multicast, reserved or broadcast address",
                                   "look at the sender; only single hosts are reached from here"};

// RFC 7126, 4.3 and 4.4: source routes bypass address-based filters.
const DropReason kSourceRoute{"source_route",
                              "an IPv4 option (LSRR, SSRR) says which way the packet is to take",
                              "look at the sender; no common program needs such options"};
const DropReason kBadOption{"bad_option", "the length of an IPv4 option makes no sense",
                            "look at the sender: the packet is malformed"};
constexpr uint8_t kEndOfOptions = 0;
constexpr uint8_t kNoOperation = 1;
constexpr uint8_t kLooseSourceRoute = 131;
constexpr uint8_t kStrictSourceRoute = 137;

// A nonsensical option length could hide a source route behind it, so it is a fault.
const DropReason* option_fault(const net::Ipv4& ip, uint32_t header_bytes) {
  const uint8_t* const bytes = bytes_of(ip);
  for (uint32_t at = net::kIpv4Bytes; at < header_bytes;) {
    const uint8_t type = bytes[at];
    if (type == kEndOfOptions) return nullptr;
    if (type == kLooseSourceRoute || type == kStrictSourceRoute) return &kSourceRoute;
    if (type == kNoOperation) {
      ++at;
      continue;
    }
    const uint32_t left_bytes = header_bytes - at;
    if (left_bytes < 2 || bytes[at + 1] < 2 || bytes[at + 1] > left_bytes) return &kBadOption;
    at += bytes[at + 1];
  }
  return nullptr;
}

class Ipv4Check final : public Module {
 public:
  explicit Ipv4Check(const Args& args)
      : l3_offset_bytes_(static_cast<uint8_t>(args.u32("l3_offset_bytes"))),
        is_checksum_checked_(args.flag("check_checksum")),
        drops_martians_(args.flag("drop_martians")),
        min_group_octet_(args.flag("drop_groups") ? kGroups : 256) {}

  void process(Context& ctx, Batch& batch) noexcept {
    // Packet stores may alias anything, so members that the loop reads are copied to locals.
    const uint32_t l3 = l3_offset_bytes_;
    const bool is_checksum_checked = is_checksum_checked_;
    const bool drops_martians = drops_martians_;
    const uint32_t min_group_octet = min_group_octet_;
    Packet* const* const pkts = batch.pkts;
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      const uint32_t len_bytes = pkt.len_bytes();
      const auto& ip = header_in<net::Ipv4>(pkt, l3);
      if (len_bytes < l3 + net::kIpv4Bytes) [[unlikely]] {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      PacketMeta& meta = pkt.meta();
      meta.l3_offset_bytes = static_cast<uint8_t>(l3);
      meta.l4_offset_bytes = static_cast<uint8_t>(l3 + ip.header_bytes());
      const bool is_good =
          is_plain_and_good(ip, len_bytes - l3, is_checksum_checked, drops_martians);
      const bool is_for_one = first_octet(ip.dst) < min_group_octet;
      if (!(is_good & is_for_one)) [[unlikely]]
        judge(ctx, batch, i);
    }
  }

 private:
  // The common case, with one branch at the end; judge() examines all other packets.
  static bool is_plain_and_good(const net::Ipv4& ip, uint32_t room_bytes, bool is_checksum_checked,
                                bool drops_martians) {
    const uint32_t total_bytes = ip.total_length;
    const bool is_sum_good = fold16(sum_header20(ip)) == 0xffff;
    const bool is_length_good = (total_bytes >= net::kIpv4Bytes) & (total_bytes <= room_bytes);
    const bool is_from_martian = is_martian_source(first_octet(ip.src));
    const bool is_martian = is_from_martian | is_martian_destination(first_octet(ip.dst));
    return (ip.version_ihl == net::Ipv4::kPlain) & is_length_good &
           (is_sum_good | !is_checksum_checked) & !(is_martian & drops_martians);
  }

  void judge(Context& ctx, Batch& batch, uint32_t i) const {
    const DropReason* reason = fault_of(*batch[i]);
    if (reason != nullptr) ctx.drop(batch, i, *reason);
  }

  [[nodiscard]] const DropReason* fault_of(Packet& pkt) const {
    const auto& ip = header_in<net::Ipv4>(pkt, l3_offset_bytes_);
    const uint32_t room_bytes = pkt.len_bytes() - l3_offset_bytes_;
    const uint32_t header_bytes = ip.header_bytes();
    const uint32_t total_bytes = ip.total_length;
    if (ip.version() != 4) return &reason::kBadVersion;
    if (header_bytes < net::kIpv4Bytes || header_bytes > room_bytes)
      return &reason::kBadHeaderLength;
    if (total_bytes < header_bytes || total_bytes > room_bytes) return &reason::kBadTotalLength;
    const uint64_t sum = add_with_carry(sum_header20(ip), sum_options(ip, header_bytes));
    if (is_checksum_checked_ && fold16(sum) != 0xffff) return &reason::kBadIpv4Checksum;
    if (const DropReason* fault = option_fault(ip, header_bytes)) return fault;
    if (first_octet(ip.dst) >= min_group_octet_) return &kGroupDestination;
    if (!drops_martians_) return nullptr;
    if (is_martian_source(first_octet(ip.src))) return &reason::kMartianSource;
    if (is_martian_destination(first_octet(ip.dst))) return &reason::kMartianDestination;
    return nullptr;
  }

  static uint8_t first_octet(const net::Be32& address) { return address.raw() & 0xff; }
  // 224 and above: multicast, reserved and the limited broadcast.
  static bool is_martian_source(uint8_t octet) {
    return is_martian_destination(octet) | (octet >= kGroups);
  }
  static bool is_martian_destination(uint8_t octet) { return (octet == 0) | (octet == 127); }

  const uint8_t l3_offset_bytes_;
  const bool is_checksum_checked_;
  const bool drops_martians_;
  const uint32_t min_group_octet_;  // 256: multicast passes
};

const Register<Ipv4Check> kIpv4Check{{
    .kind = "ipv4_check",
    .state = StateOf::kNone,
    .help = "Drops malformed IPv4 packets and notes where the headers of the others lie.",
    .params = {{.name = "l3_offset_bytes",
                .type = ParamType::kInt,
                .unit = "bytes",
                .default_value = static_cast<int>(net::kEthBytes),
                .help = "where the IPv4 header starts",
                .min = 0,
                .max = 195},
               {.name = "check_checksum",
                .type = ParamType::kBool,
                .default_value = true,
                .help = "drop packets whose header checksum is wrong"},
               {.name = "drop_martians",
                .type = ParamType::kBool,
                .default_value = true,
                .help = "drop packets from or to addresses that no router may forward"},
               {.name = "drop_groups",
                .type = ParamType::kBool,
                .default_value = false,
                .help = "drop packets to 224.0.0.0 and above: multicast, reserved, broadcast"}},
    .drops = {&reason::kTooShort, &reason::kBadVersion, &reason::kBadHeaderLength,
              &reason::kBadTotalLength, &reason::kBadIpv4Checksum, &reason::kMartianSource,
              &reason::kMartianDestination, &kGroupDestination, &kSourceRoute, &kBadOption},
    .notes =
        "Bytes behind the total length (Ethernet padding) stay in the frame. Options are allowed, "
        "but for source routes (LSRR, SSRR).",
}};

}  // namespace
}  // namespace batchplane
