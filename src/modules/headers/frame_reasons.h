// SPDX-License-Identifier: BSD-3-Clause
// frame_reasons.h - drop reasons of modules that add, remove or read outer headers.
#pragma once

#include "core/module/drop_reason.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane::frame {

inline const DropReason kNoHeadroom{
    "no_headroom", "there is no room in front of the packet for one more header",
    "take off headers before others are added; the path has too many encapsulations"};
inline const DropReason kFrameTooLong{"frame_too_long",
                                      "the frame would be longer than any that can be sent",
                                      "lower the MTU of the side where the packet comes from"};
inline const DropReason kUnknownRemote{"unknown_remote",
                                       "another host than the tunnel's other end sent the packet",
                                       "look for a forger, or correct the tunnel's remote"};
inline const DropReason kNotTagged{"not_tagged", "the frame has no VLAN tag",
                                   "split by ether_type first, or let untagged frames pass"};
inline const DropReason kTooManyTags{"too_many_tags",
                                     "the frame has, or would have, more VLAN tags than allowed",
                                     "look for a bridging loop; else raise max_tags"};

}  // namespace batchplane::frame
