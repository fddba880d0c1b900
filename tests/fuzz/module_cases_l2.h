// SPDX-License-Identifier: BSD-3-Clause
// module_cases_l2.h - VLAN tags, VRFs, tunnels, and what edits or copies frames in general.
#pragma once

#include "module_case.h"

namespace batchplane::fuzz {

inline const ModuleCase kL2Cases[] = {
    {"vlan_push", R"({"vid": 100, "pcp": -1, "tpid": "0x88a8"})"},
    {"vlan_push", R"({"vid": 0, "pcp": 7, "dei": true, "max_tags": 8})"},
    {"vlan_pop", "{}"},
    {"vlan_pop", R"({"tags": "all", "untagged": "pass", "max_tags": 8})"},
    {"vlan_split",
     R"({"rules": [{"vid": 5, "gate": 1, "vrf": 1}, {"vid": 7, "inner_vid": 9, "gate": 2},
                   {"vid": 0, "gate": 0}], "pop": true, "untagged_gate": 0, "default_gate": 2})",
     3},
    {"vlan_split", R"({"rules": [{"vid": 5, "gate": 1}], "max_tags": 1})", 2},
    {"set_meta", R"({"vrf": 1, "mark": 7, "tunnel_id": 9})"},
    {"vrf_lookup",
     R"({"vrfs": [{"vrf": 0, "max_prefixes": 1024, "max_next_hops": 64,
                   "next_hops": [{"id": 1, "gate": 0}, {"id": 2, "gate": 1},
                                 {"id": 3, "group": [{"next_hop": 1}, {"next_hop": 2}]}],
                   "routes": [{"prefix": "0.0.0.0/0", "next_hop": 3},
                              {"prefix": "10.9.9.0/28", "drop": true}]},
                  {"vrf": 1, "max_prefixes": 1024,
                   "routes": [{"prefix": "10.0.0.0/8", "gate": 1}]}]})",
     2},
    {"vrf_lookup", R"({"vrfs": []})", 1},
    {"vxlan_encap",
     R"({"tunnels": [{"id": 0, "vni": 77, "remote": "192.0.2.2", "local": "192.0.2.1",
                      "vrf": 2}], "ttl": 0, "df": false})"},
    {"vxlan_encap",
     R"({"tunnels": [{"id": 0, "vni": 1, "remote": "192.0.2.2", "local": "192.0.2.1"}],
         "by": "mark", "dscp": 46})"},
    {"vxlan_decap", R"({"vnis": [{"vni": 77, "gate": 1, "vrf": 1}, {"vni": 0, "gate": 0}]})", 2},
    {"vxlan_decap",
     R"({"vnis": [{"vni": 1}], "udp_port": 53, "verify_udp_checksum": false, "other_gate": 1})", 2},
    {"l4_checksum", "{}"},
    {"l4_checksum", R"({"mode": "update", "fill_zero_udp": true})"},
    {"l4_checksum", R"({"allow_zero_udp6": true})"},
    {"rewrite",
     R"({"fields": [{"base": "l3", "offset": 12, "size_bytes": 8, "value": 1},
                    {"base": "l3", "offset": 17, "size_bytes": 7, "value": 5},
                    {"base": "l4", "offset": 1, "size_bytes": 4, "value": "0xff00", "mask": "0xffff"},
                    {"offset": 11, "size_bytes": 8, "value": 3, "mask": "0x0f"}]})"},
    {"rewrite",
     R"({"fields": [{"offset": 40, "size_bytes": 8, "value": 9}], "mend_checksums": true})"},
    {"rewrite", R"({"fields": [{"offset": 3, "size_bytes": 1, "value": 9}],
                    "mend_checksums": false})"},
    {"mirror", "{}", 2},
    {"mirror", R"({"sample_one_in": 3, "snap_bytes": 20})", 2},
};

}  // namespace batchplane::fuzz
