// SPDX-License-Identifier: BSD-3-Clause
// acl_book.cc - checks and edits access lists; an edit applies completely or not at all.
#include "modules/acl/acl_book.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/text_file.h"
#include "core/module/kind.h"
#include "modules/acl/acl_classifier.h"

namespace batchplane {
namespace {

std::string rule_text(const std::vector<AclRule>& rules, size_t i) {
  const std::string& name = rules[i].name;
  return "rule " + std::to_string(i) + (name.empty() ? "" : " '" + name + "'");
}

std::string file_in(const Value& args) {
  for (const char* key : {"file", "rules_file"}) {
    if (args[key].is_string()) return args[key].as_string();
  }
  return "";
}

std::vector<AclRule> given_rules(const Value& args, const AclAction& file_action,
                                 const std::string& where) {
  if (const std::string file = file_in(args); !file.empty()) {
    return read_acl_file(file, file_action);
  }
  for (const char* key : {"items", "rules"}) {
    if (args[key].is_list()) return parse_acl_rules(args[key].as_list(), key);
  }
  if (args.is_list()) return parse_acl_rules(args.as_list(), where);
  Dict rule = args.is_dict() ? args.as_dict() : Dict{};
  rule.erase("at");
  return {parse_acl_rule(rule, where)};
}

void add_rules(AclBook& book, const Value& args, const AclAction& file_action) {
  const std::vector<AclRule> given = given_rules(args, file_action, "add");
  size_t at = book.rules.size();
  if (const Value& value = args["at"]; !value.is_null()) {
    if (!value.is_int() || value.as_int() < 0 || value.as_int() > static_cast<int64_t>(at)) {
      throw ConfigError("there is no such position", "add.at", "0 to " + std::to_string(at));
    }
    at = static_cast<size_t>(value.as_int());
  }
  book.rules.insert(book.rules.begin() + static_cast<ptrdiff_t>(at), given.begin(), given.end());
}

// Finds rules by name or by match fields; other fields are ignored.
void delete_rules(AclBook& book, const Value& args) {
  List items{args};
  if (args["items"].is_list()) items = args["items"].as_list();
  if (args["rules"].is_list()) items = args["rules"].as_list();
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string where = "delete[" + std::to_string(i) + "]";
    if (!items[i].is_dict() || items[i].as_dict().empty()) {
      throw ConfigError("expected a rule", where, "its name, or what it matches");
    }
    Dict dict = items[i].as_dict();
    const Value name = items[i]["name"];
    if (!dict.contains("action")) dict["action"] = "permit";
    const AclRule wanted = parse_acl_rule(dict, where);
    const auto found = std::ranges::find_if(book.rules, [&](const AclRule& rule) {
      return name.is_null() ? rule.match == wanted.match : rule.name == wanted.name;
    });
    if (found == book.rules.end()) {
      throw ConfigError("there is no such rule", where, "the command list shows what there is");
    }
    book.rules.erase(found);
  }
}

}  // namespace

uint32_t AclBook::highest_gate() const {
  uint32_t highest = 0;
  for (const AclRule& rule : rules) {
    if (rule.action.kind == AclAction::Kind::kGate) highest = std::max(highest, rule.action.number);
  }
  return highest;
}

std::vector<uint32_t> AclBook::order() const {
  std::vector<uint32_t> order(rules.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](uint32_t i) { return rules[i].priority; });
  return order;
}

uint32_t AclBook::count_shadowed() const {
  const std::vector<uint32_t> in_order = order();
  uint32_t n = 0;
  for (size_t later = 0; later < in_order.size(); ++later) {
    const AclMatch& match = rules[in_order[later]].match;
    for (size_t earlier = 0; earlier < later; ++earlier) {
      if (!rules[in_order[earlier]].match.covers(match)) continue;
      ++n;
      break;
    }
  }
  return n;
}

void AclBook::check(uint32_t n_gates, const std::string& where) const {
  if (rules.size() > kMaxAclRules) {
    throw ConfigError("there would be " + std::to_string(rules.size()) + " rules", where,
                      "at most " + std::to_string(kMaxAclRules) + " fit");
  }
  std::map<AclMatch, size_t> seen;
  std::map<std::string, size_t> names;
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto [same, is_new] = seen.emplace(rules[i].match, i);
    if (!is_new) {
      throw ConfigError(
          rule_text(rules, i) + " matches the same as " + rule_text(rules, same->second), where,
          "keep one of them");
    }
    if (!rules[i].name.empty() && !names.emplace(rules[i].name, i).second) {
      throw ConfigError("two rules are called '" + rules[i].name + "'", where, "rename one");
    }
    if (rules[i].action.kind == AclAction::Kind::kGate && rules[i].action.number >= n_gates) {
      throw ConfigError(rule_text(rules, i) + " names gate " +
                            std::to_string(rules[i].action.number) + ", which is not there",
                        where, "use 0 to " + std::to_string(n_gates - 1));
    }
  }
}

AclBook make_acl_book(const AclSource& source, const AclAction& file_action,
                      const std::string& where) {
  AclBook book;
  book.source = source;
  const auto append = [&](std::vector<AclRule> more) {
    book.rules.insert(book.rules.end(), std::make_move_iterator(more.begin()),
                      std::make_move_iterator(more.end()));
  };
  append(parse_acl_rules(source.rules, where + "rules"));
  if (!source.file.empty()) append(read_acl_file(source.file, file_action));
  append(make_synthetic_acl(source.synthetic, where + "synthetic"));
  return book;
}

AclBook edit_acl_book(const AclBook& book, const std::string& verb, const Value& args,
                      const AclAction& file_action) {
  if (verb == "replace") {
    AclSource source;
    for (const char* key : {"items", "rules"}) {
      if (args[key].is_list()) source.rules = args[key].as_list();
    }
    source.file = file_in(args);
    if (args["synthetic"].is_dict()) source.synthetic = args["synthetic"].as_dict();
    const bool is_empty_list = args["rules"].is_list() || args["items"].is_list();
    if (!is_empty_list && source.file.empty() && source.synthetic.empty()) {
      throw ConfigError("replace needs rules, rules_file or synthetic", "replace",
                        "give the whole list; rules: [] empties it");
    }
    return make_acl_book(source, file_action, "replace.");
  }
  AclBook next = book;
  next.is_edited = true;
  if (verb == "add") {
    add_rules(next, args, file_action);
  } else {
    delete_rules(next, args);
  }
  return next;
}

std::vector<TableMemory> acl_memory(const std::string& module, const Dict& params) {
  int64_t n_rules = 0;
  if (const auto it = params.find("rules"); it != params.end() && it->second.is_list()) {
    n_rules += static_cast<int64_t>(it->second.as_list().size());
  }
  if (const auto it = params.find("synthetic"); it != params.end() && it->second.is_dict()) {
    const Value& count = it->second["count"];
    n_rules += count.is_int() ? count.as_int() : 0;
  }
  if (const auto it = params.find("rules_file"); it != params.end() && it->second.is_string()) {
    std::ifstream in = try_open_text_file(it->second.as_string());
    for (std::string line; std::getline(in, line);) ++n_rules;
  }
  return {{"acl " + module, AclClassifier::memory_bytes(static_cast<uint32_t>(
                                std::clamp<int64_t>(n_rules, 0, kMaxAclRules)))}};
}

}  // namespace batchplane
