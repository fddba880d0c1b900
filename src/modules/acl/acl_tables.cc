// SPDX-License-Identifier: BSD-3-Clause
// acl_tables.cc - builds only the classifiers that an access list needs.
#include "modules/acl/acl_tables.h"

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

AclTables::AclTables(const AclBook& book, const Specials& specials, const DropReason& denied,
                     bool may_use_classes)
    : slots_(std::make_shared<AclSlots>(kAclFirstRuleSlot + book.rules.size())) {
  for (size_t i = 0; i < specials.size(); ++i) (*slots_)[i].fate = specials[i];
  for (size_t i = 0; i < book.rules.size(); ++i) {
    (*slots_)[kAclFirstRuleSlot + i].fate = acl_fate_of(book.rules[i].action, denied);
  }
  // Rules without addresses apply to both families; a list of IPv4 rules only builds no IPv6 table.
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
    const bool is_v4 = family == AclFamily::kIpv4;
    const bool reads_ports = all.size() != portless.size();
    const bool reads_flags = std::ranges::any_of(
        all, [](const AclEntry& entry) { return entry.match->tcp_flags_mask != 0; });
    if (reads_ports) {
      (is_v4 ? needs_.ipv4_transport_bytes : needs_.ipv6_transport_bytes) =
          reads_flags ? kAclFlagsBytes : kAclPortsBytes;
    }
    if (reads_ports) build(is_v4 ? AclClass::kIpv4 : AclClass::kIpv6, all, may_use_classes);
    if (portless.empty()) continue;
    build(is_v4 ? AclClass::kIpv4Portless : AclClass::kIpv6Portless, portless, may_use_classes);
  }
}

void AclTables::build(AclClass question, const std::vector<AclEntry>& entries,
                      bool may_use_classes) {
  const auto index = static_cast<uint32_t>(question);
  const bool is_v4 = question == AclClass::kIpv4 || question == AclClass::kIpv4Portless;
  const bool reads_ports = question == AclClass::kIpv4 || question == AclClass::kIpv6;
  if (is_v4 && may_use_classes) class_tables_[index] = AclClassTables::make(reads_ports, entries);
  if (class_tables_[index] != nullptr) return;
  if (is_v4 && may_use_classes) class_forests_[index] = AclClassForest::make(reads_ports, entries);
  if (class_forests_[index] != nullptr) return;
  classifiers_[index] = std::make_unique<AclClassifier>(is_v4 ? AclFamily::kIpv4 : AclFamily::kIpv6,
                                                        reads_ports, entries);
}

void AclTables::classify(AclClass question, const uint8_t* const* headers, uint32_t* slots,
                         uint32_t n) const noexcept {
  const auto index = static_cast<uint32_t>(question);
  if (class_tables_[index] != nullptr) {
    class_tables_[index]->classify(headers, slots, n);
  } else if (class_forests_[index] != nullptr) {
    class_forests_[index]->classify(headers, slots, n);
  } else if (classifiers_[index] != nullptr) {
    classifiers_[index]->classify(headers, slots, n);
  } else {
    std::fill_n(slots, n, uint32_t{kAclDefaultSlot});
  }
}

Dict AclTables::lookup_paths() const {
  static constexpr const char* kNames[] = {"ipv4", "ipv4_portless", "ipv6", "ipv6_portless"};
  Dict paths;
  for (uint32_t i = 0; i < kAclQuestions; ++i) {
    if (class_tables_[i] != nullptr) paths[kNames[i]] = "class tables";
    if (class_forests_[i] != nullptr) paths[kNames[i]] = "class tables by destination";
    if (classifiers_[i] != nullptr) paths[kNames[i]] = classifiers_[i]->lookup_path();
  }
  return paths;
}

}  // namespace batchplane
