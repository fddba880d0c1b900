// SPDX-License-Identifier: BSD-3-Clause
// drop_reason.h - named drop reasons; each module file defines its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/snapshot.h"

namespace batchplane {

inline constexpr uint32_t kMaxDropReasons = 256;

// Define at namespace scope: const DropReason kTtlExpired{"ttl_expired", "...", "..."};
// The index is assigned at static initialisation and is valid within one process; definitions of the same
// name share it.
class DropReason {
 public:
  DropReason(const char* name, const char* meaning, const char* remedy);
  [[nodiscard]] uint16_t index() const { return index_; }

 private:
  uint16_t index_;
};

using exec::DropReasonInfo;

// All reasons of this process, by index.
const std::vector<DropReasonInfo>& drop_reasons();

}  // namespace batchplane
