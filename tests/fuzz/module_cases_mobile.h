// SPDX-License-Identifier: BSD-3-Clause
// module_cases_mobile.h - tunnels and sessions of mobile users, on one table.
#pragma once

#include "module_case.h"

namespace batchplane::fuzz {

inline const ModuleCase kMobileCases[] = {
    // Rules 0 to 7, to which marked packets belong. LAN and WAN addresses of the frames are users.
    {"session_downlink",
     R"({"table": "users", "by": "bearer", "sessions": [
         {"seid": 1, "ue": "10.0.2.2", "ue6": "2001:db8:2::/64",
          "pdrs": [{"id": 1, "source": "access", "teid": 77, "far": 0, "qers": [1, 2], "urrs": [1]},
                   {"id": 2, "source": "access", "teid": 78, "qfi": 5, "far": 0},
                   {"id": 3, "source": "core", "far": 1, "qers": [1], "urrs": [1], "precedence": 9,
                    "filters": ["permit out udp from any 5-60 to any",
                                "permit out ip from 10.0.1.0/24 to assigned"]},
                   {"id": 4, "source": "core", "far": 2, "qers": [2, 3], "bearer": 1}],
          "fars": [{"id": 0}, {"id": 1, "teid": 9, "peer": "10.0.1.2"},
                   {"id": 2, "teid": 10, "peer": "2001:db8:1::2"}],
          "qers": [{"id": 1, "qfi": 9, "mbr_up_bps": 1000000, "mbr_down_bps": 1000000},
                   {"id": 2, "mbr_down_bps": 5000000}, {"id": 3, "gate_up": "closed"}],
          "urrs": [{"id": 1, "volume_bytes": 5000, "time_ns": 1000000, "quota_bytes": 60000,
                     "up_quota_bytes": 30000, "quota_ns": 1000000000}]},
         {"seid": 2, "ue": "10.0.1.2",
          "pdrs": [{"id": 1, "source": "access", "teid": 79, "far": 0},
                   {"id": 2, "source": "core", "far": 1},
                   {"id": 3, "source": "access", "teid": 80, "far": 2, "qers": [1]},
                   {"id": 4, "source": "access", "teid": 80, "far": 0, "qfi": 6}],
          "fars": [{"id": 0}, {"id": 1, "teid": 11, "peer": "10.0.1.3", "action": "buffer"},
                   {"id": 2, "action": "drop"}],
          "qers": [{"id": 1, "gate_up": "closed"}]}]})",
     2},
    {"session_downlink", R"({"table": "nobody"})"},
    {"session_split", R"({"table": "users", "by": "flow", "bearers": 2})", 4},
    {"session_split", R"({"table": "users", "by": "group"})", 2},
    {"session_hold", R"({"table": "users", "hold_pkts": 50, "session_pkts": 20})"},
    {"session_enforce", R"({"table": "users"})"},
    {"gtpu_decap", R"({"table": "users", "errors_per_s": 1000000, "burst": 100})", 5},
    {"gtpu_decap", R"({"any_teid": true, "verify_udp_checksum": false, "local": "10.0.1.1"})", 1},
    {"gtpu_encap", R"({"table": "users", "local": "10.0.2.1"})"},
    {"gtpu_encap",
     R"({"table": "users", "local": "10.0.2.1", "local6": "2001:db8:2::1", "sequence": true, "source_port": 0, "df": false})"},
    {"mark_split", R"({"first": 16777216})", 4},
    {"mark_split", R"({"default_gate": 1})", 2},
};

}  // namespace batchplane::fuzz
