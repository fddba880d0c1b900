// SPDX-License-Identifier: BSD-3-Clause
// check_ports.cc - ports, their users, and the parameters of modules.
#include <algorithm>
#include <set>

#include "base/nearest_word.h"
#include "spec/check.h"

namespace batchplane {
namespace {

std::string numbered(const char* list, size_t i) {
  return std::string(list) + "[" + std::to_string(i) + "]";
}

template <class T>
std::vector<std::string> keys_of(const std::map<std::string, T>& all) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : all) keys.push_back(key);
  return keys;
}

void check_port_name(const std::vector<std::string>& ports, const std::string& name,
                     const std::string& key, Mistakes& mistakes) {
  if (std::ranges::find(ports, name) != ports.end()) return;
  mistakes.add(key, "there is no port '" + name + "'",
               did_you_mean(name, ports, "add it under ports:"));
}

std::string kinds_for_generators(const Kinds& kinds) {
  std::string names;
  for (const auto& [kind, facts] : kinds.ports) {
    if (facts.takes_generators) names += (names.empty() ? "" : " or ") + kind;
  }
  return names;
}

void check_generator(const PipelineSpec& spec, size_t i, const Kinds& kinds,
                     const std::vector<std::string>& ports, Mistakes& mistakes) {
  const GeneratorSpec& generator = spec.generators[i];
  const std::string key = numbered("generators", i);
  if (kinds.generator) check_params(*kinds.generator, generator.params, key, {}, mistakes);
  check_port_name(ports, generator.port, key, mistakes);
  const auto port = std::ranges::find(spec.ports, generator.port, &PortSpec::name);
  if (port == spec.ports.end()) return;
  const auto kind = kinds.ports.find(port->kind);
  if (kind != kinds.ports.end() && !kind->second.takes_generators) {
    mistakes.add(key, "port '" + port->name + "' is of kind " + port->kind,
                 "a generator feeds a port of kind " + kinds_for_generators(kinds));
  }
  for (size_t other = 0; other < i; ++other) {
    if (spec.generators[other].port != generator.port) continue;
    mistakes.add(key,
                 "port '" + port->name + "' is fed by generator '" + spec.generators[other].name +
                     "' already",
                 "give each generator a ring port of its own");
    break;
  }
}

}  // namespace

void check_port(const PortSpec& port, const Kinds& kinds, Mistakes& mistakes) {
  const std::string key = "ports." + port.name;
  const auto kind = kinds.ports.find(port.kind);
  if (kind != kinds.ports.end()) {
    check_params(kind->second.params, port.params, key, {}, mistakes);
  } else if (!kinds.ports.empty()) {
    mistakes.add(key, "unknown kind '" + port.kind + "' of port",
                 did_you_mean(port.kind, keys_of(kinds.ports)));
  }
}

void check_port_users(const PipelineSpec& spec, const Kinds& kinds, Mistakes& mistakes) {
  const std::vector<std::string> ports = port_names(spec);
  for (size_t i = 0; i < spec.interfaces.size(); ++i) {
    const std::string& port = spec.interfaces[i].port;
    if (!port.empty()) check_port_name(ports, port, numbered("interfaces", i), mistakes);
  }
  for (size_t i = 0; i < spec.generators.size(); ++i)
    check_generator(spec, i, kinds, ports, mistakes);
}

void check_module(const ModuleSpec& module, const Kinds& kinds,
                  const std::vector<std::string>& ports, Mistakes& mistakes) {
  const std::string key = "modules." + module.name;
  const auto kind = kinds.modules.find(module.kind);
  if (kind == kinds.modules.end()) {
    if (kinds.modules.empty()) return;
    mistakes.add(
        key + ".kind", "unknown kind '" + module.kind + "'",
        did_you_mean(module.kind, keys_of(kinds.modules), "`batchplane modules` lists the kinds"));
    return;
  }
  // Also suggests the words that may stand beside parameters.
  check_params(kind->second.params, module.params, key,
               {"kind", "trigger", "age_limit", "worker", "weight", "queue_pkts", "poll_pkts"},
               mistakes);
  for (const ParamSpec& param : kind->second.params) {
    const auto given = module.params.find(param.name);
    if (param.type != ParamType::kPort || given == module.params.end()) continue;
    if (!given->second.is_string()) continue;
    check_port_name(ports, given->second.as_string(), key + ".params." + param.name, mistakes);
  }
}

std::vector<std::string> port_names(const PipelineSpec& spec) {
  std::vector<std::string> names;
  for (const PortSpec& port : spec.ports) names.push_back(port.name);
  return names;
}

std::vector<ConfigError> warnings_of(const PipelineSpec& spec, const Kinds& kinds) {
  std::set<std::string> used;
  for (const InterfaceSpec& interface : spec.interfaces) used.insert(interface.port);
  for (const GeneratorSpec& generator : spec.generators) used.insert(generator.port);
  for (const ModuleSpec& module : spec.modules) {
    const auto kind = kinds.modules.find(module.kind);
    if (kind == kinds.modules.end()) continue;
    for (const ParamSpec& param : kind->second.params) {
      const auto given = module.params.find(param.name);
      if (param.type == ParamType::kPort && given != module.params.end() &&
          given->second.is_string()) {
        used.insert(given->second.as_string());
      }
    }
  }
  std::vector<ConfigError> warnings;
  for (const PortSpec& port : spec.ports) {
    if (kinds.modules.empty() || used.contains(port.name)) continue;
    warnings.emplace_back("port '" + port.name + "' is not used", "ports." + port.name,
                          "a port_in or port_out module uses a port");
  }
  warn_of_departures(spec, warnings);
  return warnings;
}

}  // namespace batchplane
