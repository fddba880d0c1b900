// SPDX-License-Identifier: BSD-3-Clause
// nat_reasons.h - why packets end at modules that translate addresses.
#pragma once

#include "core/drop_reason.h"
#include "modules/nat_rewrite.h"

namespace batchplane::nat {

inline const DropReason kTooShort{
    "too_short", "the packet ends before the headers that are needed here",
    "check what sends such packets; a truncating tap or port may be the cause"};
inline const DropReason kBadVersion{"bad_version", "the IP version is not 4",
                                    "split by ether_type first, so that only IPv4 comes here"};
inline const DropReason kBadHeaderLength{
    "bad_header_length", "the IPv4 header is under 20 bytes or longer than the packet",
    "look at the sender; such packets are broken or forged"};
inline const DropReason kBadTotalLength{
    "bad_total_length", "the IPv4 total length is below the header's or beyond the frame's",
    "look for truncation on the way, or a tap with a short snap length"};

inline const DropReason& reason_of(Fault fault) {
  if (fault == Fault::kVersion) return kBadVersion;
  if (fault == Fault::kHeaderLength) return kBadHeaderLength;
  return fault == Fault::kTotalLength ? kBadTotalLength : kTooShort;
}

}  // namespace batchplane::nat
