// SPDX-License-Identifier: BSD-3-Clause
// static_nat_rules.cc - parses, checks and sorts pairs of prefixes.
#include "modules/nat/static_nat_rules.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace batchplane::nat {
namespace {

constexpr const char* kDirectionNames[] = {"source", "destination", "both"};

net::Prefix4 parse_side(const Value& item, const char* key, const std::string& at) {
  const Value& value = item[key];
  if (value.is_string()) {
    const std::string text =
        value.as_string() + (value.as_string().find('/') == std::string::npos ? "/32" : "");
    if (const auto prefix = net::parse_prefix4(text)) return *prefix;
  }
  throw ConfigError("expected an IPv4 prefix", at + "." + key,
                    "such as 10.0.0.0/24 (host bits zero), or one address");
}

StaticPair parse_pair(const Value& item, Direction otherwise, const std::string& at) {
  if (!item.is_dict()) {
    throw ConfigError("expected {inside, outside}", at,
                      "such as {inside: 10.0.0.0/24, outside: 20.0.0.0/24}");
  }
  for (const auto& [key, value] : item.as_dict()) {
    if (key == "inside" || key == "outside" || key == "direction") continue;
    throw ConfigError("unknown key '" + key + "'", at,
                      "a pair has inside, outside and, if wanted, direction");
  }
  StaticPair pair{parse_side(item, "inside", at), parse_side(item, "outside", at), otherwise};
  if (pair.inside.length != pair.outside.length) {
    throw ConfigError("the prefixes have different lengths", at,
                      "each inside address needs one outside address");
  }
  if (item.has("direction")) {
    const Value& name = item["direction"];
    if (!name.is_string() ||
        std::ranges::find(kDirectionNames, name.as_string()) == std::end(kDirectionNames)) {
      throw ConfigError("expected source, destination or both", at + ".direction");
    }
    pair.direction = parse_direction(name.as_string());
  }
  return pair;
}

using Side = std::pair<net::Prefix4, net::Prefix4>;

// (from, to) pairs, sorted by `from`.
std::vector<Side> sides_of(const std::vector<StaticPair>& pairs, bool is_source) {
  std::vector<Side> sides;
  for (const StaticPair& pair : pairs) {
    if (is_source && pair.is_for_source()) sides.emplace_back(pair.inside, pair.outside);
    if (!is_source && pair.is_for_destination()) sides.emplace_back(pair.outside, pair.inside);
  }
  std::ranges::sort(sides);
  return sides;
}

}  // namespace

Direction parse_direction(const std::string& name) {
  if (name == "destination") return Direction::kDestination;
  return name == "both" ? Direction::kBoth : Direction::kSource;
}

Dict format_pair(const StaticPair& pair) {
  return {{"inside", net::format_prefix4(pair.inside)},
          {"outside", net::format_prefix4(pair.outside)},
          {"direction", kDirectionNames[static_cast<uint32_t>(pair.direction)]}};
}

std::vector<StaticPair> parse_pairs(const List& items, Direction otherwise,
                                    const std::string& where) {
  std::vector<StaticPair> pairs;
  for (size_t i = 0; i < items.size(); ++i) {
    pairs.push_back(parse_pair(items[i], otherwise, where + "[" + std::to_string(i) + "]"));
  }
  return pairs;
}

void check_pairs(const std::vector<StaticPair>& pairs, const std::string& where) {
  if (pairs.size() > kMaxPairs) {
    throw ConfigError("there would be " + std::to_string(pairs.size()) + " pairs", where,
                      "at most " + std::to_string(kMaxPairs) + " fit");
  }
  for (const bool is_source : {true, false}) {
    const std::vector<Side> sides = sides_of(pairs, is_source);
    for (size_t i = 1; i < sides.size(); ++i) {
      const net::Prefix4& before = sides[i - 1].first;
      const net::Prefix4& here = sides[i].first;
      if ((here.address & net::mask4(before.length)) != before.address) continue;
      throw ConfigError(net::format_prefix4(before) + " and " + net::format_prefix4(here) +
                            " overlap as " + (is_source ? "sources" : "destinations"),
                        where, "an address can have one translation only");
    }
  }
}

StaticRules::StaticRules(const std::vector<StaticPair>& pairs) {
  for (const auto& [from, to] : sides_of(pairs, true)) source.add(from, to);
  for (const auto& [from, to] : sides_of(pairs, false)) destination.add(from, to);
  n_source = static_cast<uint32_t>(source.size());
  n_destination = static_cast<uint32_t>(destination.size());
  if (n_source + n_destination == 1) only = n_source == 1 ? source.front() : destination.front();
}

}  // namespace batchplane::nat
