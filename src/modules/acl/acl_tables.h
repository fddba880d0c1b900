// SPDX-License-Identifier: BSD-3-Clause
// acl_tables.h - the worker's copy of an access list: classifiers, and the action and packet count
// of each rule.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/module/context.h"
#include "core/module/drop_reason.h"
#include "modules/acl/acl_book.h"
#include "modules/acl/acl_class_forest.h"
#include "modules/acl/acl_class_tables.h"
#include "modules/acl/acl_classifier.h"
#include "modules/acl/acl_header.h"
#include "modules/common/tally.h"

namespace batchplane {

// The action on a packet.
struct AclFate {
  enum Kind : uint16_t { kPass = 0, kMark = 1, kDrop = 2 };
  exec::GateIndex gate = 0;
  uint16_t kind = kPass;
  uint32_t number = 0;  // the mark, or the index of the drop reason
};
AclFate acl_fate_of(const AclAction& action, const DropReason& denied);

struct AclSlot {
  Tally pkts;  // worker
  AclFate fate;
};
static_assert(sizeof(AclSlot) == 16);

// The first slots are for packets that match no rule or are not looked up.
enum AclSpecialSlot : uint32_t {
  kAclDefaultSlot = 0,
  kAclOtherSlot,
  kAclTooShortSlot,
  kAclBadHeaderSlot,
  kAclTinyFragmentSlot,
  kAclFirstRuleSlot,  // slot of rule i: this + i
};
using AclSlots = std::vector<AclSlot>;

// Immutable except for the counts. Built by the control thread while the old tables are in use.
class AclTables {
 public:
  using Specials = std::array<AclFate, kAclFirstRuleSlot>;
  // Throws ConfigError when there is no memory. `may_use_classes`: IPv4 lists may use class tables.
  AclTables(const AclBook& book, const Specials& specials, const DropReason& denied,
            bool may_use_classes);

  // Finds the slot of each packet. Worker.
  void find(Batch& batch, uint32_t* slots) const noexcept;

  [[nodiscard]] AclNeeds needs() const { return needs_; }
  // Finds the slots of packets of one class; 0 if no rule matches. Worker.
  void classify(AclClass question, const uint8_t* const* headers, uint32_t* slots,
                uint32_t n) const noexcept;
  [[nodiscard]] AclSlot* slots() const { return slots_->data(); }
  // Outlives the tables, since counts are read after the tables are freed.
  [[nodiscard]] const std::shared_ptr<AclSlots>& shared_slots() const { return slots_; }
  // The lookup method used for each class of packets.
  [[nodiscard]] Dict lookup_paths() const;

 private:
  void build(AclClass question, const std::vector<AclEntry>& entries, bool may_use_classes);

  AclNeeds needs_;
  // Indexed by AclClass; at most one of the three is set, none if there are no rules.
  std::unique_ptr<AclClassTables> class_tables_[kAclQuestions];
  std::unique_ptr<AclClassForest> class_forests_[kAclQuestions];
  std::unique_ptr<AclClassifier> classifiers_[kAclQuestions];
  std::shared_ptr<AclSlots> slots_;
};

}  // namespace batchplane
