// SPDX-License-Identifier: BSD-3-Clause
// dscp.cc - sets the DSCP of IPv4 and IPv6 packets, to one value or by a map.
//
// in: 1   out: 1   drops: too_short   state: the map, editable live; counters
#include <array>
#include <numeric>

#include "base/error.h"
#include "core/module/live_table.h"
#include "core/module/register.h"
#include "modules/common/tally.h"
#include "modules/headers/shared_reasons.h"
#include "modules/policy/dscp_field.h"

namespace batchplane {
namespace {

using DscpMap = std::array<uint8_t, kDscpValues>;

// `to`: the new value for every DSCP that the list of {from, to} does not name; empty leaves those
// unchanged.
DscpMap map_of(const std::string& to, const List& map, const std::string& where) {
  DscpMap table;
  std::iota(table.begin(), table.end(), uint8_t{0});
  if (!to.empty()) table.fill(static_cast<uint8_t>(parse_dscp(to, where + "to")));
  std::array<bool, kDscpValues> is_named{};
  for (size_t i = 0; i < map.size(); ++i) {
    const std::string at = where + "map[" + std::to_string(i) + "]";
    const Value& item = map[i];
    if (!item.is_dict() || item.as_dict().size() != 2 || !item.has("from") || !item.has("to")) {
      throw ConfigError("expected {from, to}", at, "such as {from: ef, to: cs5}");
    }
    const uint32_t from = parse_dscp(item["from"], at + ".from");
    if (is_named[from]) throw ConfigError("the value is mapped already", at, "keep one of them");
    is_named[from] = true;
    table[from] = static_cast<uint8_t>(parse_dscp(item["to"], at + ".to"));
  }
  return table;
}

class Dscp final : public Module {
 public:
  explicit Dscp(const Args& args)
      : to_(args.string("to")),
        map_(args.list("map")),
        live_(std::make_unique<DscpMap>(map_of(to_, map_, args.where() + ".")),
              std::make_unique<DscpMap>(), args.env().quiescence) {}

  void process(Context& ctx, Batch& batch) noexcept {
    const DscpMap& map = live_.read();
    uint32_t n_changed = 0;
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *batch[i];
      const IpKind kind = ip_kind_of(pkt);
      if (kind == IpKind::kTooShort) [[unlikely]] {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      if (kind == IpKind::kNone) [[unlikely]]
        continue;
      uint8_t* ip = pkt.data() + l3_offset_of(pkt);
      const uint32_t before = dscp_of(ip, kind);
      const uint32_t after = map[before];
      if (before == after) continue;
      set_dscp(ip, kind, after);
      ++n_changed;
    }
    changed_pkts_.add(n_changed);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb != "set") return Module::command(verb, args);
    if (!args.is_dict()) throw ConfigError("expected {to, map}", "set", "give one or both");
    std::string to;
    List map;
    for (const auto& [key, value] : args.as_dict()) {
      if (key == "to" && (value.is_string() || value.is_int())) {
        to = value.is_int() ? std::to_string(value.as_int()) : value.as_string();
      } else if (key == "map" && value.is_list()) {
        map = value.as_list();
      } else {
        throw ConfigError("'" + key + "' is unknown or of the wrong type", "set",
                          "to is a DSCP, map a list of {from, to}");
      }
    }
    const DscpMap next = map_of(to, map, "set.");
    live_.edit([&](DscpMap& table) { table = next; });
    to_ = to;
    map_ = map;
    return show();
  }

  [[nodiscard]] Value show() const override {
    Dict shown = saved_params();
    shown["changed_pkts"] = changed_pkts_.value();
    return shown;
  }
  [[nodiscard]] Dict saved_params() const override { return {{"to", to_}, {"map", map_}}; }
  void adopt(Module& old) noexcept override {
    changed_pkts_.set(static_cast<Dscp&>(old).changed_pkts_.value());
  }

 private:
  std::string to_;
  List map_;
  LiveTable<DscpMap> live_;
  Tally changed_pkts_;
};

const Register<Dscp> kDscp{{
    .kind = "dscp",
    .state = StateOf::kNone,
    .help = "Sets the DSCP of IPv4 and IPv6 packets and mends the IPv4 header checksum.",
    .params = {{.name = "to",
                .type = ParamType::kString,
                .default_value = "",
                .help = "the DSCP of all packets that `map` does not name: a name such as ef, or "
                        "\"46\"; empty leaves them"},
               {.name = "map",
                .type = ParamType::kList,
                .default_value = List{},
                .help = "[{from, to}]: DSCPs that become others"}},
    .drops = {&reason::kTooShort},
    .notes = "ECN bits stay. What is no IP passes as it is. Live command: set {to, map}, in place "
             "of both.",
}};

}  // namespace
}  // namespace batchplane
