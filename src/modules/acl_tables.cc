// SPDX-License-Identifier: BSD-3-Clause
// acl_tables.cc - builds the classifiers that an access list needs, and no others.
#include "modules/acl_tables.h"

#include <algorithm>

namespace batchplane {
AclFate acl_fate_of(const AclAction& action, const DropReason& denied) {
  switch (action.kind) {
    case AclAction::Kind::kPermit:
      return {};
    case AclAction::Kind::kDeny:
      return {.kind = AclFate::kDrop, .number = denied.index()};
    case AclAction::Kind::kGate:
      return {.gate = static_cast<exec::GateIndex>(action.number)};
    case AclAction::Kind::kMark:
      return {.kind = AclFate::kMark, .number = action.number};
  }
  return {};
}

AclTables::AclTables(const AclBook& book, const Specials& specials, const DropReason& denied)
    : slots_(std::make_shared<AclSlots>(kAclFirstRuleSlot + book.rules.size())) {
  for (size_t i = 0; i < specials.size(); ++i) (*slots_)[i].fate = specials[i];
  for (size_t i = 0; i < book.rules.size(); ++i) {
    (*slots_)[kAclFirstRuleSlot + i].fate = acl_fate_of(book.rules[i].action, denied);
  }
  // Rules without addresses are for both families; with IPv4 rules only, no IPv6 table is built.
  const std::vector<uint32_t> order = book.order();
  for (const AclFamily family : {AclFamily::kIpv4, AclFamily::kIpv6}) {
    std::vector<AclEntry> all;
    std::vector<AclEntry> portless;
    for (const uint32_t i : order) {
      const AclMatch& match = book.rules[i].match;
      if (!match.is_for(family)) continue;
      all.push_back({&match, kAclFirstRuleSlot + i});
      if (!match.needs_ports()) portless.push_back(all.back());
    }
    const auto first =
        static_cast<uint32_t>(family == AclFamily::kIpv4 ? AclClass::kIpv4 : AclClass::kIpv6);
    const bool reads_ports = all.size() != portless.size();
    (family == AclFamily::kIpv4 ? needs_.ipv4_ports : needs_.ipv6_ports) = reads_ports;
    if (reads_ports) classifiers_[first] = std::make_unique<AclClassifier>(family, true, all);
    if (portless.empty()) continue;
    classifiers_[first + 1] = std::make_unique<AclClassifier>(family, false, portless);
  }
}

void AclTables::classify(AclClass question, const uint8_t* const* headers, uint32_t* slots,
                         uint32_t n) const noexcept {
  const AclClassifier* classifier = classifiers_[static_cast<uint32_t>(question)].get();
  if (classifier == nullptr) {
    std::fill_n(slots, n, uint32_t{kAclDefaultSlot});
  } else {
    classifier->classify(headers, slots, n);
  }
}

const char* AclTables::lookup_path() const {
  for (const auto& classifier : classifiers_) {
    if (classifier != nullptr) return classifier->lookup_path();
  }
  return "none";
}

}  // namespace batchplane
