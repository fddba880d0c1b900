// SPDX-License-Identifier: BSD-3-Clause
// acl_counts.cc - carries packet counts over between rules that are in both lists.
#include "modules/acl/acl_counts.h"

#include <map>

namespace batchplane {
namespace {

constexpr uint32_t kNoSlot = ~0U;

// For each slot of `next`: the slot of `before` with the same match and action.
std::vector<uint32_t> same_slots(const AclBook& before, const AclBook& next) {
  std::map<AclMatch, uint32_t> index_of;
  for (uint32_t i = 0; i < before.rules.size(); ++i) index_of[before.rules[i].match] = i;
  std::vector<uint32_t> slots(kAclFirstRuleSlot + next.rules.size(), kNoSlot);
  for (uint32_t i = 0; i < kAclFirstRuleSlot; ++i) slots[i] = i;
  for (size_t i = 0; i < next.rules.size(); ++i) {
    const auto it = index_of.find(next.rules[i].match);
    if (it == index_of.end() || before.rules[it->second].action != next.rules[i].action) continue;
    slots[kAclFirstRuleSlot + i] = kAclFirstRuleSlot + it->second;
  }
  return slots;
}

std::vector<uint64_t> carried(const std::vector<uint64_t>& counts,
                              const std::vector<uint32_t>& slots) {
  std::vector<uint64_t> next(slots.size(), 0);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] != kNoSlot) next[i] = counts[slots[i]];
  }
  return next;
}

}  // namespace

std::vector<uint64_t> AclCounts::all() const {
  std::vector<uint64_t> counts = earlier_;
  for (size_t i = 0; i < counts.size(); ++i) {
    counts[i] += (*slots_)[i].pkts.value();
    if (old_slots_ != nullptr && i < old_slot_of_.size() && old_slot_of_[i] != kNoSlot) {
      counts[i] += (*old_slots_)[old_slot_of_[i]].pkts.value();
    }
  }
  return counts;
}

void AclCounts::follow(const AclBook& before, const AclBook& next,
                       std::shared_ptr<AclSlots> slots) {
  earlier_ = carried(all(), same_slots(before, next));
  slots_ = std::move(slots);
  old_slots_ = nullptr;
}

void AclCounts::inherit(const AclCounts& old, const AclBook& old_book, const AclBook& book) {
  old_slot_of_ = same_slots(old_book, book);
  std::vector<uint64_t> before = old.all();
  // Counts in the old module's own tables are excluded: all() reads them later.
  for (size_t i = 0; i < before.size(); ++i) before[i] -= (*old.slots_)[i].pkts.value();
  earlier_ = carried(before, old_slot_of_);
}

}  // namespace batchplane
