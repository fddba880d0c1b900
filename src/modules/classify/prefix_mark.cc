// SPDX-License-Identifier: BSD-3-Clause
// prefix_mark.cc - marks packets by the longest prefix that matches their destination or source,
// such as the subscriber they go to or come from.
//
// in: 1   out: 1   drops: none   state: the prefixes, editable live; counters
#include <array>
#include <memory>

#include "core/module/live_table.h"
#include "core/module/register.h"
#include "modules/classify/bridged_ip.h"
#include "modules/classify/prefix_list.h"
#include "modules/common/item_syntax.h"
#include "modules/common/tally.h"

namespace batchplane {
namespace {

using DscpClasses = std::array<uint32_t, kDscpValues>;

DscpClasses classes_of(const List& items, const std::string& where) {
  DscpClasses classes{};
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string at = where + "[" + std::to_string(i) + "]";
    check_keys(items[i], {"dscp", "add"}, at);
    classes[parse_dscp(items[i]["dscp"], at + ".dscp")] =
        static_cast<uint32_t>(int_value(items[i]["add"], 0, 255, at + ".add"));
  }
  return classes;
}

class PrefixMark final : public Module {
 public:
  explicit PrefixMark(const Args& args)
      : is_by_source_(args.string("by") == "source"),
        other_mark_(args.u32("other_mark")),
        declared_(args.list("prefixes")),
        file_(args.string("prefixes_file")),
        classes_(classes_of(args.list("classes"), args.where() + ".classes")),
        list_(load(args)),
        live_(std::make_unique<PrefixMarks>(marks_of(list_)),
              std::make_unique<PrefixMarks>(marks_of(list_)), args.env().quiescence) {}

  void process(Context& /*ctx*/, Batch& batch) noexcept {
    Found<1> v4;
    Found<2> v6;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) gather(*batch[i], i, v4, v6);
    const PrefixMarks& marks = live_.read();
    marks.v4.find(v4.keys, v4.n, v4.marks);
    marks.v6.find(v6.keys, v6.n, v6.marks);
    settle(batch, v4);
    settle(batch, v6);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return Dict{{"prefixes", prefix_values(list_)}};
    if (verb != "add" && verb != "delete") return Module::command(verb, args);
    const List items = items_under(args, "prefixes");
    if (verb == "add") {
      add(items);
    } else {
      remove(items);
    }
    is_edited_ = true;
    return show();
  }

  [[nodiscard]] Value show() const override {
    return Dict{{"prefixes", static_cast<uint64_t>(list_.size())},
                {"marked_pkts", marked_pkts_.value()},
                {"other_pkts", other_pkts_.value()}};
  }
  [[nodiscard]] Dict saved_params() const override {
    if (!is_edited_) return {{"prefixes", declared_}, {"prefixes_file", file_}};
    return {{"prefixes", prefix_values(list_)}, {"prefixes_file", ""}};
  }
  void adopt(Module& old_module) noexcept override {
    auto& old = static_cast<PrefixMark&>(old_module);
    marked_pkts_.set(old.marked_pkts_.value());
    other_pkts_.set(old.other_pkts_.value());
  }

 private:
  template <uint32_t kWords>
  struct Found {
    typename PrefixLengths<kWords>::Key keys[exec::kMaxBatchPkts];
    uint32_t marks[exec::kMaxBatchPkts];
    uint32_t classes[exec::kMaxBatchPkts];
    uint32_t slots[exec::kMaxBatchPkts];
    uint32_t n = 0;

    void add(const typename PrefixLengths<kWords>::Key& key, uint32_t added, uint32_t slot) {
      keys[n] = key;
      marks[n] = kNoMark;
      classes[n] = added;
      slots[n++] = slot;
    }
  };
  static constexpr uint32_t kNoMark = ~0U;

  static PrefixList load(const Args& args) {
    PrefixList list;
    add_prefixes(list, args.list("prefixes"), args.where() + ".prefixes");
    const std::string& file = args.string("prefixes_file");
    if (!file.empty()) add_prefix_file(list, file, args.where() + ".prefixes_file");
    return list;
  }

  void gather(Packet& pkt, uint32_t slot, Found<1>& v4, Found<2>& v6) const noexcept {
    const BridgedIp place = bridged_ip_of(pkt);
    const uint8_t* ip = pkt.data() + place.offset_bytes;
    const uint32_t added = place.kind == IpKind::kNone ? 0 : classes_[dscp_of(ip, place.kind)];
    if (place.kind == IpKind::kIpv4) {
      const auto& header = header_at<net::Ipv4>(ip);
      v4.add({is_by_source_ ? uint32_t{header.src} : uint32_t{header.dst}}, added, slot);
    } else if (place.kind == IpKind::kIpv6) {
      const auto& header = header_at<net::Ipv6>(ip);
      const net::Address6 address =
          net::load_address6(bytes_of(is_by_source_ ? header.src : header.dst));
      v6.add({address.high, address.low}, added, slot);
    } else {
      pkt.set_mark(other_mark_);
      other_pkts_.add(1);
    }
  }
  template <uint32_t kWords>
  void settle(Batch& batch, const Found<kWords>& found) noexcept {
    uint32_t n_marked = 0;
    for (uint32_t k = 0; k < found.n; ++k) {
      const bool is_marked = found.marks[k] != kNoMark;
      const uint32_t mark = is_marked ? found.marks[k] : other_mark_;
      batch[found.slots[k]]->set_mark(mark + (is_marked ? found.classes[k] : 0));
      n_marked += is_marked ? 1 : 0;
    }
    marked_pkts_.add(n_marked);
    other_pkts_.add(found.n - n_marked);
  }

  void add(const List& items) {
    PrefixList added;
    add_prefixes(added, items, "prefixes");
    for (const auto& [key, mark] : added) {
      if (!list_.contains(key)) continue;
      throw ConfigError(format_prefix_key(key) + " is there already", "prefixes",
                        "delete it first");
    }
    live_.edit([&](PrefixMarks& marks) {
      for (const auto& [key, mark] : added) set_prefix(marks, key, mark);
    });
    list_.merge(added);
  }
  void remove(const List& items) {
    std::vector<PrefixKey> removed;
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string at = "prefixes[" + std::to_string(i) + "]";
      const Value& text = items[i].is_dict() ? items[i]["prefix"] : items[i];
      if (!text.is_string()) throw ConfigError("expected a prefix", at, "such as 192.0.2.0/29");
      removed.push_back(parse_prefix_key(text.as_string(), at));
      if (list_.contains(removed.back())) continue;
      throw ConfigError("there is no " + text.as_string(), at, "see `list`");
    }
    live_.edit([&](PrefixMarks& marks) {
      for (const PrefixKey& key : removed) erase_prefix(marks, key);
    });
    for (const PrefixKey& key : removed) list_.erase(key);
  }

  const bool is_by_source_;
  const uint32_t other_mark_;
  const List declared_;
  const std::string file_;
  const DscpClasses classes_;
  PrefixList list_;
  LiveTable<PrefixMarks> live_;
  bool is_edited_ = false;
  mutable Tally marked_pkts_;
  mutable Tally other_pkts_;
};

const Register<PrefixMark> kPrefixMark{{
    .kind = "prefix_mark",
    .state = StateOf::kNone,
    .help = "Marks IPv4 and IPv6 packets by the longest prefix of their destination or source.",
    .params = {{.name = "by",
                .type = ParamType::kString,
                .default_value = "destination",
                .help = "the address that is looked up",
                .choices = {"destination", "source"}},
               {.name = "prefixes",
                .type = ParamType::kList,
                .default_value = List{},
                .help = "{prefix, mark}"},
               {.name = "prefixes_file",
                .type = ParamType::kString,
                .default_value = "",
                .help = "CSV file with more of them: prefix,mark"},
               {.name = "classes",
                .type = ParamType::kList,
                .default_value = List{},
                .help = "{dscp, add}: what packets with a DSCP have added to their mark"},
               {.name = "other_mark",
                .default_value = 0,
                .help = "of packets in no prefix, and of those that are not IP"}},
    .notes =
        "Looks behind up to two VLAN tags and a PPPoE session. Made for many prefixes of a few "
        "lengths, as subscribers have them; work grows with the number of lengths. Live: add, "
        "delete prefixes.",
}};

}  // namespace
}  // namespace batchplane
