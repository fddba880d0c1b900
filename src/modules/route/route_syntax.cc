// SPDX-License-Identifier: BSD-3-Clause
// route_syntax.cc - parses and prints routes and next hops; every error says where it is and how to
// fix it.
#include "modules/route/route_syntax.h"

#include <algorithm>
#include <initializer_list>

#include "base/error.h"
#include "base/nearest_word.h"

namespace batchplane {
namespace {

constexpr uint32_t kMaxGate = 0xfffe;

void refuse_unknown_keys(const Dict& dict, const std::string& where,
                         const std::vector<std::string>& known) {
  for (const auto& [key, value] : dict) {
    if (std::ranges::find(known, key) != known.end()) continue;
    const std::string near = nearest_word(key, known);
    throw ConfigError("unknown key '" + key + "'", where,
                      near.empty() ? "" : "did you mean '" + near + "'?");
  }
}

uint32_t integer_in(const Value& value, const std::string& where, int64_t min, int64_t max) {
  if (!value.is_int() || value.as_int() < min || value.as_int() > max) {
    throw ConfigError(
        "expected an integer from " + std::to_string(min) + " to " + std::to_string(max), where);
  }
  return static_cast<uint32_t>(value.as_int());
}

template <class Family>
typename Family::Address address_in(const Value& value, const std::string& where) {
  const auto address = value.is_string() ? Family::parse(value.as_string()) : std::nullopt;
  if (!address || !Family::is_unicast(*address)) {
    throw ConfigError(std::string("expected an ") + Family::kName + " address", where,
                      Family::kAnAddress);
  }
  return *address;
}

// `via: fe80::1%lan` (RFC 4007) stands for both via and interface.
template <class Family>
Dict with_scope(Dict dict) {
  const auto via = dict.find("via");
  if (Family::kBits != 128 || via == dict.end() || !via->second.is_string()) return dict;
  const std::string text = via->second.as_string();
  const size_t at = text.find('%');
  if (at == std::string::npos || dict.contains("interface")) return dict;
  dict["via"] = text.substr(0, at);
  dict["interface"] = text.substr(at + 1);
  return dict;
}

const std::vector<std::string> kTargetKeys = {"gate", "via",   "interface", "next_hop",
                                              "mac",  "group", "drop"};
std::vector<std::string> with_target_keys(std::initializer_list<std::string> more) {
  std::vector<std::string> keys(more);
  keys.insert(keys.end(), kTargetKeys.begin(), kTargetKeys.end());
  return keys;
}

}  // namespace

template <class Family>
const Interface& RouteSyntaxOf<Family>::interface_of(const Address& gateway, const Dict& dict,
                                                     const std::string& where) const {
  const auto named = dict.find("interface");
  if (named != dict.end()) {
    if (!named->second.is_string())
      throw ConfigError("expected an interface's name", where + ".interface");
    std::vector<std::string> names;
    for (const Interface& candidate : interfaces_) {
      if (candidate.name == named->second.as_string()) return candidate;
      names.push_back(candidate.name);
    }
    const std::string near = nearest_word(named->second.as_string(), names);
    throw ConfigError(
        "no interface '" + named->second.as_string() + "'", where,
        near.empty() ? "declare it under interfaces" : "did you mean '" + near + "'?");
  }
  for (const Interface& candidate : interfaces_) {
    for (const Prefix& own : Family::addresses(candidate)) {
      if (Family::is_on_any_link(gateway)) continue;
      if (Family::is_zero((own.address ^ gateway) & Family::mask(own.length))) return candidate;
    }
  }
  throw ConfigError("gateway " + Family::format(gateway) + " is in no interface's subnet", where,
                    "name the interface, or correct the gateway");
}

template <class Family>
NextHop RouteSyntaxOf<Family>::parse_group(const List& members, const std::string& where) const {
  NextHop hop{.kind = NextHop::Kind::kGroup};
  for (const Value& member : members) {
    if (!member.is_dict()) {
      throw ConfigError("a group lists mappings", where, "such as [{next_hop: 1, weight: 2}]");
    }
    refuse_unknown_keys(member.as_dict(), where, {"next_hop", "weight"});
    const Value& weight = member["weight"];
    hop.members.push_back(
        {integer_in(member["next_hop"], where + ".next_hop", 0, 0x7ffffffe),
         weight.is_null() ? 1 : integer_in(weight, where + ".weight", 1, 1'000'000)});
  }
  if (hop.members.empty()) throw ConfigError("a group needs at least one member", where);
  return hop;
}

template <class Family>
NextHop RouteSyntaxOf<Family>::parse_target(const Dict& dict, const std::string& where) const {
  const auto has = [&](const char* key) { return dict.contains(key); };
  const bool is_neighbour = has("via") || has("interface");
  if ((has("gate") || is_neighbour ? 1 : 0) + has("group") + has("drop") + has("next_hop") != 1) {
    throw ConfigError("where to is not clear", where,
                      "give one of gate, via, interface, next_hop, group, drop");
  }
  if (has("mac") && !is_neighbour) {
    throw ConfigError("mac needs via or interface", where, "name the interface behind which it is");
  }
  if (has("group")) {
    if (!dict.at("group").is_list()) throw ConfigError("expected a list", where + ".group");
    return parse_group(dict.at("group").as_list(), where + ".group");
  }
  NextHop hop;
  if (has("drop")) {
    if (!dict.at("drop").is_bool() || !dict.at("drop").as_bool())
      throw ConfigError("expected true", where + ".drop");
    hop.kind = NextHop::Kind::kDrop;
    return hop;
  }
  if (has("gate") && dict.at("gate").is_string() && dict.at("gate").as_string() == "local") {
    if (is_neighbour)
      throw ConfigError("'gate: local' has no neighbour", where, "remove via or interface");
    hop.kind = NextHop::Kind::kLocal;
    hop.gate = kLocalGate;
  } else if (has("gate")) {
    hop.gate = static_cast<uint16_t>(integer_in(dict.at("gate"), where + ".gate", 0, kMaxGate));
  }
  Address& gateway = Family::gateway(hop);
  const Dict scoped = with_scope<Family>(dict);
  if (has("via")) gateway = address_in<Family>(scoped.at("via"), where + ".via");
  if (is_neighbour) hop.interface = interface_of(gateway, scoped, where).index;
  if (has("mac")) {
    const auto mac =
        dict.at("mac").is_string() ? net::parse_mac(dict.at("mac").as_string()) : std::nullopt;
    if (!mac)
      throw ConfigError("expected a MAC address", where + ".mac", "such as 02:00:00:00:00:01");
    hop.mac = *mac;
    hop.has_mac = true;
  }
  table_.check_gate(hop.gate);
  return hop;
}

template <class Family>
uint32_t RouteSyntaxOf<Family>::intern(const NextHop& hop) const {
  return table_.hops().intern(hop);
}

template <class Family>
RouteOf<Family> RouteSyntaxOf<Family>::parse_route(const Value& value,
                                                   const std::string& where) const {
  if (!value.is_dict()) {
    throw ConfigError("a route is a mapping", where, Family::kARoute);
  }
  const Dict& dict = value.as_dict();
  refuse_unknown_keys(dict, where, with_target_keys({"prefix", "metric", "source"}));
  const Value& text = value["prefix"];
  const auto prefix = text.is_string() ? Family::parse_prefix(text.as_string()) : std::nullopt;
  if (!prefix) {
    throw ConfigError(text.is_string()
                          ? "'" + text.as_string() + "' is no " + Family::kName + " prefix"
                          : "prefix is missing",
                      where, Family::kAPrefix);
  }
  Route route{*prefix, {}};
  if (dict.contains("metric")) {
    route.way.metric = integer_in(dict.at("metric"), where + ".metric", 0, 0xfffffffe);
  } else {
    route.way.metric = 1;
  }
  if (dict.contains("source")) {
    const auto source = dict.at("source").is_string()
                            ? parse_route_source(dict.at("source").as_string())
                            : std::nullopt;
    if (!source || *source == RouteSource::kLocal || *source == RouteSource::kConnected) {
      throw ConfigError("source must be static or user", where + ".source");
    }
    route.way.source = *source;
  }
  if (dict.contains("next_hop")) {
    const uint32_t id = integer_in(dict.at("next_hop"), where + ".next_hop", 0, 0x7ffffffe);
    if (!table_.hops().is_explicit(id)) {
      throw ConfigError("there is no next hop " + std::to_string(id), where,
                        "define it in next_hops");
    }
    for (const std::string& key : kTargetKeys) {
      if (key != "next_hop" && dict.contains(key)) {
        throw ConfigError("next_hop and " + key + " exclude each other", where, "keep one of them");
      }
    }
    route.way.next_hop = id;
    return route;
  }
  route.way.next_hop = intern(parse_target(dict, where));
  return route;
}

template <class Family>
NextHop RouteSyntaxOf<Family>::parse_next_hop(const Value& value, const std::string& where) const {
  if (!value.is_dict())
    throw ConfigError("a next hop is a mapping", where, "such as {id: 1, gate: 2}");
  refuse_unknown_keys(value.as_dict(), where, with_target_keys({"id"}));
  if (value.has("next_hop"))
    throw ConfigError("a next hop cannot point to another", where, "use group");
  return parse_target(value.as_dict(), where);
}

template <class Family>
void RouteSyntaxOf<Family>::format_target(Dict& dict, uint32_t id) const {
  const NextHop* hop = table_.hops().at(id);
  if (hop == nullptr) return;
  switch (hop->kind) {
    case NextHop::Kind::kDrop:
      dict["drop"] = true;
      return;
    case NextHop::Kind::kLocal:
      dict["gate"] = "local";
      return;
    case NextHop::Kind::kGroup: {
      List members;
      for (const auto& member : hop->members) {
        members.push_back(Dict{{"next_hop", member.id}, {"weight", member.weight}});
      }
      dict["group"] = std::move(members);
      return;
    }
    case NextHop::Kind::kForward:
      break;
  }
  dict["gate"] = hop->gate;
  if (hop->interface == kNoInterface) return;
  if (hop->interface == kArrivalInterface) {
    dict["interface"] = "the one of arrival";
    return;
  }
  dict["interface"] = interfaces_.at(hop->interface).name;
  const Address& gateway = Family::gateway(*hop);
  if (!Family::is_zero(gateway)) dict["via"] = Family::format(gateway);
  if (hop->has_mac) dict["mac"] = net::format_mac(hop->mac);
}

template <class Family>
Dict RouteSyntaxOf<Family>::format_route(const Route& route) const {
  Dict dict{{"prefix", Family::format(route.prefix)},
            {"metric", route.way.metric},
            {"source", route_source_name(route.way.source)}};
  if (table_.hops().is_explicit(route.way.next_hop)) {
    dict["next_hop"] = route.way.next_hop;
  } else {
    format_target(dict, route.way.next_hop);
  }
  return dict;
}

template <class Family>
Dict RouteSyntaxOf<Family>::format_next_hop(uint32_t id) const {
  Dict dict{{"id", id}};
  format_target(dict, id);
  return dict;
}

template RouteOf<Ipv4Family> RouteSyntaxOf<Ipv4Family>::parse_route(const Value&,
                                                                    const std::string&) const;
template NextHop RouteSyntaxOf<Ipv4Family>::parse_next_hop(const Value&, const std::string&) const;
template uint32_t RouteSyntaxOf<Ipv4Family>::intern(const NextHop&) const;
template Dict RouteSyntaxOf<Ipv4Family>::format_route(const RouteOf<Ipv4Family>&) const;
template Dict RouteSyntaxOf<Ipv4Family>::format_next_hop(uint32_t) const;
template RouteOf<Ipv6Family> RouteSyntaxOf<Ipv6Family>::parse_route(const Value&,
                                                                    const std::string&) const;
template NextHop RouteSyntaxOf<Ipv6Family>::parse_next_hop(const Value&, const std::string&) const;
template uint32_t RouteSyntaxOf<Ipv6Family>::intern(const NextHop&) const;
template Dict RouteSyntaxOf<Ipv6Family>::format_route(const RouteOf<Ipv6Family>&) const;
template Dict RouteSyntaxOf<Ipv6Family>::format_next_hop(uint32_t) const;

}  // namespace batchplane
