// SPDX-License-Identifier: BSD-3-Clause
// acl_counts.h - packet counts of rules, kept across edits of the list and applied pipelines.
#pragma once

#include <memory>
#include <vector>

#include "modules/acl/acl_tables.h"

namespace batchplane {

// Each edit makes new tables with counters of their own; this adds them up. Control thread.
class AclCounts {
 public:
  explicit AclCounts(std::shared_ptr<AclSlots> slots)
      : slots_(std::move(slots)), earlier_(slots_->size(), 0) {}

  // By slot.
  [[nodiscard]] std::vector<uint64_t> all() const;

  // The tables of `next` have replaced those of `before`, which no worker uses any more.
  void follow(const AclBook& before, const AclBook& next, std::shared_ptr<AclSlots> slots);

  // This list replaces another module's, which keeps counting until adopt().
  void inherit(const AclCounts& old, const AclBook& old_book, const AclBook& book);
  void adopt(const AclCounts& old) noexcept { old_slots_ = old.slots_; }

 private:
  std::shared_ptr<AclSlots> slots_;      // of the tables in use
  std::vector<uint64_t> earlier_;        // by slot: counted by tables that are gone
  std::shared_ptr<AclSlots> old_slots_;  // of the module that this one's replaced
  std::vector<uint32_t> old_slot_of_;    // by slot
};

}  // namespace batchplane
