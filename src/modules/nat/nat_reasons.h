// SPDX-License-Identifier: BSD-3-Clause
// nat_reasons.h - drop reasons shared by the modules that translate addresses.
#pragma once

#include "core/module/drop_reason.h"
#include "modules/headers/shared_reasons.h"
#include "modules/nat/nat_rewrite.h"

namespace batchplane::nat {

inline const DropReason& reason_of(Fault fault) {
  if (fault == Fault::kVersion) return reason::kBadVersion;
  if (fault == Fault::kHeaderLength) return reason::kBadHeaderLength;
  return fault == Fault::kTotalLength ? reason::kBadTotalLength : reason::kTooShort;
}

}  // namespace batchplane::nat
