// SPDX-License-Identifier: BSD-3-Clause
// napt_commands.cc - lists, filters and counts connections.
#include "modules/nat/napt_commands.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace batchplane::nat {
namespace {

constexpr uint32_t kUsualLimit = 100;
constexpr uint32_t kMaxListed = 100'000;
constexpr const char* kProtocols[] = {"tcp", "udp", "icmp"};  // indexed by PortSpace

struct Filter {
  std::optional<PortSpace> space;
  std::optional<NaptState> state;
  std::optional<uint32_t> inside, outside, remote;  // in network order
  uint32_t limit = kUsualLimit;

  [[nodiscard]] bool admits(const NaptView& view) const {
    return (!space || *space == port_space_of(view.out.proto())) &&
           (!state || *state == view.state) && (!inside || *inside == view.out.src()) &&
           (!outside || *outside == view.in.dst()) && (!remote || *remote == view.in.src());
  }
};

template <size_t kN>
uint32_t choice_of(const Value& value, const char* const (&names)[kN], const std::string& where) {
  std::string all;
  for (uint32_t i = 0; i < kN; ++i) {
    if (value.is_string() && value.as_string() == names[i]) return i;
    all += (all.empty() ? "" : ", ") + std::string(names[i]);
  }
  throw ConfigError("expected one of " + all, where);
}

uint32_t address_of(const Value& value, const std::string& where) {
  const auto address = value.is_string() ? net::parse_ipv4(value.as_string()) : std::nullopt;
  if (!address) throw ConfigError("expected an IPv4 address", where, "such as 10.0.0.2");
  return net::be32(*address);
}

Filter parse_filter(const Value& args) {
  Filter filter;
  if (args.is_null()) return filter;
  if (!args.is_dict()) throw ConfigError("expected a mapping", "list", "such as {protocol: tcp}");
  for (const auto& [key, value] : args.as_dict()) {
    const std::string where = "list." + key;
    if (key == "protocol") {
      filter.space = static_cast<PortSpace>(choice_of(value, kProtocols, where));
    } else if (key == "state") {
      filter.state = static_cast<NaptState>(choice_of(value, kNaptStateNames, where));
    } else if (key == "inside") {
      filter.inside = address_of(value, where);
    } else if (key == "outside") {
      filter.outside = address_of(value, where);
    } else if (key == "remote") {
      filter.remote = address_of(value, where);
    } else if (key == "limit" && value.is_int() && value.as_int() >= 0 &&
               value.as_int() <= kMaxListed) {
      filter.limit = static_cast<uint32_t>(value.as_int());
    } else if (key == "limit") {
      throw ConfigError("expected a number up to " + std::to_string(kMaxListed), where);
    } else {
      throw ConfigError("unknown key '" + key + "'", "list",
                        "use protocol, state, inside, outside, remote, limit");
    }
  }
  return filter;
}

std::string end_text(uint32_t address_raw, uint16_t port_raw) {
  return net::format_ipv4(net::be32(address_raw)) + ":" + std::to_string(net::be16(port_raw));
}

Dict format(const NaptView& view, uint32_t now) {
  const uint32_t idle = now - view.last_seen < 1U << 31 ? now - view.last_seen : 0;
  return {{"protocol", kProtocols[static_cast<uint32_t>(port_space_of(view.out.proto()))]},
          {"inside", end_text(view.out.src(), view.out.src_port())},
          {"outside", end_text(view.in.dst(), view.in.dst_port())},
          {"remote", end_text(view.in.src(), view.in.src_port())},
          {"state", kNaptStateNames[static_cast<uint32_t>(view.state)]},
          {"idle_s", (uint64_t{idle} << kTickShift) / 1'000'000'000}};
}

}  // namespace

Value list_connections(const NaptTable& table, const Value& args, uint32_t now) {
  const Filter filter = parse_filter(args);
  List found;
  uint64_t n_matching = 0;
  NaptView view;
  for (uint32_t i = 1; i <= table.capacity(); ++i) {
    if (!table.view(i, view) || !filter.admits(view)) continue;
    if (n_matching++ < filter.limit) found.emplace_back(format(view, now));
  }
  return Dict{{"connections", std::move(found)}, {"matching", n_matching}};
}

Dict show_napt(const NaptTranslator& translator) {
  const NaptTable& table = translator.table();
  Dict states;
  for (uint32_t i = 1; i < kNaptStates; ++i) {
    states[kNaptStateNames[i]] = table.timers().count(static_cast<NaptState>(i)).value();
  }
  List externals;
  table.pool().for_each([&](const External& external) {
    if (external.is_withdrawn && external.is_unused()) return;
    Dict item{{"address", net::format_ipv4(net::be32(external.address_raw))},
              {"withdrawn", external.is_withdrawn.load()}};
    for (uint32_t space = 0; space < kPortSpaces; ++space) {
      item[std::string(kProtocols[space]) + "_ports"] = external.maps[space].n_used();
    }
    externals.emplace_back(std::move(item));
  });
  const NaptTranslator::Tallies& tallies = translator.tallies();
  return {{"connections", table.n_sessions()},
          {"max_connections", table.capacity()},
          {"mappings", table.n_mappings()},
          {"inside_hosts", table.n_hosts()},
          {"states", std::move(states)},
          {"external", std::move(externals)},
          {"opened", table.n_opened()},
          {"expired", tallies.expired.value()},
          {"evicted", table.n_evicted()},
          {"hairpinned_pkts", tallies.hairpinned.value()},
          {"icmp_error_pkts", tallies.errors.value()},
          {"later_fragment_pkts", tallies.fragments.value()},
          {"table_bytes", static_cast<uint64_t>(table.size_bytes())}};
}

std::vector<uint32_t> parse_externals(const List& items, const std::string& where) {
  std::vector<uint32_t> all;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string at = where + "[" + std::to_string(i) + "]";
    std::string text = items[i].is_string() ? items[i].as_string() : "";
    if (text.find('/') == std::string::npos) text += "/32";
    const auto prefix = net::parse_prefix4(text);
    if (!prefix) {
      throw ConfigError("expected an IPv4 address or prefix", at,
                        "such as 203.0.113.1 or 203.0.113.16/28 (host bits zero)");
    }
    const uint64_t n = 1ULL << (32 - prefix->length);
    if (all.size() + n > kMaxExternal) {
      throw ConfigError(
          "there would be more than " + std::to_string(kMaxExternal) + " external addresses", at,
          "use a longer prefix");
    }
    for (uint64_t host = 0; host < n; ++host) {
      const auto address = static_cast<uint32_t>(prefix->address + host);
      if (std::ranges::find(all, address) != all.end())
        throw ConfigError(net::format_ipv4(address) + " is given twice", at, "keep one of them");
      all.push_back(address);
    }
  }
  return all;
}

}  // namespace batchplane::nat
