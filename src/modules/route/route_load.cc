// SPDX-License-Identifier: BSD-3-Clause
// route_load.cc - routes in bulk: from a file, generated for benchmarks, or from the interfaces.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "base/text_file.h"
#include "core/module/kind.h"
#include "modules/route/route_syntax.h"

namespace batchplane {
namespace {

constexpr uint32_t kMaxPrefixes = 16'000'000;

// Approximate shares of prefix lengths in the public IPv4 table, in per mille; a few long ones
// added.
struct LengthShare {
  uint8_t length;
  uint32_t per_mille;
};
constexpr LengthShare kLengthShares[] = {{16, 14},  {18, 14},  {19, 25},  {20, 45}, {21, 52},
                                         {22, 115}, {23, 105}, {24, 620}, {28, 10}};

// The same for the public IPv6 table; the rest is /48.
constexpr LengthShare kLengthShares6[] = {{29, 30}, {32, 130}, {33, 20}, {34, 15},  {36, 50},
                                          {38, 10}, {40, 100}, {42, 25}, {44, 110}, {46, 45},
                                          {47, 25}, {56, 5},   {64, 10}};

template <size_t kShares>
uint8_t random_length(Rng& rng, const LengthShare (&shares)[kShares], uint8_t otherwise) {
  uint32_t at = rng.below(1000);
  for (const LengthShare& share : shares) {
    if (at < share.per_mille) return share.length;
    at -= share.per_mille;
  }
  return otherwise;
}

// Unicast space; the low /8s are left to tests and pipelines that add routes of their own.
net::Prefix4 random_prefix(Rng& rng, int64_t /*count*/, const net::Prefix4& /*family*/) {
  for (;;) {
    const uint8_t length = random_length(rng, kLengthShares, 24);
    const uint32_t address = (11 + rng.below(212)) << 24 | rng.below(1U << 24);
    if (address >> 24 != 127) return {address & net::mask4(length), length};
  }
}

// As registries assign space: some /32 to each network, which announces prefixes within it.
net::Prefix6 random_prefix(Rng& rng, int64_t count, const net::Prefix6& /*family*/) {
  static constexpr uint32_t kRegistries[] = {0x240, 0x260, 0x280, 0x2a0, 0x2c0};
  const uint8_t length = random_length(rng, kLengthShares6, 48);
  const auto network = rng.below(static_cast<uint32_t>(std::max<int64_t>(count / 4, 16)));
  Rng of_network(network + 1);
  const uint64_t first =
      uint64_t{kRegistries[of_network.below(5)]} << 20 | of_network.below(1U << 20);
  const uint64_t high = first << 32 | (rng.next() >> 32);
  return {net::Address6{high, 0} & net::mask6(length), length};
}

uint64_t count_lines(const std::string& path) {
  std::ifstream in = try_open_text_file(path);
  uint64_t n = 0;
  for (std::string line; std::getline(in, line);) ++n;
  return n;
}

int64_t int_or(const Dict& dict, const std::string& key, int64_t otherwise) {
  const auto it = dict.find(key);
  return it != dict.end() && it->second.is_int() ? it->second.as_int() : otherwise;
}

}  // namespace

template <class Family>
std::vector<RouteOf<Family>> RouteSyntaxOf<Family>::parse_file(const std::string& path) const {
  std::ifstream in = open_text_file(path, "file");
  std::vector<Route> routes;
  uint32_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::vector<std::string> words = words_of_line(line);
    if (words.empty()) continue;
    const std::string where = path + ":" + std::to_string(number);
    Dict dict{{"prefix", words[0]}};
    const auto number_in = [&](const std::string& word) -> Value {
      int64_t value = 0;
      const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (error != std::errc() || stop != word.data() + word.size()) return Value(word);
      return value;
    };
    if (words.size() == 2 && words[1] == "drop") {
      dict["drop"] = true;
    } else if (words.size() == 2) {
      dict["gate"] = number_in(words[1]);
    } else if (words.size() == 3 && (words[1] == "via" || words[1] == "interface")) {
      dict[words[1]] = words[2];
    } else if (words.size() == 3 && words[1] == "next_hop") {
      dict["next_hop"] = number_in(words[2]);
    } else {
      throw ConfigError("'" + line + "' is no route", where,
                        "write `prefix gate`, `prefix via ADDRESS`, `prefix interface NAME`, "
                        "`prefix next_hop ID`, `prefix local` or `prefix drop`");
    }
    routes.push_back(parse_route(dict, where));
    routes.back().way.is_bulk = true;
  }
  return routes;
}

template <class Family>
std::vector<RouteOf<Family>> RouteSyntaxOf<Family>::make_synthetic(const Dict& params,
                                                                   const std::string& where) const {
  for (const auto& [key, value] : params) {
    if (key != "count" && key != "seed" && key != "gates") {
      throw ConfigError("unknown key '" + key + "'", where,
                        "synthetic takes count, seed and gates");
    }
    if (!value.is_int() || value.as_int() < 0)
      throw ConfigError("expected an integer >= 0", where + "." + key);
  }
  const int64_t count = int_or(params, "count", 0);
  const int64_t gates = int_or(params, "gates", 1);
  if (count > kMaxPrefixes / 16) {
    throw ConfigError("count is out of range 0 .. " + std::to_string(kMaxPrefixes / 16), where);
  }
  if (gates < 1 || gates > 4096) throw ConfigError("gates is out of range 1 .. 4096", where);
  std::vector<uint32_t> hops;
  for (uint32_t gate = 0; gate < gates && gate < count; ++gate) {
    hops.push_back(intern({.gate = static_cast<uint16_t>(gate)}));
  }
  Rng rng(static_cast<uint64_t>(int_or(params, "seed", 1)));
  std::set<Prefix> taken;
  std::vector<Route> routes;
  while (routes.size() < static_cast<size_t>(count)) {
    const Prefix prefix = random_prefix(rng, count, Prefix{});
    if (!taken.insert(prefix).second) continue;
    routes.push_back(
        {prefix, {.next_hop = hops[routes.size() % hops.size()], .metric = 1, .is_bulk = true}});
  }
  return routes;
}

template <>
std::vector<Route> RouteSyntaxOf<Ipv4Family>::interface_routes() const {
  const uint32_t local = intern({.kind = NextHop::Kind::kLocal, .gate = kLocalGate});
  const auto local_route = [&](uint32_t address) {
    return Route{{address, 32}, {.next_hop = local, .source = RouteSource::kLocal}};
  };
  // Multicast is not forwarded: packets for a group are for this router, which may have listeners.
  std::vector<Route> routes{local_route(0xffffffff),
                            {{0xe0000000, 4}, {.next_hop = local, .source = RouteSource::kLocal}}};
  for (const Interface& interface : interfaces_) {
    for (const net::Prefix4& own : interface.addresses) {
      const uint32_t mask = net::mask4(own.length);
      routes.push_back(local_route(own.address));
      if (own.length == 32) continue;
      const uint32_t glean = intern({.gate = kForwardGate, .interface = interface.index});
      routes.push_back({{own.address & mask, own.length},
                        {.next_hop = glean, .source = RouteSource::kConnected}});
      // RFC 3021: point-to-point links of two addresses have no broadcast.
      if (own.length <= 30) routes.push_back(local_route(own.address | ~mask));
    }
  }
  return routes;
}

template <>
std::vector<Route6> RouteSyntaxOf<Ipv6Family>::interface_routes() const {
  const uint32_t local = intern({.kind = NextHop::Kind::kLocal, .gate = kLocalGate});
  const uint32_t on_link = intern({.gate = kForwardGate, .interface = kArrivalInterface});
  const RouteWay to_us{.next_hop = local, .source = RouteSource::kLocal};
  const RouteWay to_link{.next_hop = on_link, .source = RouteSource::kConnected};
  // Multicast is not forwarded: packets for a group are for this router, which may have listeners.
  std::vector<Route6> routes{{{{0xffULL << 56, 0}, 8}, to_us},
                             {{{0xfe80ULL << 48, 0}, 10}, to_link}};
  for (const Interface& interface : interfaces_) {
    for (const net::Prefix6& own : interface.addresses6) {
      routes.push_back({{own.address, 128}, to_us});
      if (own.length == 128 || own.address.is_link_local()) continue;
      const net::Address6 subnet = own.address & net::mask6(own.length);
      const uint32_t glean = intern({.gate = kForwardGate, .interface = interface.index});
      routes.push_back(
          {{subnet, own.length}, {.next_hop = glean, .source = RouteSource::kConnected}});
      // RFC 4291, 2.6.1: the subnet-router anycast address.
      if (own.length <= 126) routes.push_back({{subnet, 128}, to_us});
    }
  }
  return routes;
}

template std::vector<RouteOf<Ipv4Family>> RouteSyntaxOf<Ipv4Family>::parse_file(
    const std::string&) const;
template std::vector<RouteOf<Ipv4Family>> RouteSyntaxOf<Ipv4Family>::make_synthetic(
    const Dict&, const std::string&) const;
template std::vector<RouteOf<Ipv6Family>> RouteSyntaxOf<Ipv6Family>::parse_file(
    const std::string&) const;
template std::vector<RouteOf<Ipv6Family>> RouteSyntaxOf<Ipv6Family>::make_synthetic(
    const Dict&, const std::string&) const;

template <class Family>
RouteTableSize route_table_size(const Dict& params) {
  RouteTableSize size;
  if (Family::kBits == 128) size.next_hop_bytes = 4;
  size.max_next_hops = static_cast<uint32_t>(int_or(params, "max_next_hops", size.max_next_hops));
  size.next_hop_bytes =
      static_cast<uint32_t>(int_or(params, "next_hop_bytes", size.next_hop_bytes));
  size.max_long_blocks = static_cast<uint32_t>(int_or(params, "max_long_blocks", 0));
  int64_t max_prefixes = int_or(params, "max_prefixes", 0);
  if (max_prefixes == 0) {
    uint64_t known = 0;
    const auto routes = params.find("routes");
    if (routes != params.end() && routes->second.is_list())
      known += routes->second.as_list().size();
    const auto file = params.find("file");
    if (file != params.end() && file->second.is_string() && !file->second.as_string().empty()) {
      known += count_lines(file->second.as_string());
    }
    const auto synthetic = params.find("synthetic");
    if (synthetic != params.end() && synthetic->second.is_dict()) {
      known += static_cast<uint64_t>(
          std::max<int64_t>(int_or(synthetic->second.as_dict(), "count", 0), 0));
    }
    // A quarter more, for live additions.
    max_prefixes = static_cast<int64_t>(std::min<uint64_t>(known + known / 4, kMaxPrefixes));
    max_prefixes = std::max<int64_t>(max_prefixes, size.max_prefixes);
  }
  size.max_prefixes = static_cast<uint32_t>(max_prefixes);
  return size;
}

template RouteTableSize route_table_size<Ipv4Family>(const Dict&);
template RouteTableSize route_table_size<Ipv6Family>(const Dict&);

template <class Family>
std::vector<TableMemory> route_table_memory(const std::string& module, const Dict& params) {
  const auto given = params.find("table");
  const bool is_named =
      given != params.end() && given->second.is_string() && !given->second.as_string().empty();
  const RouteTableSize size = route_table_size<Family>(params);
  const uint64_t bytes = 2 * Family::Fib::memory_bytes({.max_prefixes = size.max_prefixes,
                                                        .max_tbl8 = size.max_long_blocks,
                                                        .next_hop_bytes = size.next_hop_bytes,
                                                        .miss_id = size.max_next_hops});
  // Tables of the two IP versions are distinct even under the same name.
  return {
      {Family::kName + std::string(" ") + (is_named ? given->second.as_string() : module), bytes}};
}

template std::vector<TableMemory> route_table_memory<Ipv4Family>(const std::string&, const Dict&);
template std::vector<TableMemory> route_table_memory<Ipv6Family>(const std::string&, const Dict&);

}  // namespace batchplane
