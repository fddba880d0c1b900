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
};

}  // namespace batchplane::fuzz
