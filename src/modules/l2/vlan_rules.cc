// SPDX-License-Identifier: BSD-3-Clause
// vlan_rules.cc - parses and edits VLAN rules, and builds the lookup table.
#include "modules/l2/vlan_rules.h"

#include <algorithm>

#include "modules/common/item_syntax.h"
#include "modules/common/rule_table.h"
#include "modules/headers/vlan_header.h"

namespace batchplane {
namespace {

VlanRules::Key parse_key(const Value& item, const std::string& where) {
  if (!item.has("vid")) throw ConfigError("vid is missing", where, "such as {vid: 100, gate: 1}");
  return {static_cast<uint32_t>(int_value(item["vid"], 0, vlan::kMaxVid, where + ".vid")),
          static_cast<int32_t>(int_under(item, "inner_vid", 0, vlan::kMaxVid, -1, where))};
}

std::string place(const std::string& where, size_t i) {
  return where + "[" + std::to_string(i) + "]";
}

uint32_t entry_of(const VlanRules::Rule& rule) {
  return rule.gate | VlanEntry::kIsRule |
         (rule.vrf < 0 ? 0 : VlanEntry::kHasVrf | static_cast<uint32_t>(rule.vrf) << 16);
}

void check_size(size_t n_rules, const std::string& where) {
  if (n_rules <= kMaxRules) return;
  throw ConfigError("there would be " + std::to_string(n_rules) + " rules", where,
                    "at most " + std::to_string(kMaxRules) + " fit");
}

}  // namespace

VlanRules::Rules VlanRules::parse_all(const List& items, const std::string& where,
                                      uint32_t n_gates) {
  check_size(items.size(), where);
  Rules parsed;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string at = place(where, i);
    check_keys(items[i], {"vid", "inner_vid", "gate", "vrf"}, at);
    const Key key = parse_key(items[i], at);
    if (!items[i].has("gate")) {
      throw ConfigError("gate is missing", at, "such as {vid: 100, gate: 1}");
    }
    const Rule rule{
        static_cast<uint32_t>(int_value(items[i]["gate"], 0, int64_t{n_gates} - 1, at + ".gate")),
        static_cast<int32_t>(int_under(items[i], "vrf", 0, 0xffff, -1, at))};
    if (!parsed.emplace(key, rule).second) {
      throw ConfigError("another rule has the same VLAN", at, "keep one of them");
    }
  }
  return parsed;
}

void VlanRules::load(const List& rules, const std::string& where) {
  rules_ = parse_all(rules, where + ".rules", kMaxRuleGates);
}

void VlanRules::edit(const std::string& verb, const Value& args, uint32_t n_gates) {
  const List items = items_under(args, "rules");
  if (verb == "delete") {
    Rules left = rules_;
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string at = place(verb, i);
      check_keys(items[i], {"vid", "inner_vid"}, at);
      if (left.erase(parse_key(items[i], at)) == 0) {
        throw ConfigError("there is no such rule", at, "the command list shows what there is");
      }
    }
    rules_ = std::move(left);
    return;
  }
  Rules given = parse_all(items, verb, n_gates);
  if (verb == "add") {
    // Existing rules stay, unless a new rule has the same VLANs.
    given.merge(Rules(rules_));
    check_size(given.size(), verb);
  }
  rules_ = std::move(given);
}

uint32_t VlanRules::highest_gate() const {
  uint32_t highest = 0;
  for (const auto& [key, rule] : rules_) highest = std::max(highest, rule.gate);
  return highest;
}

List VlanRules::list() const {
  List all;
  for (const auto& [key, rule] : rules_) {
    Dict item{{"vid", key.first}, {"gate", rule.gate}};
    if (key.second >= 0) item["inner_vid"] = key.second;
    if (rule.vrf >= 0) item["vrf"] = rule.vrf;
    all.emplace_back(std::move(item));
  }
  return all;
}

VlanTable VlanRules::table() const {
  VlanTable table;
  for (const auto& [key, rule] : rules_) {
    if (key.second < 0) {
      table.outer[key.first] |= entry_of(rule);
    } else {
      table.outer[key.first] |= VlanEntry::kHasInner;
      table.inner.insert_or_assign(
          VlanTable::inner_key(key.first, static_cast<uint32_t>(key.second)), entry_of(rule));
    }
  }
  return table;
}

}  // namespace batchplane
