// SPDX-License-Identifier: BSD-3-Clause
#include "spec/params.h"

#include <algorithm>
#include <sstream>

#include "base/nearest_word.h"
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

// The value in the user's notation.
std::string told(const Value& value) {
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_list()) return "a list";
  if (value.is_dict()) return "a mapping";
  std::string text = "'";
  if (value.is_string()) text += value.as_string();
  if (value.is_int()) text += std::to_string(value.as_int());
  if (!value.is_int() && value.is_number()) text += plain(value.as_double());
  return text += "'";
}

std::string unfit_number(const ParamSpec& spec, double x) {
  if (x >= spec.min && x <= spec.max) return "";
  return plain(x) + " is out of range " + plain(spec.min) + " .. " + plain(spec.max) +
         (spec.unit.empty() ? "" : " " + spec.unit);
}

std::string unfit_text(const ParamSpec& spec, const std::string& text) {
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

// Empty when `value` fits `spec`, otherwise the mistake.
std::string misfit(const ParamSpec& spec, const Value& value) {
  const auto unlike = [&](const char* wanted) {
    return "expected " + std::string(wanted) + ", found " + told(value);
  };
  switch (spec.type) {
    case ParamType::kBool:
      return value.is_bool() ? "" : unlike("true or false");
    case ParamType::kInt:
      return value.is_int() ? unfit_number(spec, value.as_double()) : unlike("an integer");
    case ParamType::kFloat:
      return value.is_number() ? unfit_number(spec, value.as_double()) : unlike("a number");
    case ParamType::kList:
      return value.is_list() ? too_short(spec, value.as_list().size(), "elements")
                             : unlike("a list");
    case ParamType::kDict:
      return value.is_dict() ? "" : unlike("a mapping");
    default:
      return value.is_string() ? unfit_text(spec, value.as_string())
                               : unlike(param_type_name(spec.type));
  }
}

}  // namespace

const char* param_type_name(ParamType type) {
  static constexpr const char* kNames[] = {"bool", "int",         "float", "string", "mac",
                                           "ipv4", "ipv4_prefix", "list",  "dict",   "port"};
  return kNames[static_cast<uint32_t>(type)];
}

void check_params(const std::vector<ParamSpec>& specs, const Dict& given, const std::string& key,
                  const std::vector<std::string>& other_words, Mistakes& mistakes) {
  std::vector<std::string> words;
  for (const ParamSpec& spec : specs) {
    words.push_back(spec.name);
    const auto it = given.find(spec.name);
    if (it == given.end() || it->second.is_null()) {
      if (spec.default_value.is_null()) {
        mistakes.add(key, "'" + spec.name + "' is missing", "add " + spec.name + ": " + spec.help);
      }
      continue;
    }
    const std::string wrong = misfit(spec, it->second);
    if (!wrong.empty()) mistakes.add(key + ".params." + spec.name, wrong, spec.help);
  }
  const std::vector<std::string> declared = words;
  words.insert(words.end(), other_words.begin(), other_words.end());
  for (const auto& [name, value] : given) {
    if (std::ranges::find(declared, name) != declared.end()) continue;
    mistakes.add(key + ".params." + name, "unknown parameter '" + name + "'",
                 did_you_mean(name, words, declared.empty() ? "it has no parameters" : ""));
  }
}

}  // namespace batchplane
