// SPDX-License-Identifier: BSD-3-Clause
// rule_table.h - key -> gate tables with live edits, shared by exact_match, ether_type and
// l2_table.
#pragma once

#include <immintrin.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/flat_table.h"
#include "base/value.h"
#include "core/module/live_table.h"
#include "core/module/module.h"

namespace batchplane {

inline constexpr uint32_t kMaxRuleGates = 4096;
inline constexpr uint32_t kMaxRules = 65536;

// Sets ctx.gates[0, n) to one gate; writes up to the next multiple of 16, as the array has slack.
inline void fill_gates(exec::GateIndex* gates, exec::GateIndex gate, uint32_t n) {
  const __m256i gate_v = _mm256_set1_epi16(static_cast<int16_t>(gate));
  for (uint32_t at = 0; at < n; at += 16) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(gates + at), gate_v);
  }
}

// One rule on the control thread: the match as the user wrote it, and the gate.
struct Rule {
  Value match;
  uint32_t gate = 0;
};

// The rules on the control side, ordered by key; turns add, delete, replace and list into edits of
// a LiveTable. Owner: control thread.
template <class Key>
class RuleBook {
 public:
  using Rules = std::map<Key, Rule>;
  // The key of one rule's match; throws ConfigError.
  using ParseKey = std::function<Key(const Value& match, const std::string& where)>;
  struct Edits {
    std::vector<std::pair<Key, uint32_t>> set;
    std::vector<Key> erase;
    bool is_replacement = false;
  };

  // A rule is a dict of `match_name` and gate; `list_name` names the list of rules.
  RuleBook(std::string match_name, std::string list_name, uint32_t max_rules, ParseKey parse_key)
      : match_name_(std::move(match_name)),
        list_name_(std::move(list_name)),
        max_rules_(max_rules),
        parse_key_(std::move(parse_key)) {}

  [[nodiscard]] const Rules& rules() const { return rules_; }
  [[nodiscard]] uint32_t highest_gate() const {
    uint32_t highest = 0;
    for (const auto& [key, rule] : rules_) highest = std::max(highest, rule.gate);
    return highest;
  }

  // Loads the rules of a pipeline file.
  void load(const List& rules, const std::string& where) {
    rules_ = parse_all(rules, where + "." + list_name_, kMaxRuleGates);
  }

  // Checks a live command as a whole, applies it to the book and returns the edits for the table.
  // `n_gates`: number of linked gates; rules for other gates are refused.
  Edits edit(const std::string& verb, const Value& args, uint32_t n_gates) {
    Edits edits;
    if (verb == "delete") {
      for (const Value& item : items_of(args)) {
        const Value& match = item.is_dict() ? item[match_name_] : item;
        const Key key = parse_key_(match, "delete");
        if (!rules_.contains(key)) {
          throw ConfigError("there is no such rule", "delete",
                            "the command list shows what there is");
        }
        edits.erase.push_back(key);
      }
      for (const Key& key : edits.erase) rules_.erase(key);
      return edits;
    }
    Rules given = parse_all(items_of(args), verb, n_gates);
    for (const auto& [key, rule] : given) edits.set.emplace_back(key, rule.gate);
    if (verb == "replace") {
      edits.is_replacement = true;
      rules_ = std::move(given);
      return edits;
    }
    size_t n_new = 0;
    for (const auto& [key, rule] : given) n_new += rules_.contains(key) ? 0 : 1;
    check_size(rules_.size() + n_new, verb);
    for (auto& [key, rule] : given) rules_[key] = std::move(rule);
    return edits;
  }

  [[nodiscard]] List list() const {
    List all;
    for (const auto& [key, rule] : rules_) {
      Dict item;
      item.emplace(match_name_, rule.match);
      item.emplace("gate", rule.gate);
      all.emplace_back(std::move(item));
    }
    return all;
  }

 private:
  // One rule, or several under "items" or the list's own name.
  [[nodiscard]] List items_of(const Value& args) const {
    if (args.is_list()) return args.as_list();
    if (args["items"].is_list()) return args["items"].as_list();
    if (args[list_name_].is_list()) return args[list_name_].as_list();
    return {args};
  }

  [[nodiscard]] Rules parse_all(const List& items, const std::string& where,
                                uint32_t n_gates) const {
    check_size(items.size(), where);
    Rules parsed;
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string at = where + "[" + std::to_string(i) + "]";
      auto [key, rule] = parse(items[i], at, n_gates);
      if (!parsed.emplace(key, std::move(rule)).second) {
        throw ConfigError("another rule has the same " + match_name_, at, "keep one of them");
      }
    }
    return parsed;
  }

  [[nodiscard]] std::pair<Key, Rule> parse(const Value& item, const std::string& at,
                                           uint32_t n_gates) const {
    if (!item.is_dict() || !item.has(match_name_) || !item["gate"].is_int()) {
      throw ConfigError("expected {" + match_name_ + ", gate}", at, "give both; gate is a number");
    }
    for (const auto& [key, value] : item.as_dict()) {
      if (key == match_name_ || key == "gate") continue;
      throw ConfigError("unknown key '" + key + "'", at, "a rule has " + match_name_ + " and gate");
    }
    const int64_t gate = item["gate"].as_int();
    if (gate < 0 || gate >= n_gates) {
      throw ConfigError("gate " + std::to_string(gate) + " is not there", at + ".gate",
                        "use 0 to " + std::to_string(n_gates - 1));
    }
    return {parse_key_(item[match_name_], at),
            Rule{item[match_name_], static_cast<uint32_t>(gate)}};
  }

  void check_size(size_t n_rules, const std::string& where) const {
    if (n_rules <= max_rules_) return;
    throw ConfigError("there would be " + std::to_string(n_rules) + " rules", where,
                      "at most " + std::to_string(max_rules_) + " fit");
  }

  const std::string match_name_;
  const std::string list_name_;
  const uint32_t max_rules_;
  const ParseKey parse_key_;
  Rules rules_;
};

// Applies a book's edits to a live table; `key_of` converts the book's keys to the table's.
template <class Table, class Edits, class KeyOf = std::identity>
void apply_edits(LiveTable<Table>& live, const Edits& edits, KeyOf key_of = {}) {
  const auto edit = [&](Table& table) {
    for (const auto& key : edits.erase) table.erase(key_of(key));
    for (const auto& [key, gate] : edits.set) table.insert_or_assign(key_of(key), gate);
  };
  if (!edits.is_replacement) {
    live.edit(edit);
    return;
  }
  auto next = std::make_unique<Table>();
  edit(*next);
  auto spare = std::make_unique<Table>(*next);
  live.replace(std::move(next), std::move(spare));
}

// The gate for packets that no rule matches: a number, or "dropped" when the parameter is -1.
inline constexpr uint32_t kNoDefaultGate = ~0U;
inline uint32_t default_gate_of(const Args& args) {
  const int64_t gate = args.integer("default_gate");
  return gate < 0 ? kNoDefaultGate : static_cast<uint32_t>(gate);
}
inline ParamSpec default_gate_spec() {
  return {.name = "default_gate",
          .type = ParamType::kInt,
          .unit = "",
          .default_value = -1,
          .help = "gate of packets that no rule matches; -1 drops them",
          .min = -1,
          .max = kMaxRuleGates - 1};
}
inline uint32_t gates_for(uint32_t connected, uint32_t highest_rule_gate, uint32_t default_gate) {
  const uint32_t highest =
      std::max(highest_rule_gate, default_gate == kNoDefaultGate ? 0 : default_gate);
  return std::max(connected, highest + 1);
}

}  // namespace batchplane
