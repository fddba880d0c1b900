// SPDX-License-Identifier: BSD-3-Clause
#include "core/module/args.h"

namespace batchplane {

Args::Args(const std::vector<ParamSpec>& specs, const Dict& given, std::string where)
    : given_(given), where_(std::move(where)) {
  for (const ParamSpec& spec : specs) {
    const auto it = given.find(spec.name);
    const bool is_given = it != given.end() && !it->second.is_null();
    values_[spec.name] = is_given ? it->second : spec.default_value;
  }
}

Args::Args(const std::vector<ParamSpec>& specs, const Dict& given, std::string where,
           std::vector<ConfigError>& errors)
    : Args(specs, given, std::move(where)) {
  const SourceMap no_places;
  Mistakes mistakes{errors, no_places};
  check_params(specs, given, where_, {}, mistakes);
}

const Value& Args::at(const std::string& name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) throw ConfigError("parameter '" + name + "' is not declared", where_);
  return it->second;
}

}  // namespace batchplane
