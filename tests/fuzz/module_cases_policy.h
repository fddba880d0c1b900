// SPDX-License-Identifier: BSD-3-Clause
// module_cases_policy.h - access lists, policers and DSCP modules, as fuzz_modules runs them.
#pragma once

#include "module_case.h"

namespace batchplane::fuzz {

inline const ModuleCase kPolicyCases[] = {
    {"acl", R"({"rules": [{"src": "10.0.0.0/8", "dst_ports": "1-1000", "action": "mark 3"},
                          {"proto": "tcp", "tcp_flags": "syn,!ack", "action": "gate 1"},
                          {"src": "fd00::/8", "dst_ports": 53, "action": "gate 2"},
                          {"proto": "icmpv6", "action": "deny"}],
                "default_action": "gate 1", "other": "deny"})",
     3},
    {"acl", R"({"synthetic": {"style": "paper", "count": 100}})"},
    {"acl", R"({"rules": [{"dst": "fd00::/16", "action": "permit"}], "default_action": "permit"})"},
    {"policer", R"({"cir_bps": 1000000, "cbs_bytes": 3000, "ebs_bytes": 3000, "per": "flow",
                    "colour_aware": true, "yellow_action": "dscp af12"})"},
    {"policer", R"({"mode": "trtcm", "cir_bps": 100000000, "pir_bps": 1000000000, "per": "vrf",
                    "meters": 7, "yellow_action": "drop", "red_action": "dscp 1"})"},
    {"dscp", R"({"to": "ef", "map": [{"from": "cs1", "to": "le"}]})"},
    {"dscp_split", R"({"rules": [{"dscp": "ef", "gate": 1}, {"dscp": 0, "gate": 0}]})", 2},
};

}  // namespace batchplane::fuzz
