// SPDX-License-Identifier: BSD-3-Clause
// module_cases_ipv6.h - the IPv6 modules that fuzz_modules runs.
#pragma once

#include "module_case.h"

namespace batchplane::fuzz {

inline const ModuleCase kIpv6Cases[] = {
    {"ipv6_check", "{}"},
    {"ipv6_check", R"({"l3_offset_bytes": 18, "drop_martians": false})"},
    {"hop_limit", "{}"},
    {"ipv6_lookup",
     R"({"table": "main", "interfaces": true, "max_next_hops": 64, "max_prefixes": 256,
         "next_hops": [{"id": 1, "via": "2001:db8:2::2"}, {"id": 2, "via": "fe80::2%wan"},
                       {"id": 3, "group": [{"next_hop": 1, "weight": 1}, {"next_hop": 2, "weight": 2}]},
                       {"id": 4, "interface": "lan"}],
         "routes": [{"prefix": "::/0", "via": "2001:db8:2::2"}, {"prefix": "2a00::/16", "next_hop": 3},
                    {"prefix": "2b00::/16", "drop": true}, {"prefix": "2c00::/33", "gate": 2}]})",
     3},
    {"neighbour6",
     R"({"table": "main", "hold_pkts": 4, "max_hold_pkts": 32, "max_neighbours": 64,
         "retry_ns": 1000000, "reachable_ns": 1000000000, "advertise_interval_ns": 4000000000,
         "advertise": [{"interface": "lan", "prefix": "2001:db8:1::/64", "dns": "2001:db8:1::1"}],
         "neighbours": [{"interface": "wan", "address": "2001:db8:2::2", "mac": "02:00:00:00:02:02"}]})",
     2},
    {"icmp6_echo", "{}", 3},
    {"icmp6_error", R"({"table": "main", "errors_per_s": 10000000, "burst": 1000})"},
    {"icmp6_error", R"({"errors_per_s": 1000, "burst": 1})"},
};

}  // namespace batchplane::fuzz
