// SPDX-License-Identifier: BSD-3-Clause
// egress_reasons.h - the reason for drops by the scheduler itself and in front of it.
#pragma once

#include "core/module/drop_reason.h"

namespace batchplane::reason {

inline const DropReason kEgressFull{
    "egress_full", "the egress queue of the packet's flow is full, or the longest while all are",
    "the flow sends more than its share: raise its weight or limit_pkts"};

}  // namespace batchplane::reason
