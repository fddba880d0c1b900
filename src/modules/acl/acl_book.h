// SPDX-License-Identifier: BSD-3-Clause
// acl_book.h - the rules of an access list on the control side, and their edits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/module/args.h"
#include "core/module/kind.h"
#include "modules/acl/acl_rule.h"

namespace batchplane {

// Where the rules came from, in the words of the parameters: what `save` gives back.
struct AclSource {
  List rules;
  std::string file;
  Dict synthetic;
};

// The rules in their order, and what is said about them. A value: edits make a new one, which is
// thrown away when something does not fit.
struct AclBook {
  std::vector<AclRule> rules;
  AclSource source;
  bool is_edited = false;  // the source does not tell the rules any more

  [[nodiscard]] uint32_t highest_gate() const;
  // Indices of the rules in the order in which they are looked at.
  [[nodiscard]] std::vector<uint32_t> order() const;
  // Rules that no packet reaches, since one that is looked at earlier covers them.
  [[nodiscard]] uint32_t count_shadowed() const;
  // Throws ConfigError for too many, duplicates, names used twice, gates from `n_gates` on.
  void check(uint32_t n_gates, const std::string& where) const;
};

// `file_action`: what the rules of files do.
AclBook make_acl_book(const AclSource& source, const AclAction& file_action,
                      const std::string& where);
// The book after add, delete or replace; throws ConfigError.
AclBook edit_acl_book(const AclBook& book, const std::string& verb, const Value& args,
                      const AclAction& file_action);

// Memory of EAL for the list of a module with these parameters, on the high side.
std::vector<TableMemory> acl_memory(const std::string& module, const Dict& params);

}  // namespace batchplane
