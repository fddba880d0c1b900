// SPDX-License-Identifier: BSD-3-Clause
// rewrite.cc - sets fields anywhere in a packet and updates the checksums that cover them.
//
// in: 1   out: 1   drops: too_short, bad_version, bad_header_length, bad_total_length
// state: the fields, editable live
#include "core/module/live_table.h"
#include "core/module/register.h"
#include "modules/common/item_syntax.h"
#include "modules/common/tally.h"
#include "modules/headers/checksum_patch.h"
#include "modules/headers/l4_header.h"
#include "modules/policy/rewrite_fields.h"

namespace batchplane {
namespace {

using rewrite::Base;
using rewrite::Field;
using rewrite::Program;

// Where the headers of one packet are.
struct Layout {
  uint8_t* data = nullptr;
  uint32_t len_bytes = 0;
  uint32_t l3 = 0;
  bool is_ip = false;
  l4::Place place;
};

// Accumulated changes for the IP header checksum and the transport checksum.
struct Changes {
  uint64_t l3 = 0;
  uint64_t l4 = 0;
};

class Rewrite final : public Module {
 public:
  explicit Rewrite(const Args& args)
      : fields_(args.list("fields")),
        mends_(args.flag("mend_checksums")),
        live_(std::make_unique<Program>(rewrite::parse_fields(fields_, args.where() + ".fields")),
              std::make_unique<Program>(), args.env().quiescence) {}

  void process(Context& ctx, Batch& batch) noexcept {
    const Program& program = live_.read();
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      Layout at{.data = pkt.data(), .len_bytes = pkt.len_bytes(), .l3 = l3_offset_of(pkt)};
      if (const DropReason* reason = read(program, at); reason != nullptr) [[unlikely]] {
        ctx.drop(batch, i, *reason);
        continue;
      }
      if (const DropReason* reason = write(program, at); reason != nullptr) [[unlikely]]
        ctx.drop(batch, i, *reason);
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb != "set") return Module::command(verb, args);
    check_keys(args, {"fields"}, "set");
    if (!args["fields"].is_list()) {
      throw ConfigError("expected {fields: [...]}", "set", "give all fields anew");
    }
    auto next =
        std::make_unique<Program>(rewrite::parse_fields(args["fields"].as_list(), "set.fields"));
    auto spare = std::make_unique<Program>(*next);
    live_.replace(std::move(next), std::move(spare));
    fields_ = args["fields"].as_list();
    return show();
  }
  [[nodiscard]] Value show() const override {
    return Dict{{"fields", fields_}, {"skipped_fragment_pkts", skipped_.value()}};
  }
  [[nodiscard]] Dict saved_params() const override { return {{"fields", fields_}}; }
  void adopt(Module& old) noexcept override {
    skipped_.set(static_cast<const Rewrite&>(old).skipped_.value());
  }

 private:
  // Finds the headers that the fields and their checksums need. A packet with unreadable headers is
  // dropped, unless it is not IP and no field is relative to a transport header.
  const DropReason* read(const Program& program, Layout& at) const noexcept {
    if (!mends_ && !program.needs_l4) return nullptr;
    if (at.len_bytes < at.l3) return &reason::kTooShort;
    if (!program.needs_l4 && at.len_bytes < at.l3 + net::kIpv4Bytes) return nullptr;
    at.place = l4::find_plain(at.data + at.l3, at.len_bytes - at.l3);
    at.is_ip = at.place.find == l4::Find::kWhole;
    if (at.is_ip) [[likely]]
      return nullptr;
    at.place = l4::find(at.data + at.l3, at.len_bytes - at.l3);
    const DropReason* const reason = l4::fault_of(at.place.find);
    at.is_ip = reason == nullptr;
    return program.needs_l4 || at.place.find != l4::Find::kBadVersion ? reason : nullptr;
  }

  // Sets all fields or none: checks that each fits into the packet before anything is written.
  const DropReason* write(const Program& program, const Layout& at) noexcept {
    const uint32_t l4_at = at.l3 + at.place.offset_bytes;
    uint32_t places[rewrite::kMaxFields];
    for (uint32_t f = 0; f < program.n; ++f) {
      const Field& field = program.fields[f];
      const uint32_t base = field.base == Base::kL2 ? 0 : field.base == Base::kL3 ? at.l3 : l4_at;
      const bool is_l4 = field.base == Base::kL4;
      const uint32_t end = is_l4 ? l4_at + at.place.len_bytes : at.len_bytes;
      places[f] = base + field.offset_bytes;
      if (is_l4 && !at.place.has_header) continue;
      if (places[f] + field.size_bytes > end) return &reason::kTooShort;
    }
    Changes changes;
    bool is_skipped = false;
    for (uint32_t f = 0; f < program.n; ++f) {
      const Field& field = program.fields[f];
      if (field.base == Base::kL4 && !at.place.has_header) {
        is_skipped = true;
        continue;
      }
      set_field(field, at, places[f], changes);
    }
    if (is_skipped) skipped_.add(1);
    if ((changes.l3 | changes.l4) != 0) mend(at, changes);
    return nullptr;
  }

  void set_field(const Field& field, const Layout& at, uint32_t place,
                 Changes& changes) const noexcept {
    uint8_t* const p = at.data + place;
    const uint32_t size = field.size_bytes;
    uint64_t before;
    uint64_t after;
    if (place + 8 <= at.len_bytes) [[likely]] {
      // Bytes behind the field are outside its mask and written back unchanged.
      before = load64_raw(p);
      after = (before & ~field.mask) | field.value;
      store_raw(p, after);
    } else {
      before = rewrite::load_bytes(p, size);
      after = (before & ~field.mask) | field.value;
      std::memcpy(p, &after, size);
    }
    if (!mends_ || !at.is_ip || place + size <= at.l3) return;
    note_change(before, after, static_cast<int32_t>(place - at.l3), size, at, changes);
  }

  static void note_change(uint64_t before, uint64_t after, int32_t from_l3, uint32_t size,
                          const Layout& at, Changes& changes) noexcept {
    const auto within = [&](uint32_t from, uint32_t to) {
      return rewrite::bytes_within(from_l3, size, static_cast<int32_t>(from),
                                   static_cast<int32_t>(to));
    };
    const l4::Place& place = at.place;
    const bool is_odd = (from_l3 & 1) != 0;
    const auto l4_from = static_cast<int32_t>(place.offset_bytes);
    uint64_t summed = 0;  // the bytes covered by the transport checksum
    if (from_l3 < l4_from && place.is_v6) {
      summed = within(offsetof(net::Ipv6, src), net::kIpv6Bytes);
    } else if (from_l3 < l4_from) {
      const uint64_t header =
          within(0, place.offset_bytes) &
          ~within(offsetof(net::Ipv4, checksum), offsetof(net::Ipv4, ttl) + sizeof(uint32_t));
      changes.l3 += rewrite::change_of(before, after, header, is_odd);
      if (place.proto != net::kProtoIcmp)
        summed = within(offsetof(net::Ipv4, src), net::kIpv4Bytes);
    }
    if (place.has_header && from_l3 + static_cast<int32_t>(size) > l4_from) {
      uint32_t len_bytes = place.len_bytes;
      if (place.proto == net::kProtoUdp && len_bytes >= net::kUdpBytes) {
        const auto& udp = header_at<net::Udp>(at.data + at.l3 + place.offset_bytes);
        len_bytes = std::min<uint32_t>(len_bytes, udp.length);
      }
      const uint32_t sum_at = place.offset_bytes + l4::checksum_offset(place);
      summed |= within(place.offset_bytes, place.offset_bytes + len_bytes) &
                ~within(sum_at, sum_at + sizeof(net::Be16));
    }
    changes.l4 += rewrite::change_of(before, after, summed, is_odd);
  }

  static void mend(const Layout& at, const Changes& changes) noexcept {
    uint8_t* const ip = at.data + at.l3;
    if (!at.place.is_v6 && changes.l3 != 0) mend_at(header_at<net::Ipv4>(ip).checksum, changes.l3);
    const uint32_t offset = l4::checksum_offset(at.place);
    if (changes.l4 == 0 || offset == 0 || !at.place.has_header ||
        at.place.len_bytes < offset + sizeof(net::Be16)) {
      return;
    }
    auto& checksum = header_at<net::Be16>(ip + at.place.offset_bytes + offset);
    const bool is_udp = at.place.proto == net::kProtoUdp;
    if (is_udp && checksum == 0) return;  // the sender uses no UDP checksum
    mend_at(checksum, changes.l4);
    if (is_udp && checksum == 0) checksum = 0xffff;
  }

  static void mend_at(net::Be16& checksum, uint64_t change) noexcept {
    checksum.set_raw(mended(checksum.raw(), fold16(change)));
  }

  List fields_;
  const bool mends_;
  LiveTable<Program> live_;
  Tally skipped_;
};

const Register<Rewrite> kRewrite{{
    .kind = "rewrite",
    .state = StateOf::kNone,
    .help = "Sets fields anywhere in a packet and mends the checksums that cover them.",
    .params = {{.name = "fields",
                .type = ParamType::kList,
                .help = "[{base: l2, offset, size_bytes: 1..8, mask, value}], at most 16; offset "
                        "in bytes from the start of the Ethernet (l2), network (l3) or transport "
                        "header (l4)"},
               {.name = "mend_checksums",
                .type = ParamType::kBool,
                .default_value = true,
                .help = "account for the changes in the checksums of IPv4, TCP, UDP, ICMP and "
                        "ICMPv6 (RFC 1624)"}},
    .drops = {&reason::kTooShort, &reason::kBadVersion, &reason::kBadHeaderLength,
              &reason::kBadTotalLength},
    .notes = "Values and masks are numbers, \"0x..\" strings, IPv4 addresses (4 bytes) or MACs (6 "
             "bytes); bits outside the mask stay. Later fragments have no transport header: "
             "fields of base l4 are not written there. A UDP checksum of 0 stays. Whoever changes "
             "lengths or protocol numbers puts an l4_checksum behind. Live command: set {fields}, "
             "all of them.",
}};

}  // namespace
}  // namespace batchplane
