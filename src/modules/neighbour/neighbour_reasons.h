// SPDX-License-Identifier: BSD-3-Clause
// neighbour_reasons.h - drop reasons of a neighbour module.
#pragma once

#include "core/module/drop_reason.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane::neighbour {

inline const DropReason kUnreachable{
    "neighbour_unreachable", "the next hop did not answer when it was asked for its MAC",
    "check that the host is up and on this link; on_drop sends unreachable"};
inline const DropReason kHoldFull{
    "neighbour_hold_full", "too many packets wait for one unresolved next hop",
    "normal for a burst to a silent host; raise hold_pkts if the host answers slowly"};
inline const DropReason kTableFull{"neighbour_table_full", "no room for one more neighbour",
                                   "look for an address scan; else raise max_neighbours"};
inline const DropReason kMtuExceeded{
    "mtu_exceeded", "the packet is longer than the MTU of its interface",
    "on_drop sends fragmentation needed; or raise the interface's mtu_bytes"};
inline const DropReason kNoInterface{
    "no_interface", "the packet has no next hop with an interface",
    "put an ipv4_lookup of the same table with interfaces: true in front"};
inline const DropReason kArpMalformed{"arp_malformed",
                                      "the ARP message is cut short or not IPv4 over Ethernet",
                                      "look at the sender of these frames"};
inline const DropReason kArpConflict{
    "arp_conflict", "another host claims one of the router's own addresses",
    "find the host by its MAC with tcpdump and give it another address"};
inline const DropReason kArpDone{"arp_done", "an ARP message that did its work (not a loss)",
                                 "none needed"};

}  // namespace batchplane::neighbour
