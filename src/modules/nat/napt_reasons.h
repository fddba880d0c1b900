// SPDX-License-Identifier: BSD-3-Clause
// napt_reasons.h - drop reasons of a napt module, other than those for faulty headers.
#pragma once

#include "modules/nat/nat_reasons.h"

namespace batchplane::nat {

inline const DropReason kNoMapping{
    "no_mapping",
    "it came for an external address, but no connection of an inside host is behind it",
    "normal for scans; for the router's own services set unmapped: local"};
inline const DropReason kFiltered{
    "nat_filtered", "a mapping is there, but its host has not sent to this remote end",
    "normal for scans; if an application needs it, choose another filtering"};
inline const DropReason kTableFull{
    "table_full", "all connections are taken",
    "look for a flood; else raise max_connections, or set when_full: evict_transitory"};
inline const DropReason kPortsExhausted{
    "ports_exhausted", "no port is left on the external address of the inside host",
    "add external addresses, or limit the hosts with max_per_host"};
inline const DropReason kHostLimit{"host_limit", "the inside host has max_per_host connections",
                                   "look at the host; else raise max_per_host"};
inline const DropReason kFragmentUnknown{
    "fragment_unknown", "a later fragment came without, or before, the first one of its packet",
    "put a reassembly module in front if the network reorders fragments"};
inline const DropReason kFragmentOverlap{"fragment_overlap",
                                         "a fragment overlaps the first one of its packet",
                                         "look at the sender; such packets are forged or broken"};
inline const DropReason kUnsupportedProtocol{"nat_protocol",
                                             "only TCP, UDP and ICMP can share an address",
                                             "give the host an address of its own with static_nat"};
inline const DropReason kIcmpUnsupported{
    "nat_icmp", "an ICMP message that is neither a query nor an error about a packet",
    "none needed; redirects and router messages end at a translator"};
inline const DropReason kOwnSource{
    "nat_own_source", "the source is an external address already",
    "look for a forged source; for the router's own packets set unmapped: local"};

}  // namespace batchplane::nat
