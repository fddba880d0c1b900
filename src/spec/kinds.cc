// SPDX-License-Identifier: BSD-3-Clause
#include "spec/kinds.h"

#include <algorithm>

#include "base/error.h"

namespace batchplane {
namespace {

std::string text_of(const Value& value) { return value.is_string() ? value.as_string() : ""; }
double number_of(const Value& value, double fallback) {
  return value.is_number() ? value.as_double() : fallback;
}

std::vector<std::string> texts_of(const Value& list) {
  std::vector<std::string> texts;
  if (!list.is_list()) return texts;
  for (const Value& value : list.as_list()) texts.push_back(text_of(value));
  return texts;
}

ParamType param_type(const std::string& name) {
  for (uint32_t t = 0; t <= static_cast<uint32_t>(ParamType::kPort); ++t) {
    if (name == param_type_name(static_cast<ParamType>(t))) return static_cast<ParamType>(t);
  }
  return ParamType::kString;
}

std::vector<ParamSpec> params_from(const Value& list) {
  std::vector<ParamSpec> params;
  if (!list.is_list()) return params;
  for (const Value& entry : list.as_list()) {
    ParamSpec spec;
    spec.name = text_of(entry["name"]);
    spec.type = param_type(text_of(entry["type"]));
    spec.unit = text_of(entry["unit"]);
    spec.default_value = entry["default"];
    spec.help = text_of(entry["help"]);
    spec.min = number_of(entry["min"], spec.min);
    spec.max = number_of(entry["max"], spec.max);
    spec.choices = texts_of(entry["choices"]);
    params.push_back(std::move(spec));
  }
  return params;
}

KindFacts facts_from(const Value& entry) {
  KindFacts facts;
  const auto* const name = std::ranges::find(kShapeNames, text_of(entry["shape"]));
  if (name == std::end(kShapeNames)) {
    throw ConfigError("kind '" + text_of(entry["kind"]) + "' has no shape", "modules");
  }
  facts.shape = static_cast<Shape>(name - std::begin(kShapeNames));
  facts.params = params_from(entry["params"]);
  facts.gate_names = texts_of(entry["gate_names"]);
  facts.first_named_gate = static_cast<uint32_t>(number_of(entry["first_named_gate"], 0));
  facts.is_egress = entry["is_egress"].is_bool() && entry["is_egress"].as_bool();
  return facts;
}

}  // namespace

Kinds kinds_from_value(const Value& schema) {
  Kinds kinds;
  if (schema["modules"].is_list()) {
    for (const Value& entry : schema["modules"].as_list()) {
      kinds.modules[text_of(entry["kind"])] = facts_from(entry);
    }
  }
  if (schema["ports"].is_list()) {
    for (const Value& entry : schema["ports"].as_list()) {
      const Value& takes = entry["takes_generators"];
      kinds.ports[text_of(entry["kind"])] = {params_from(entry["params"]),
                                             takes.is_bool() && takes.as_bool()};
    }
  }
  if (schema["generator"].is_dict()) kinds.generator = params_from(schema["generator"]["params"]);
  return kinds;
}

}  // namespace batchplane
