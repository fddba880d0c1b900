// SPDX-License-Identifier: BSD-3-Clause
// dscp_field.cc - parses DSCP names.
#include "modules/policy/dscp_field.h"

#include <charconv>

#include "base/error.h"

namespace batchplane {
namespace {

int64_t number_of(const std::string& text) {
  if (text == "be") return 0;
  if (text == "le") return 1;
  if (text == "va") return 44;
  if (text == "ef") return 46;
  const auto is_digit_in = [&](size_t at, char first, char last) {
    return text[at] >= first && text[at] <= last;
  };
  if (text.size() == 3 && text.starts_with("cs") && is_digit_in(2, '0', '7')) {
    return (text[2] - '0') * 8;
  }
  if (text.size() == 4 && text.starts_with("af") && is_digit_in(2, '1', '4') &&
      is_digit_in(3, '1', '3')) {
    return (text[2] - '0') * 8 + (text[3] - '0') * 2;
  }
  int64_t number = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && stop == text.data() + text.size() ? number : -1;
}

}  // namespace

uint32_t parse_dscp(const Value& value, const std::string& where) {
  int64_t number = value.is_int() ? value.as_int() : -1;
  if (value.is_string()) number = number_of(value.as_string());
  if (number < 0 || number >= kDscpValues) {
    throw ConfigError("expected a DSCP", where,
                      "0 to 63, ef, af11 to af43, cs0 to cs7, be, le or va");
  }
  return static_cast<uint32_t>(number);
}

}  // namespace batchplane
