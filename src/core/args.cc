// SPDX-License-Identifier: BSD-3-Clause
#include "core/args.h"

#include <algorithm>
#include <sstream>

#include "base/net.h"

namespace batchplane {
namespace {

std::string plain(double number) {
  std::ostringstream out;
  out.precision(15);
  out << number;
  return out.str();
}

std::string too_short(const ParamSpec& spec, size_t length, const char* unit) {
  if (static_cast<double>(length) >= spec.min) return "";
  if (spec.min == 1) return "must not be empty";
  return "needs at least " + plain(spec.min) + " " + unit;
}

// Empty when `value` fits `spec`, else what is wrong with it.
std::string misfit(const ParamSpec& spec, const Value& value) {
  const std::string wanted = param_type_name(spec.type);
  const auto out_of_range = [&](double x) -> std::string {
    if (x >= spec.min && x <= spec.max) return "";
    return plain(x) + " is out of range " + plain(spec.min) + " .. " + plain(spec.max) +
           (spec.unit.empty() ? "" : " " + spec.unit);
  };
  switch (spec.type) {
    case ParamType::kBool:
      return value.is_bool() ? ""
                             : "expected true or false, found " + std::string(value.type_name());
    case ParamType::kInt:
      if (!value.is_int()) return "expected an integer, found " + std::string(value.type_name());
      return out_of_range(value.as_double());
    case ParamType::kFloat:
      if (!value.is_number()) return "expected a number, found " + std::string(value.type_name());
      return out_of_range(value.as_double());
    case ParamType::kList:
      if (!value.is_list()) return "expected a list, found " + std::string(value.type_name());
      return too_short(spec, value.as_list().size(), "elements");
    case ParamType::kDict:
      return value.is_dict() ? "" : "expected a mapping, found " + std::string(value.type_name());
    default:
      break;
  }
  if (!value.is_string()) return "expected " + wanted + ", found " + value.type_name();
  const std::string& text = value.as_string();
  if (const std::string wrong = too_short(spec, text.size(), "characters"); !wrong.empty())
    return wrong;
  if (spec.type == ParamType::kMac && !net::parse_mac(text))
    return "'" + text + "' is no MAC address";
  if (spec.type == ParamType::kIpv4 && !net::parse_ipv4(text))
    return "'" + text + "' is no IPv4 address";
  if (spec.type == ParamType::kIpv4Prefix && !net::parse_prefix4(text)) {
    return "'" + text + "' is no IPv4 prefix such as 10.0.0.0/8 (host bits must be zero)";
  }
  if (!spec.choices.empty() && std::ranges::find(spec.choices, text) == spec.choices.end()) {
    std::string all;
    for (const std::string& choice : spec.choices) all += (all.empty() ? "" : ", ") + choice;
    return "'" + text + "' is not one of " + all;
  }
  return "";
}

}  // namespace

const char* param_type_name(ParamType type) {
  static constexpr const char* kNames[] = {"bool", "int",         "float", "string", "mac",
                                           "ipv4", "ipv4_prefix", "list",  "dict"};
  return kNames[static_cast<uint32_t>(type)];
}

Args::Args(const std::vector<ParamSpec>& specs, const Dict& given, std::string where,
           std::vector<ConfigError>& errors)
    : given_(given), where_(std::move(where)) {
  std::vector<std::string> names;
  for (const ParamSpec& spec : specs) {
    names.push_back(spec.name);
    const auto it = given.find(spec.name);
    if (it == given.end() || it->second.is_null()) {
      if (spec.default_value.is_null()) {
        errors.emplace_back("'" + spec.name + "' is missing", where_,
                            "add " + spec.name + ": " + spec.help);
      }
      values_[spec.name] = spec.default_value;
      continue;
    }
    const std::string wrong = misfit(spec, it->second);
    if (!wrong.empty()) errors.emplace_back(wrong, where_ + "." + spec.name, spec.help);
    values_[spec.name] = it->second;
  }
  for (const auto& [key, value] : given) {
    if (values_.contains(key)) continue;
    const std::string near = nearest_word(key, names);
    errors.emplace_back("unknown parameter '" + key + "'", where_,
                        near.empty() ? "" : "did you mean '" + near + "'?");
  }
}

const Value& Args::at(const std::string& name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) throw ConfigError("parameter '" + name + "' is not declared", where_);
  return it->second;
}

}  // namespace batchplane
