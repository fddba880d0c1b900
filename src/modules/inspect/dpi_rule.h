// SPDX-License-Identifier: BSD-3-Clause
// dpi_rule.h - rules about what packets carry: as users write them, in a pipeline or in a file.
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

enum class Action : uint8_t { kAlert, kMark, kDrop };  // a later one wins over those before it

struct Pattern {
  std::string bytes;  // or the expression
  bool is_nocase = false;
  bool is_regex = false;
  std::string regex_flags = {};  // of i, s, m
  bool operator==(const Pattern&) const = default;
};

// Matches a packet that has all its patterns, in any order and place.
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

// Lines as Snort's: `alert tcp any any -> any any (msg:"..."; content:"..."; nocase; sid:1;)`, and the
// literal words of a list, one a line. Throw ConfigError with FILE:LINE. `ignores_headers`: addresses
// and ports may be there, and have no meaning.
void read_rules(const std::string& path, const std::string& where, bool ignores_headers,
                std::map<uint32_t, DpiRule>& rules);
void read_words(const std::string& path, const std::string& where, Action action,
                std::map<uint32_t, DpiRule>& rules);

[[nodiscard]] Action action_of(const std::string& name);
[[nodiscard]] const char* name_of(Action action);
// With |hex| parts and backslashes taken for what they stand for; throws ConfigError at `where`.
[[nodiscard]] std::string parse_content(const std::string& text, const std::string& where);
[[nodiscard]] std::string format_content(const std::string& bytes);
// `/expression/flags`; throws ConfigError at `where`.
[[nodiscard]] Pattern parse_pcre(const std::string& text, const std::string& where);

}  // namespace batchplane::dpi
