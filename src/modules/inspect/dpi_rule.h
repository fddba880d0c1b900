// SPDX-License-Identifier: BSD-3-Clause
// dpi_rule.h - dpi rules as users write them in a pipeline or a file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/value.h"
#include "modules/common/item_book.h"

namespace batchplane::dpi {

inline constexpr uint32_t kMaxDpiRules = 200'000;
inline constexpr uint32_t kMaxPatternBytes = 4096;
inline constexpr uint32_t kFirstWordId = 1U
                                         << 31;  // rules of a list of words are numbered from here

enum class Action : uint8_t { kAlert, kMark, kDrop };  // ascending precedence

struct Pattern {
  std::string bytes;  // the literal or the expression
  bool is_nocase = false;
  bool is_regex = false;
  std::string regex_flags = {};  // any of i, s, m
  bool operator==(const Pattern&) const = default;
};

// Matches a packet that contains all the patterns, in any order and position.
struct DpiRule {
  std::vector<Pattern> patterns;
  Action action = Action::kAlert;
  uint32_t mark = 0;
  uint8_t proto = 0;  // 0: any
  std::string message;
  bool operator==(const DpiRule&) const = default;
};

using DpiBook = ItemBook<DpiRule>;
[[nodiscard]] DpiBook make_dpi_book();

// Reads rules in Snort's syntax, `alert tcp any any -> any any (msg:"..."; content:"..."; nocase;
// sid:1;)`, or a list of literal words, one per line. Throws ConfigError with FILE:LINE.
// `ignores_headers`: addresses and ports are accepted and ignored.
void read_rules(const std::string& path, const std::string& where, bool ignores_headers,
                std::map<uint32_t, DpiRule>& rules);
void read_words(const std::string& path, const std::string& where, Action action,
                std::map<uint32_t, DpiRule>& rules);

[[nodiscard]] Action action_of(const std::string& name);
[[nodiscard]] const char* name_of(Action action);
// Decodes |hex| parts and backslash escapes; throws ConfigError at `where`.
[[nodiscard]] std::string parse_content(const std::string& text, const std::string& where);
[[nodiscard]] std::string format_content(const std::string& bytes);
// Parses `/expression/flags`; throws ConfigError at `where`.
[[nodiscard]] Pattern parse_pcre(const std::string& text, const std::string& where);

}  // namespace batchplane::dpi
