// SPDX-License-Identifier: BSD-3-Clause
// vlan_rules.h - maps VLANs, one tag or two, to a gate and a VRF: the rules of the control thread,
// and the table that workers read.
#pragma once

#include <array>
#include <map>
#include <string>

#include "base/flat_table.h"
#include "base/value.h"

namespace batchplane {

// An entry is one 32-bit word, so that a rule without inner VLAN costs one load.
struct VlanEntry {
  static constexpr uint32_t kGateMask = 0xfff;
  static constexpr uint32_t kIsRule = 1U << 12;    // there is a rule for the outer VLAN alone
  static constexpr uint32_t kHasVrf = 1U << 13;    // the VRF is in the upper 16 bits
  static constexpr uint32_t kHasInner = 1U << 14;  // there are two-tag rules with this outer VLAN
};

struct VlanTable {
  std::array<uint32_t, 4096> outer{};
  FlatTable<1> inner;

  static FlatTable<1>::Key inner_key(uint32_t vid, uint32_t inner_vid) {
    return {uint64_t{1} << 32 | vid << 16 | inner_vid};
  }
};

// Owner: control thread.
class VlanRules {
 public:
  struct Rule {
    uint32_t gate = 0;
    int32_t vrf = -1;  // -1: the packet keeps its VRF
  };
  // Outer VLAN; inner VLAN or -1.
  using Key = std::pair<uint32_t, int32_t>;

  void load(const List& rules, const std::string& where);
  // `verb`: add, delete or replace. Checks all before any change. Throws ConfigError.
  void edit(const std::string& verb, const Value& args, uint32_t n_gates);

  [[nodiscard]] size_t size() const { return rules_.size(); }
  [[nodiscard]] uint32_t highest_gate() const;
  [[nodiscard]] List list() const;
  [[nodiscard]] VlanTable table() const;

 private:
  using Rules = std::map<Key, Rule>;
  static Rules parse_all(const List& items, const std::string& where, uint32_t n_gates);

  Rules rules_;
};

}  // namespace batchplane
