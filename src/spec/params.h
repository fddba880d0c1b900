// SPDX-License-Identifier: BSD-3-Clause
// params.h - self-described parameters: declared once, checked and documented from the declaration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/value.h"
#include "spec/field_reader.h"

namespace batchplane {

enum class ParamType : uint8_t {
  kBool,
  kInt,
  kFloat,
  kString,
  kMac,
  kIpv4,
  kIpv4Prefix,
  kList,
  kDict,
  kPort,  // the name of one of the pipeline's ports
};
[[nodiscard]] const char* param_type_name(ParamType type);

// One parameter of a module, a port or a generator: printed by `batchplane modules NAME`, checked by
// check_params.
struct ParamSpec {
  std::string name;
  ParamType type = ParamType::kInt;
  std::string unit = "";     // ns, pkts, bytes, pps, ... or empty
  Value default_value = {};  // null = required
  std::string help = "";
  double min = -9.2e18;  // of numbers; for strings and lists: minimum length
  double max = 9.2e18;
  std::vector<std::string> choices = {};  // for strings: the allowed values, if limited
};

// Records every unknown, missing or invalid parameter of the object at `key`. `other_words`: words allowed
// beside the parameters, for "did you mean".
void check_params(const std::vector<ParamSpec>& specs, const Dict& given, const std::string& key,
                  const std::vector<std::string>& other_words, Mistakes& mistakes);

}  // namespace batchplane
