// SPDX-License-Identifier: BSD-3-Clause
// acl_tables.h - an access list as workers use it: classifiers, and what each rule does and has
// done.
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

// What becomes of a packet.
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

// The first slots are for packets that no rule decides on.
enum AclSpecialSlot : uint32_t {
  kAclDefaultSlot = 0,
  kAclOtherSlot,
  kAclTooShortSlot,
  kAclBadHeaderSlot,
  kAclTinyFragmentSlot,
  kAclFirstRuleSlot,  // slot of rule i: this + i
};
using AclSlots = std::vector<AclSlot>;

// Immutable but for the counts. Built by the control thread beside the one in use.
class AclTables {
 public:
  using Specials = std::array<AclFate, kAclFirstRuleSlot>;
  // Throws ConfigError when there is no memory.
  // `may_use_classes`: short IPv4 lists are looked up through tables of classes.
  AclTables(const AclBook& book, const Specials& specials, const DropReason& denied,
            bool may_use_classes);

  // The slot of each packet. Worker.
  void find(Batch& batch, uint32_t* slots) const noexcept;

  [[nodiscard]] AclNeeds needs() const { return needs_; }
  // The slots of all packets of one question; 0 where no rule is for it. Worker.
  void classify(AclClass question, const uint8_t* const* headers, uint32_t* slots,
                uint32_t n) const noexcept;
  [[nodiscard]] AclSlot* slots() const { return slots_->data(); }
  // Outlives the tables: counts are read after they are gone.
  [[nodiscard]] const std::shared_ptr<AclSlots>& shared_slots() const { return slots_; }
  // Which look-up serves which packets.
  [[nodiscard]] Dict lookup_paths() const;

 private:
  void build(AclClass question, const std::vector<AclEntry>& entries, bool may_use_classes);

  AclNeeds needs_;
  // By AclClass; at most one of the three, none without rules.
  std::unique_ptr<AclClassTables> class_tables_[kAclQuestions];
  std::unique_ptr<AclClassForest> class_forests_[kAclQuestions];
  std::unique_ptr<AclClassifier> classifiers_[kAclQuestions];
  std::shared_ptr<AclSlots> slots_;
};

}  // namespace batchplane
