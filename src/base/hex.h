// SPDX-License-Identifier: BSD-3-Clause
// hex.h - parses hexadecimal digits in user input.
#pragma once

#include <cstdint>

namespace batchplane {

inline constexpr uint32_t kNoHexDigit = 16;

// 0 to 15, upper or lower case; kNoHexDigit for any other character.
[[nodiscard]] constexpr uint32_t hex_digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<uint32_t>(c - 'A' + 10);
  return kNoHexDigit;
}

}  // namespace batchplane
