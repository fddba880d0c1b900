// SPDX-License-Identifier: BSD-3-Clause
// neighbour_module.cc - parameters shared by the ARP and neighbour discovery modules.
#include "modules/neighbour/neighbour_module.h"

namespace batchplane {

std::vector<ParamSpec> neighbour_params(int64_t reachable_ns, const char* announce_help,
                                        std::vector<ParamSpec> extra) {
  std::vector<ParamSpec> params{
      {.name = "table",
       .type = ParamType::kString,
       .help = "the route table whose next hops packets carry"},
      {.name = "neighbours",
       .type = ParamType::kList,
       .default_value = List{},
       .help = "static entries {interface, address, mac}"},
      {.name = "max_neighbours",
       .type = ParamType::kInt,
       .unit = "entries",
       .default_value = 4096,
       .help = "size of the table; unresolved ones take a quarter at most",
       .min = 4,
       .max = 1'000'000},
      {.name = "hold_pkts",
       .type = ParamType::kInt,
       .unit = "pkts",
       .default_value = 16,
       .help = "packets that wait for one unresolved neighbour",
       .min = 1,
       .max = 1024},
      {.name = "max_hold_pkts",
       .type = ParamType::kInt,
       .unit = "pkts",
       .default_value = 512,
       .help = "packets that wait in total",
       .min = 1,
       .max = 100'000},
      {.name = "max_tries",
       .type = ParamType::kInt,
       .default_value = 3,
       .help = "requests before a neighbour counts as unreachable",
       .min = 1,
       .max = 100},
      {.name = "retry_ns",
       .type = ParamType::kInt,
       .unit = "ns",
       .default_value = 1'000'000'000,
       .help = "between two requests",
       .min = 1'000'000,
       .max = 60e9},
      {.name = "reachable_ns",
       .type = ParamType::kInt,
       .unit = "ns",
       .default_value = reachable_ns,
       .help = "age at which a used neighbour is asked again and an unused one forgotten",
       .min = 1'000'000,
       .max = 86'400e9},
      {.name = "announce", .type = ParamType::kBool, .default_value = true, .help = announce_help}};
  params.insert(params.end(), std::make_move_iterator(extra.begin()),
                std::make_move_iterator(extra.end()));
  return params;
}

}  // namespace batchplane
