// SPDX-License-Identifier: BSD-3-Clause
// static_nat.cc - translates address prefixes one to one and updates every checksum that covers
// them.
//
// in: 1   out: 1   drops: too_short, bad_version, bad_header_length, bad_total_length
// state: the pairs, editable live
#include <algorithm>

#include "core/module/live_table.h"
#include "core/module/register.h"
#include "modules/nat/nat_reasons.h"
#include "modules/nat/nat_rewrite.h"
#include "modules/nat/static_nat_rules.h"

namespace batchplane {
namespace {

using nat::Change;
using nat::Direction;
using nat::End;
using nat::PacketView;
using nat::StaticPair;
using nat::StaticRules;

// Slow path: everything but unfragmented TCP and UDP packets without options.
const DropReason* translate_slowly(const StaticRules& rules, net::Ipv4& ip,
                                   uint32_t room_bytes) noexcept {
  PacketView view;
  const nat::Fault fault = view_packet(ip, room_bytes, view);
  if (fault != nat::Fault::kNone) return &nat::reason_of(fault);
  const bool is_later = ip.is_later_fragment();
  const uint32_t checksum_at = nat::checksum_offset(view.proto);
  // A first fragment that ends before the checksum cannot be translated correctly.
  if (!is_later && checksum_at != 0 && !view.has_bytes(checksum_at + nat::kChecksumBytes))
    return &reason::kTooShort;
  PacketView quote;
  const bool has_quote = view.proto == net::kProtoIcmp && !is_later &&
                         nat::is_icmp_error(view.icmp().type) && view_quote(view, quote);
  if (const uint32_t flip = rules.source.of(view.src()).flip; flip != 0)
    rewrite_end(view, End::kSrc, view.src() ^ flip, false, 0);
  if (const uint32_t flip = rules.destination.of(view.dst()).flip; flip != 0)
    rewrite_end(view, End::kDst, view.dst() ^ flip, false, 0);
  if (!has_quote) return nullptr;
  // The quoted packet travelled in the opposite direction, so the inside host's address is its
  // destination.
  if (const uint32_t flip = rules.source.of(quote.dst()).flip; flip != 0)
    rewrite_quote(view, quote, End::kDst, quote.dst() ^ flip, false, 0);
  if (const uint32_t flip = rules.destination.of(quote.src()).flip; flip != 0)
    rewrite_quote(view, quote, End::kSrc, quote.src() ^ flip, false, 0);
  return nullptr;
}

class StaticNat final : public Module {
 public:
  explicit StaticNat(const Args& args)
      : otherwise_(nat::parse_direction(args.string("direction"))),
        pairs_(nat::parse_pairs(args.list("pairs"), otherwise_, args.where() + ".pairs")),
        live_(checked(pairs_, args.where() + ".pairs"), std::make_unique<StaticRules>(pairs_),
              args.env().quiescence) {}

  void process(Context& ctx, Batch& batch) noexcept {
    const StaticRules& rules = live_.read();
    const Change none;
    const auto unchanged = [none](uint32_t) { return none; };
    if (rules.n_source == 1 && rules.n_destination == 0) {
      const auto change = [rule = rules.only](uint32_t src) { return rule.of(src); };
      process_with(ctx, batch, rules, change, unchanged);
    } else if (rules.n_source == 0 && rules.n_destination == 1) {
      const auto change = [rule = rules.only](uint32_t dst) { return rule.of(dst); };
      process_with(ctx, batch, rules, unchanged, change);
    } else {
      process_with(
          ctx, batch, rules, [&](uint32_t src) { return rules.source.of(src); },
          [&](uint32_t dst) { return rules.destination.of(dst); });
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return Dict{{"pairs", list()}};
    if (verb != "add" && verb != "delete" && verb != "replace") return Module::command(verb, args);
    std::vector<StaticPair> given = nat::parse_pairs(items_of(args), otherwise_, verb);
    std::vector<StaticPair> next = verb == "replace" ? std::vector<StaticPair>{} : pairs_;
    for (size_t i = 0; i < given.size(); ++i) {
      const auto same = std::ranges::find_if(next, [&](const StaticPair& pair) {
        return pair.inside == given[i].inside && pair.outside == given[i].outside;
      });
      if (verb == "delete") {
        if (same == next.end()) {
          throw ConfigError("there is no such pair", "delete[" + std::to_string(i) + "]",
                            "the command list shows what there is");
        }
        next.erase(same);
      } else if (same != next.end() && verb == "add") {
        *same = given[i];
      } else {
        next.push_back(given[i]);
      }
    }
    auto rules = checked(next, verb);
    auto spare = std::make_unique<StaticRules>(*rules);
    live_.replace(std::move(rules), std::move(spare));
    pairs_ = std::move(next);
    return show();
  }

  [[nodiscard]] Value show() const override {
    return Dict{{"pairs", static_cast<int64_t>(pairs_.size())}};
  }
  [[nodiscard]] Dict saved_params() const override { return {{"pairs", list()}}; }

 private:
  template <class ChangeSrc, class ChangeDst>
  static void process_with(Context& ctx, Batch& batch, const StaticRules& rules,
                           ChangeSrc change_src, ChangeDst change_dst) noexcept {
    Packet* const* const pkts = batch.pkts;
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      const uint32_t l3 = l3_offset_of(pkt);
      auto& ip = header_in<net::Ipv4>(pkt, l3);
      const uint32_t sum_at = nat::plain_checksum_at(ip, pkt.len_bytes(), l3);
      if (sum_at == 0) [[unlikely]] {
        take_care(ctx, batch, i, rules);
        continue;
      }
      const uint64_t ends = ip.addresses_raw();
      const Change src = change_src(static_cast<uint32_t>(ends));
      const Change dst = change_dst(static_cast<uint32_t>(ends >> 32));
      if ((src.flip | dst.flip) == 0) continue;
      const uint64_t new_ends = ends ^ (uint64_t{dst.flip} << 32 | src.flip);
      const uint32_t both = src.growth + dst.growth;
      const uint32_t growth = (both & 0xffff) + (both >> 16);
      auto& l4_checksum = behind<net::Be16>(ip, sum_at);
      const uint16_t ip_sum = ip.checksum.raw();
      const uint16_t l4_sum = l4_checksum.raw();
      ip.set_addresses_raw(new_ends);
      ip.checksum.set_raw(mended(ip_sum, growth));
      l4_checksum.set_raw(sum_at == nat::kPlainTcpChecksum ? mended(l4_sum, growth)
                                                           : mended_udp(l4_sum, growth));
    }
  }
  static std::unique_ptr<StaticRules> checked(const std::vector<StaticPair>& pairs,
                                              const std::string& where) {
    nat::check_pairs(pairs, where);
    return std::make_unique<StaticRules>(pairs);
  }
  static List items_of(const Value& args) {
    if (args.is_list()) return args.as_list();
    if (args["items"].is_list()) return args["items"].as_list();
    if (args["pairs"].is_list()) return args["pairs"].as_list();
    return {args};
  }
  [[gnu::noinline]] static void take_care(Context& ctx, Batch& batch, uint32_t i,
                                          const StaticRules& rules) noexcept {
    Packet& pkt = *batch[i];
    const uint32_t l3 = l3_offset_of(pkt);
    const uint32_t room_bytes = pkt.len_bytes() < l3 ? 0 : pkt.len_bytes() - l3;
    const DropReason* reason = translate_slowly(rules, header_in<net::Ipv4>(pkt, l3), room_bytes);
    if (reason != nullptr) ctx.drop(batch, i, *reason);
  }
  [[nodiscard]] List list() const {
    List all;
    for (const StaticPair& pair : pairs_) all.emplace_back(nat::format_pair(pair));
    return all;
  }

  const Direction otherwise_;
  std::vector<StaticPair> pairs_;
  LiveTable<StaticRules> live_;
};

const Register<StaticNat> kStaticNat{{
    .kind = "static_nat",
    .state = StateOf::kShared,
    .help = "Exchanges inside and outside address prefixes one to one; mends all checksums.",
    .params = {{.name = "pairs",
                .type = ParamType::kList,
                .default_value = List{},
                .help = "[{inside: prefix, outside: prefix of the same length, direction}], at "
                        "most 16384"},
               {.name = "direction",
                .type = ParamType::kString,
                .default_value = "source",
                .help = "source: inside sources become outside ones; destination: outside "
                        "destinations become inside ones; both; of pairs that do not say it",
                .choices = {"source", "destination", "both"}}},
    .drops = {&reason::kTooShort, &reason::kBadVersion, &reason::kBadHeaderLength,
              &reason::kBadTotalLength},
    .notes = "Addresses that no pair has stay as they are. ICMP errors are translated with the "
             "packets that they quote. Live commands: add {inside, outside, direction} (changes "
             "the direction of a pair that is there), delete {inside, outside}, replace {pairs}, "
             "list; add and delete take {items: [...]} for many.",
}};

}  // namespace
}  // namespace batchplane
