// SPDX-License-Identifier: BSD-3-Clause
// module_cases_nat.h - translators of addresses and ports, with tables small enough to overflow.
#pragma once

#include "module_case.h"

namespace batchplane::fuzz {

inline const ModuleCase kNatCases[] = {
    {"static_nat", R"({"pairs": [{"inside": "10.0.0.0/16", "outside": "20.0.0.0/16"}]})"},
    {"static_nat", R"({"direction": "both",
                       "pairs": [{"inside": "10.0.0.0/16", "outside": "20.0.0.0/16"},
                                 {"inside": "10.9.0.0/16", "outside": "10.1.0.0/16"},
                                 {"inside": "0.0.0.0/8", "outside": "77.0.0.0/8"},
                                 {"inside": "192.168.0.0/16", "outside": "10.2.0.0/16"}]})"},
    {"napt", R"({"external": ["10.0.2.0/24", "10.0.0.2"], "unmapped": "local",
                 "max_connections": 16, "max_fragments": 4, "when_full": "evict_transitory",
                 "filtering": "address_dependent", "udp_short_ports": [53]})",
     3},
    {"napt", R"({"external": ["10.0.0.0/26"], "max_connections": 512, "max_per_host": 8,
                 "port_min": 1, "port_max": 300, "filtering": "address_and_port_dependent"})",
     2},
    {"napt", R"({"external": ["10.0.2.7"], "max_connections": 64, "port_min": 1000,
                 "port_max": 1010, "when_full": "evict_transitory", "tcp_loose": false})",
     2},
};

}  // namespace batchplane::fuzz
