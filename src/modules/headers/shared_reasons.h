// SPDX-License-Identifier: BSD-3-Clause
// shared_reasons.h - drop reasons used by more than one family of modules: one name, one text.
#pragma once

#include "core/module/drop_reason.h"

namespace batchplane::reason {

inline const DropReason kTooShort{
    "too_short", "the packet ends before the headers that are needed here",
    "check what sends such packets; a truncating tap or port may be the cause"};
inline const DropReason kNoMatch{"no_match",
                                 "no rule matches the packet and there is no default gate",
                                 "add a rule, or set default_gate"};

// IP headers.
inline const DropReason kBadVersion{
    "bad_version", "the IP version is not the one that is read here",
    "split by ether_type first, so that only IPv4 or only IPv6 comes here"};
inline const DropReason kBadHeaderLength{
    "bad_header_length", "the IPv4 header is under 20 bytes or longer than the packet",
    "look at the sender; such packets are broken or forged"};
inline const DropReason kBadTotalLength{
    "bad_total_length", "the IPv4 total length is below the header's or beyond the frame's",
    "look for truncation on the way, or a tap with a short snap length"};
inline const DropReason kBadIpv4Checksum{
    "bad_checksum", "the IPv4 header checksum is wrong",
    "turn off checksum offload at the sender's end of a veth or tap"};
inline const DropReason kMartianSource{
    "martian_source",
    "the source address cannot be that of a sender (unspecified, loopback, multicast, reserved)",
    "look for a misconfigured host, or set drop_martians: false"};
inline const DropReason kMartianDestination{
    "martian_destination",
    "the destination address cannot be routed (unspecified, loopback, within a host)",
    "look for a misconfigured host, or set drop_martians: false"};

// Routes.
inline const DropReason kNoRoute{
    "no_route", "no route leads to the packet's destination",
    "add a route, or a default route 0.0.0.0/0 or ::/0; on_drop sends unreachable"};
inline const DropReason kRouteDrop{"route_drop", "the route to the packet's destination says drop",
                                   "delete or change that route if this is not wanted"};

// ICMP, both versions.
inline const DropReason kBadIcmpChecksum{
    "bad_icmp_checksum", "the checksum of an echo request is wrong",
    "on a veth turn off tx checksum offload at the sender; else look for a bad link"};
inline const DropReason kIcmpRateLimited{
    "icmp_rate_limited", "no error was sent, since many were sent just before",
    "look at the drops that cause them; or raise errors_per_s and burst"};
inline const DropReason kIcmpNotDue{"icmp_not_due",
                                    "a dropped packet about which no ICMP error may or can be sent",
                                    "the drop counters of the modules in front tell the reasons"};

}  // namespace batchplane::reason
