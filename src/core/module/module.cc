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
using Derive = std::function<std::vector<ModuleInfo>(const ModuleInfo&)>;
Derive& deriver() {
  static Derive derive;
  return derive;
}
void add_kind(ModuleInfo info) {
  const std::string kind = info.kind;
  if (!kinds().emplace(kind, std::move(info)).second) std::abort();  // two files, one kind
}
void add_derived(const ModuleInfo& of) {
  for (ModuleInfo& info : deriver()(of)) add_kind(std::move(info));
}
}  // namespace

Value Module::command(const std::string& verb, const Value& /*args*/) {
  throw ConfigError("module '" + name() + "' has no command '" + verb + "'");
}

void Module::prepare_feeders(const std::vector<uint32_t>& /*workers*/) {
  throw ConfigError("no other workers can put packets into '" + name() + "' while it runs", "",
                    "write worker: at what leads there, and start anew");
}

Value Port::command(const std::string& verb, const Value& /*args*/) {
  throw ConfigError("this port has no command '" + verb + "'");
}

void register_module_kind(ModuleInfo info) {
  add_kind(info);
  if (deriver() != nullptr) add_derived(info);
}

void derive_module_kinds(Derive derive) {
  deriver() = std::move(derive);
  const std::vector<const ModuleInfo*> written = all_module_kinds();
  for (const ModuleInfo* info : written) add_derived(*info);
}

const ModuleInfo* find_module_kind(const std::string& kind) {
  const auto it = kinds().find(kind);
  return it == kinds().end() ? nullptr : &it->second;
}

std::vector<const ModuleInfo*> all_module_kinds() {
  std::vector<const ModuleInfo*> all;
  for (const auto& [kind, info] : kinds()) {
    if (!info.is_derived) all.push_back(&info);
  }
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
