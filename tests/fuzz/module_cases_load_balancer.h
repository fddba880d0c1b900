// SPDX-License-Identifier: BSD-3-Clause
// module_cases_load_balancer.h - load balancers whose services the frames of the corpus are for.
#pragma once

#include "module_case.h"

namespace batchplane::fuzz {

inline const ModuleCase kLoadBalancerCases[] = {
    {"load_balancer", R"({"table_slots": 251, "services": [
        {"name": "web", "address": "10.0.1.2", "proto": "tcp", "port": 80,
         "backends": [{"name": "a", "gate": 0, "weight": 3}, {"name": "b", "gate": 1}]},
        {"name": "udp", "address": "10.0.1.2", "proto": "udp",
         "backends": [{"name": "a", "gate": 2, "mac": "02:00:00:00:00:09"}]},
        {"name": "all", "address": "10.0.2.1",
         "backends": [{"name": "a", "gate": 1, "tunnel_id": 9}, {"name": "b", "gate": 2}]},
        {"name": "none", "address": "10.0.0.2"},
        {"name": "six", "address": "fd00::2", "backends": [{"name": "a", "gate": 1}]}]})",
     3},
    {"load_balancer", R"({"table_slots": 7, "other_gate": 0, "services": [
        {"name": "all", "address": "10.9.0.1", "backends": [{"name": "a", "gate": 1}]},
        {"name": "six", "address": "2001:db8::1", "proto": "tcp", "port": 443,
         "backends": [{"name": "a", "gate": 1}, {"name": "b", "gate": 0}]}]})",
     2},
};

}  // namespace batchplane::fuzz
