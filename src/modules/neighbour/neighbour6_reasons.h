// SPDX-License-Identifier: BSD-3-Clause
// neighbour6_reasons.h - drop reasons of neighbour6, in addition to those of neighbour.
#pragma once

#include "modules/neighbour/neighbour_reasons.h"

namespace batchplane::neighbour {

inline const DropReason kNdMalformed{
    "nd_malformed",
    "a neighbour discovery message breaks RFC 4861 (hop limit, checksum, length, options)",
    "look at the sender; a hop limit below 255 says that it comes from beyond the link"};
inline const DropReason kNdConflict{
    "nd_conflict", "another host claims one of the router's own addresses",
    "find the host by its MAC with tcpdump and give it another address"};
inline const DropReason kNdDone{
    "nd_done", "a neighbour discovery message that did its work (not a loss)", "none needed"};
inline const DropReason kBeyondScope{"beyond_scope",
                                     "a packet from or to a link-local address is not sent on",
                                     "give the sender a global address; on_drop sends unreachable"};

}  // namespace batchplane::neighbour
