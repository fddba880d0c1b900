// SPDX-License-Identifier: BSD-3-Clause
// module_cases.h - the modules that fuzz_modules runs, with parameters that reach their branches.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "module_case.h"
#include "module_cases_fragment.h"
#include "module_cases_ipv6.h"
#include "module_cases_l2.h"
#include "module_cases_load_balancer.h"
#include "module_cases_mobile.h"
#include "module_cases_nat.h"
#include "module_cases_policy.h"

namespace batchplane::fuzz {

// No packets go into these, or only through a device.
inline constexpr const char* kNotFuzzed[] = {"source", "port_in", "local_tap"};

inline const ModuleCase kRouterCases[] = {
    {"null", "{}"},
    {"counter", R"({"by_size": true})"},
    {"meter", R"({"window_ns": 1000000})"},
    {"merge", "{}"},
    {"cost", R"({"cost_per_pkt_ns": 0})"},
    {"mac_rewrite", R"({"dst": "02:00:00:00:00:09", "src": "02:00:00:00:00:08"})"},
    {"ttl", "{}"},
    {"ttl", R"({"mend_checksum": false})"},
    {"checksum", R"({"mode": "full"})"},
    {"checksum", R"({"mode": "incremental", "ttl_steps": 1})"},
    {"checksum", R"({"mode": "check"})"},
    {"ipv4_check", "{}"},
    {"ipv4_check", R"({"l3_offset_bytes": 18, "drop_martians": false})"},
    {"ether_type",
     R"({"rules": [{"ether_type": "ipv4", "gate": 0}, {"ether_type": "arp", "gate": 1},
                       {"ether_type": "vlan", "gate": 2}]})",
     3},
    {"ether_type", R"({"rules": [{"ether_type": "0x86dd", "gate": 1}], "default_gate": 0})", 2},
    {"exact_match", R"({"fields": [{"offset": 12, "size_bytes": 2}, {"offset": 26, "size_bytes": 4},
                         {"offset": 36, "size_bytes": 2, "mask": "0xfff0"}],
                        "rules": [{"values": ["0x0800", "10.0.1.2", 48], "gate": 1}]})",
     3},
    {"exact_match", R"({"fields": [{"offset": 2000, "size_bytes": 8}], "default_gate": 0})", 1},
    {"l2_table", R"({"entries": [{"mac": "02:00:00:00:00:01", "gate": 1}], "default_gate": 0})", 2},
    {"l2_table", R"({"entries": [{"mac": "02:00:00:00:00:02", "gate": 1}]})", 2},
    {"split", R"({"mode": "hash", "gates": 5})", 5},
    {"split", R"({"mode": "weighted", "gates": 2, "weights": [1, 3]})", 2},
    {"split", R"({"mode": "round_robin", "gates": 3})", 3},
    {"split", R"({"mode": "random", "gates": 3})", 3},
    {"ipv4_lookup",
     R"({"table": "main", "interfaces": true, "max_next_hops": 64, "max_prefixes": 4096,
         "next_hops": [{"id": 1, "via": "10.0.2.2"}, {"id": 2, "via": "10.0.2.3"},
                       {"id": 3, "group": [{"next_hop": 1, "weight": 1}, {"next_hop": 2, "weight": 2}]}],
         "routes": [{"prefix": "0.0.0.0/0", "via": "10.0.2.2"}, {"prefix": "10.9.0.0/16", "next_hop": 3},
                    {"prefix": "10.9.9.0/28", "drop": true}, {"prefix": "10.8.0.0/14", "gate": 2}]})",
     3},
    {"ipv4_lookup", R"({"routes": [{"prefix": "10.0.0.0/8", "gate": 1}], "max_prefixes": 1024})",
     2},
    {"neighbour",
     R"({"table": "main", "hold_pkts": 4, "max_hold_pkts": 32, "max_neighbours": 64,
         "retry_ns": 1000000, "reachable_ns": 1000000000,
         "neighbours": [{"interface": "wan", "address": "10.0.2.2", "mac": "02:00:00:00:02:02"}]})",
     2},
    {"icmp_echo", "{}", 2},
    {"icmp_error", R"({"table": "main", "errors_per_s": 10000000, "burst": 1000})"},
    {"icmp_error", R"({"errors_per_s": 1000, "burst": 1})"},
    {"pcap_tap", R"({"path": "@TAP", "ring_bytes": 65536, "max_file_bytes": 65536})"},
    {"queue", R"({"size_pkts": 16})"},
    {"port_out", R"({"port": "null", "interface": "lan"})"},
    {"sink", "{}"},
    {"drop", "{}"},
};

// Families of modules have files of their own, module_cases_<family>.h; each is one line here.
inline std::vector<ModuleCase> module_cases() {
  const std::span<const ModuleCase> families[] = {
      kRouterCases, kLoadBalancerCases, kPolicyCases,   kL2Cases,
      kIpv6Cases,   kNatCases,          kFragmentCases, kMobileCases,
  };
  std::vector<ModuleCase> all;
  for (const auto& family : families) all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace batchplane::fuzz
