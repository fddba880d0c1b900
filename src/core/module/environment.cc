// SPDX-License-Identifier: BSD-3-Clause
#include "core/module/environment.h"

#include "base/nearest_word.h"
#include "core/module/args.h"

namespace batchplane {

const Interface& Environment::interface(const std::string& name) const {
  std::vector<std::string> names;
  for (const Interface& candidate : interfaces) {
    if (candidate.name == name) return candidate;
    names.push_back(candidate.name);
  }
  const std::string near = nearest_word(name, names);
  throw ConfigError("no interface '" + name + "'", "",
                    near.empty() ? "declare it under interfaces" : "did you mean '" + near + "'?");
}

std::shared_ptr<Port> Environment::port(const std::string& name) const {
  const auto it = ports.find(name);
  if (it != ports.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, port] : ports) names.push_back(known);
  const std::string near = nearest_word(name, names);
  throw ConfigError("no port '" + name + "'", "",
                    near.empty() ? "declare it under ports" : "did you mean '" + near + "'?");
}

}  // namespace batchplane
