// SPDX-License-Identifier: BSD-3-Clause
// route_syntax.h - how users write routes and next hops: mappings in pipelines and commands, lines
// in files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/module/args.h"
#include "core/module/environment.h"
#include "core/module/kind.h"
#include "modules/route/route_table.h"

namespace batchplane {

// Gates of lookups in routers.
inline constexpr uint16_t kForwardGate = 0;
inline constexpr uint16_t kLocalGate = 1;

// A target is exactly one of
//   gate: N                  leaves by gate N; nothing more is known about it
//   gate: local              to the router itself
//   via: A [interface: I]    neighbour A; the interface is the one whose subnet holds A
//   interface: I             the destination itself is a neighbour there
//   next_hop: ID             an entry of next_hops
//   group: [{next_hop: ID, weight: W}]
//   drop: true
// via and interface may add `gate: N` (default 0) and `mac: M` (fixed, no ARP).
template <class Family>
class RouteSyntaxOf {
 public:
  using Address = typename Family::Address;
  using Prefix = typename Family::Prefix;
  using Route = RouteOf<Family>;
  using Table = RouteTableOf<Family>;

  // `interfaces` must outlive this object.
  RouteSyntaxOf(Table& table, const std::vector<Interface>& interfaces)
      : table_(table), interfaces_(interfaces) {}

  // {prefix, target, metric, source}. Creates implicit next hops. Throws ConfigError.
  [[nodiscard]] Route parse_route(const Value& value, const std::string& where) const;
  // {id, target}; returns the entry, not yet set.
  [[nodiscard]] NextHop parse_next_hop(const Value& value, const std::string& where) const;
  // One route per line: `prefix gate`, or `prefix via A`, `prefix next_hop ID`, `prefix local`,
  // `prefix drop`; # begins a comment. Throws with the first bad line; applies nothing.
  [[nodiscard]] std::vector<Route> parse_file(const std::string& path) const;
  // {count, seed, gates}: distinct random prefixes, with lengths distributed as in the public
  // table.
  [[nodiscard]] std::vector<Route> make_synthetic(const Dict& params,
                                                  const std::string& where) const;
  // Connected subnets, own addresses, broadcasts.
  [[nodiscard]] std::vector<Route> interface_routes() const;

  [[nodiscard]] Dict format_route(const Route& route) const;
  [[nodiscard]] Dict format_next_hop(uint32_t id) const;

 private:
  [[nodiscard]] NextHop parse_target(const Dict& dict, const std::string& where) const;
  [[nodiscard]] NextHop parse_group(const List& members, const std::string& where) const;
  [[nodiscard]] const Interface& interface_of(const Address& gateway, const Dict& dict,
                                              const std::string& where) const;
  [[nodiscard]] uint32_t intern(const NextHop& hop) const;
  void format_target(Dict& dict, uint32_t id) const;

  Table& table_;
  const std::vector<Interface>& interfaces_;
};

template <>
std::vector<Route> RouteSyntaxOf<Ipv4Family>::interface_routes() const;
template <>
std::vector<Route6> RouteSyntaxOf<Ipv6Family>::interface_routes() const;

// Sizes from a lookup module's parameters; defaults follow from the routes.
template <class Family>
[[nodiscard]] RouteTableSize route_table_size(const Dict& params);
// The table of a lookup module with these parameters, its own or a shared one, and the memory it
// takes.
template <class Family>
[[nodiscard]] std::vector<TableMemory> route_table_memory(const std::string& module,
                                                          const Dict& params);

}  // namespace batchplane
