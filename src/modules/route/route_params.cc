// SPDX-License-Identifier: BSD-3-Clause
// route_params.cc - parameters and notes of lookup modules, as `modules` prints them.
#include "modules/route/route_commands.h"

namespace batchplane {

template <class Family>
std::vector<ParamSpec> route_params() {
  constexpr bool kIs6 = Family::kBits == 128;
  return {
      {.name = "table",
       .type = ParamType::kString,
       .default_value = "",
       .help =
           "name of the route table; modules that name the same one share it (default: own name)"},
      {.name = "routes",
       .type = ParamType::kList,
       .default_value = List{},
       .help = std::string("routes ") + Family::kARoute + "; see the notes"},
      {.name = "next_hops",
       .type = ParamType::kList,
       .default_value = List{},
       .help = "next hops by id such as {id: 1, gate: 2}; see the notes"},
      {.name = "file",
       .type = ParamType::kString,
       .default_value = "",
       .help = "file of routes, one `prefix gate` per line"},
      {.name = "synthetic",
       .type = ParamType::kDict,
       .default_value = Dict{},
       .help = "random routes for measurements: {count, seed, gates}"},
      {.name = "interfaces",
       .type = ParamType::kBool,
       .default_value = false,
       .help = "add connected and local routes of all interfaces"},
      {.name = "deleted_routes",
       .type = ParamType::kList,
       .default_value = List{},
       .help = "prefixes of file and synthetic to leave out"},
      {.name = "max_prefixes",
       .type = ParamType::kInt,
       .unit = "prefixes",
       .default_value = 0,
       .help = "size of the table; 0 = a quarter more than declared, at least 16384",
       .min = 0,
       .max = 16'000'000},
      {.name = "max_long_blocks",
       .type = ParamType::kInt,
       .unit = "blocks",
       .default_value = 0,
       .help = kIs6
                   ? "blocks of 256 entries for prefixes longer than 24, one for each 8 bits more; "
                     "0 = three for each of max_prefixes"
                   : "/24 blocks that may hold prefixes longer than 24; 0 = a quarter of "
                     "max_prefixes",
       .min = 0,
       .max = 8'000'000},
      {.name = "max_next_hops",
       .type = ParamType::kInt,
       .unit = "entries",
       .default_value = 4096,
       .help = "next-hop ids; those below may be used in next_hops",
       .min = 1,
       .max = 1'000'000},
      {.name = "next_hop_bytes",
       .type = ParamType::kInt,
       .unit = "bytes",
       .default_value = kIs6 ? 4 : 2,
       .help = "of a table entry: 2 (ids up to 32766) or 4",
       .min = 2,
       .max = 4},
      {.name = "flow_seed",
       .type = ParamType::kInt,
       .default_value = 0,
       .help = "seed of the hash that spreads flows over a group; differs between routers in a row",
       .min = 0,
       .max = 4294967295.0},
  };
}

template <class Family>
std::string route_notes() {
  return "A route is {prefix, target, metric: 1, source: static}; a next hop is {id, target}. "
         "Targets: "
         "gate: N; gate: local (gate 1, to the router itself); via: ADDRESS, with interface: NAME "
         "if "
         "no subnet holds the address; interface: NAME (the destination is a neighbour there); "
         "next_hop: ID; group: [{next_hop: ID, weight: 1}] (flows are spread by hash); drop: true. "
         "via and interface leave by gate 0 (forward) unless gate: N is added: the next hop in the "
         "packet's metadata tells a neighbour module which interface to use, so one chain serves "
         "all. "
         "With interfaces: true own addresses and " +
         std::string(Family::kBits == 128 ? "all groups (ff00::/8) go to gate 1 (local), and "
                                            "fe80::/10 back to the interface of arrival"
                                          : "broadcasts and groups (224.0.0.0/4) go to gate 1 "
                                            "(local)") +
         ". Lowest metric wins, "
         "then local, connected, user, static. Live commands: add {route} or {routes: [..]} or "
         "{file}, "
         "delete {prefix, source, metric} or {routes: [..]}, replace {routes: [..]} or {file}, "
         "list {within, source, limit}, lookup {address}, next_hop {id, target} or {id, delete: "
         "true}. An apply that declares the same table for the same interfaces goes on with it, "
         "live edits included; one that declares another fills that beside the old one (memory "
         "for two is set aside at the start), and routes that were added live go with it.";
}

template std::vector<ParamSpec> route_params<Ipv4Family>();
template std::vector<ParamSpec> route_params<Ipv6Family>();
template std::string route_notes<Ipv4Family>();
template std::string route_notes<Ipv6Family>();

}  // namespace batchplane
