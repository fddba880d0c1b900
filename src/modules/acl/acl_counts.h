// SPDX-License-Identifier: BSD-3-Clause
// acl_counts.h - packet counts of rules, preserved across edits and applies.
#pragma once

#include <memory>
#include <vector>

#include "modules/acl/acl_tables.h"

namespace batchplane {

// Each edit makes new tables with new counters; this class adds them up. Control thread.
class AclCounts {
 public:
  explicit AclCounts(std::shared_ptr<AclSlots> slots)
      : slots_(std::move(slots)), earlier_(slots_->size(), 0) {}

  // Indexed by slot.
  [[nodiscard]] std::vector<uint64_t> all() const;

  // Call when the tables of `next` have replaced those of `before` and no worker uses the latter
  // any more.
  void follow(const AclBook& before, const AclBook& next, std::shared_ptr<AclSlots> slots);

  // Takes over the counts of another module, which keeps counting until adopt().
  void inherit(const AclCounts& old, const AclBook& old_book, const AclBook& book);
  void adopt(const AclCounts& old) noexcept { old_slots_ = old.slots_; }

 private:
  std::shared_ptr<AclSlots> slots_;      // of the tables in use
  std::vector<uint64_t> earlier_;        // by slot: counts of freed tables
  std::shared_ptr<AclSlots> old_slots_;  // of the module that this one has replaced
  std::vector<uint32_t> old_slot_of_;    // by slot
};

}  // namespace batchplane
