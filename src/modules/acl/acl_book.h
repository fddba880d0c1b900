// SPDX-License-Identifier: BSD-3-Clause
// acl_book.h - the control-plane copy of an access list, and its edits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/module/args.h"
#include "core/module/kind.h"
#include "modules/acl/acl_rule.h"

namespace batchplane {

// The parameters that define the rules, for `save`.
struct AclSource {
  List rules;
  std::string file;
  Dict synthetic;
};

// The rules in their order. Edits make a copy, which is discarded if it is invalid.
struct AclBook {
  std::vector<AclRule> rules;
  AclSource source;
  bool is_edited = false;  // the source no longer matches the rules

  [[nodiscard]] uint32_t highest_gate() const;
  // Indices of the rules in lookup order.
  [[nodiscard]] std::vector<uint32_t> order() const;
  // Number of rules that never match because an earlier rule covers them.
  [[nodiscard]] uint32_t count_shadowed() const;
  // Throws ConfigError for too many rules, duplicates, reused names, and gates from `n_gates` on.
  void check(uint32_t n_gates, const std::string& where) const;
};

// `file_action`: the action of rules from a file.
AclBook make_acl_book(const AclSource& source, const AclAction& file_action,
                      const std::string& where);
// Returns the book after an add, delete or replace; throws ConfigError.
AclBook edit_acl_book(const AclBook& book, const std::string& verb, const Value& args,
                      const AclAction& file_action);

// Upper estimate of the EAL memory for the list of a module with these parameters.
std::vector<TableMemory> acl_memory(const std::string& module, const Dict& params);

}  // namespace batchplane
