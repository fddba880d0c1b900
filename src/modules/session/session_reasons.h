// SPDX-License-Identifier: BSD-3-Clause
// session_reasons.h - drop reasons for packets of mobile users.
#pragma once

#include "core/module/drop_reason.h"

namespace batchplane::session {

inline const DropReason kNoPdr{"no_pdr", "no packet detection rule of the session takes the packet",
                               "give the session a rule without filters, of the last precedence"};
inline const DropReason kUnknownUe{"unknown_ue", "no session has the packet's destination address",
                                   "add the session, or correct the routes that lead here"};
inline const DropReason kUeSource{"ue_source",
                                  "the packet's source is not the address of the session's user",
                                  "look for a user that forges addresses, or correct ue"};
inline const DropReason kSessionGone{
    "session_gone", "the packet's rule is there no longer, or it never had one",
    "put a gtpu_decap or session_downlink in front; after a deletion a few packets are normal"};
inline const DropReason kFarDrop{"far_drop",
                                 "the forwarding action of the packet's rule is to drop",
                                 "set the far's action to forward"};
inline const DropReason kFarBuffer{"far_buffer",
                                   "the forwarding action of the packet's rule is to buffer",
                                   "put a session_hold in front, which does so"};
inline const DropReason kQerGate{"qer_gate", "a QER closes the gate in the packet's direction",
                                 "open gate_up or gate_down"};
inline const DropReason kQerRate{"qer_rate", "the packet was beyond the rate of a QER",
                                 "raise mbr_up_bps or mbr_down_bps, or burst_ns"};

inline const DropReason kUrrQuota{"urr_quota", "a quota of a URR of the packet's rule is used up",
                                  "grant a new one: modify the urr's quota_bytes, up_quota_bytes, "
                                  "down_quota_bytes or quota_ns"};

}  // namespace batchplane::session
