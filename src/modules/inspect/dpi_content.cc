// SPDX-License-Identifier: BSD-3-Clause
// dpi_content.cc - parses literals as written in rules, "GET |0d 0a|", and expressions, "/a.*b/i".
#include <cstdio>

#include "base/error.h"
#include "base/hex.h"
#include "modules/inspect/dpi_rule.h"

namespace batchplane::dpi {
namespace {

bool is_plain(char c) {
  return c >= ' ' && c <= '~' && c != '|' && c != '"' && c != '\\' && c != ';';
}

// Parses hex digits from `at` up to the next bar; returns the position of that bar.
size_t parse_hex(const std::string& text, size_t at, std::string& bytes, const std::string& where) {
  uint32_t high = kNoHexDigit;
  for (; at < text.size() && text[at] != '|'; ++at) {
    if (text[at] == ' ') continue;
    const uint32_t digit = hex_digit_of(text[at]);
    if (digit == kNoHexDigit) {
      throw ConfigError("'" + std::string(1, text[at]) + "' is no hexadecimal digit", where,
                        "between bars stand bytes, as in |0d 0a|");
    }
    if (high == kNoHexDigit) {
      high = digit;
      continue;
    }
    bytes.push_back(static_cast<char>(high << 4 | digit));
    high = kNoHexDigit;
  }
  if (at == text.size() || high != kNoHexDigit) {
    throw ConfigError("a byte or the second bar is missing", where, "write bytes as |0d 0a|");
  }
  return at;
}

}  // namespace

std::string parse_content(const std::string& text, const std::string& where) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '|') {
      at = parse_hex(text, at + 1, bytes, where);
    } else if (text[at] == '\\' && at + 1 < text.size()) {
      bytes.push_back(text[++at]);
    } else {
      bytes.push_back(text[at]);
    }
  }
  if (bytes.empty() || bytes.size() > kMaxPatternBytes) {
    throw ConfigError("there are " + std::to_string(bytes.size()) + " bytes to look for", where,
                      "from 1 to " + std::to_string(kMaxPatternBytes));
  }
  return bytes;
}

std::string format_content(const std::string& bytes) {
  std::string text;
  bool is_in_hex = false;
  for (const char c : bytes) {
    if (is_plain(c) == is_in_hex) {
      text += '|';
      is_in_hex = !is_in_hex;
    }
    if (!is_in_hex) {
      text += c;
      continue;
    }
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned>(static_cast<uint8_t>(c)));
    text += hex;
  }
  return is_in_hex ? text + '|' : text;
}

Pattern parse_pcre(const std::string& text, const std::string& where) {
  const size_t last = text.rfind('/');
  if (text.size() < 3 || text.front() != '/' || last == 0 || last == 1) {
    throw ConfigError("'" + text + "' is no expression", where, "write /expression/flags");
  }
  Pattern pattern{.bytes = text.substr(1, last - 1), .is_regex = true};
  pattern.regex_flags = text.substr(last + 1);
  for (const char flag : pattern.regex_flags) {
    if (std::string("ism").find(flag) != std::string::npos) continue;
    throw ConfigError("the flag '" + std::string(1, flag) + "' is not known here", where,
                      "use i, s and m");
  }
  pattern.is_nocase = pattern.regex_flags.find('i') != std::string::npos;
  return pattern;
}

}  // namespace batchplane::dpi
