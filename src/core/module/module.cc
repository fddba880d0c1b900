// SPDX-License-Identifier: BSD-3-Clause
#include "core/module/module.h"

#include <map>

#include "core/module/kind.h"

namespace batchplane {
namespace {
std::map<std::string, ModuleInfo>& kinds() {
  static std::map<std::string, ModuleInfo> all;
  return all;
}
}  // namespace

Value Module::command(const std::string& verb, const Value& /*args*/) {
  throw ConfigError("module '" + name() + "' has no command '" + verb + "'");
}

Value Port::command(const std::string& verb, const Value& /*args*/) {
  throw ConfigError("this port has no command '" + verb + "'");
}

void register_module_kind(ModuleInfo info) {
  const std::string kind = info.kind;
  if (!kinds().emplace(kind, std::move(info)).second) std::abort();  // two files, one kind
}

const ModuleInfo* find_module_kind(const std::string& kind) {
  const auto it = kinds().find(kind);
  return it == kinds().end() ? nullptr : &it->second;
}

std::vector<const ModuleInfo*> all_module_kinds() {
  std::vector<const ModuleInfo*> all;
  for (const auto& [kind, info] : kinds()) all.push_back(&info);
  return all;
}

Kinds module_kind_facts() {
  Kinds facts;
  for (const auto& [kind, info] : kinds()) {
    facts.modules[kind] = {info.shape, info.params, info.gate_names, info.first_named_gate,
                           info.is_egress};
  }
  return facts;
}

}  // namespace batchplane
