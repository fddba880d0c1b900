// SPDX-License-Identifier: BSD-3-Clause
// dpi_file.cc - reads rule files in a subset of Snort's syntax, and word lists.
#include <array>
#include <charconv>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/net.h"
#include "base/text_file.h"
#include "modules/inspect/dpi_rule.h"

namespace batchplane::dpi {
namespace {

constexpr const char* kForm =
    "write: alert tcp any any -> any any (msg:\"..\"; content:\"..\"; nocase; sid:1;)";

// Options that describe the rule and do not affect matching.
const std::set<std::string> kWordsAboutRules = {"rev",      "classtype", "reference",
                                                "metadata", "priority",  "gid"};

struct Option {
  std::string name;
  std::string value;  // without the quotation marks
};

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Splits `name:value; name; ...`; semicolons in quotation marks do not separate options.
std::vector<Option> options_in(const std::string& text, const std::string& where) {
  std::vector<Option> options;
  std::string one;
  bool is_quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\' && at + 1 < text.size()) {
      one += c;
      one += text[++at];
      continue;
    }
    if (c == '"') is_quoted = !is_quoted;
    if (c != ';' || is_quoted) {
      one += c;
      continue;
    }
    const size_t colon = one.find(':');
    Option option{trimmed(one.substr(0, colon)),
                  colon == std::string::npos ? "" : trimmed(one.substr(colon + 1))};
    std::string& value = option.value;
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    options.push_back(std::move(option));
    one.clear();
  }
  if (is_quoted || !trimmed(one).empty()) {
    throw ConfigError("an option does not end", where, "each ends in a semicolon");
  }
  return options;
}

uint32_t number_in(const Option& option, const std::string& where) {
  uint32_t number = 0;
  const char* const end = option.value.data() + option.value.size();
  const auto [stop, error] = std::from_chars(option.value.data(), end, number);
  if (error == std::errc() && stop == end) return number;
  throw ConfigError(option.name + " is no number", where, "such as " + option.name + ":1;");
}

uint8_t proto_of(const std::string& name, const std::string& where) {
  if (name == "ip") return 0;
  if (name == "tcp") return net::kProtoTcp;
  if (name == "udp") return net::kProtoUdp;
  if (name == "icmp") return net::kProtoIcmp;
  throw ConfigError("'" + name + "' is no protocol that is known here", where,
                    "one of ip, tcp, udp, icmp");
}

void apply_option(DpiRule& rule, uint32_t& sid, const Option& option, const std::string& where) {
  if (option.name == "content") {
    if (option.value.starts_with("!")) {
      throw ConfigError("content that must not be there is not known here", where,
                        "leave the rule out");
    }
    rule.patterns.push_back({parse_content(option.value, where), false});
  } else if (option.name == "nocase") {
    if (rule.patterns.empty() || rule.patterns.back().is_regex) {
      throw ConfigError("nocase belongs behind a content", where, kForm);
    }
    rule.patterns.back().is_nocase = true;
  } else if (option.name == "pcre") {
    rule.patterns.push_back(parse_pcre(option.value, where));
  } else if (option.name == "msg") {
    rule.message = option.value;
  } else if (option.name == "sid") {
    sid = number_in(option, where);
  } else if (option.name == "mark") {
    rule.mark = number_in(option, where);
  } else if (!kWordsAboutRules.contains(option.name)) {
    throw ConfigError("the option '" + option.name + "' is not known here", where,
                      "known are msg, content, nocase, pcre, mark, sid; leave the rule out");
  }
}

Action action_of_line(const std::string& name, const std::string& where) {
  if (name == "alert" || name == "log") return Action::kAlert;
  if (name == "drop" || name == "reject") return Action::kDrop;
  if (name == "mark") return Action::kMark;
  throw ConfigError("'" + name + "' is no action that is known here", where,
                    "one of alert, log, drop, reject, mark");
}

std::pair<uint32_t, DpiRule> parse_line(const std::string& line, const std::string& where,
                                        bool ignores_headers) {
  const size_t open = line.find('(');
  const size_t close = line.rfind(')');
  std::istringstream head(line.substr(0, open));
  std::array<std::string, 7> words;
  size_t n_words = 0;
  for (std::string word; head >> word; ++n_words) {
    if (n_words < words.size()) words[n_words] = word;
  }
  if (open == std::string::npos || close == std::string::npos || close < open ||
      n_words != words.size() || (words[4] != "->" && words[4] != "<>") ||
      !trimmed(line.substr(close + 1)).empty()) {
    throw ConfigError("this line is no rule", where, kForm);
  }
  DpiRule rule;
  rule.action = action_of_line(words[0], where);
  rule.proto = proto_of(words[1], where);
  for (const size_t i : {2, 3, 5, 6}) {
    if (words[i] == "any" || ignores_headers) continue;
    throw ConfigError("'" + words[i] + "' is not looked at here", where,
                      "put an acl in front and write any; or set ignore_headers");
  }
  uint32_t sid = 0;
  for (const Option& option : options_in(line.substr(open + 1, close - open - 1), where)) {
    apply_option(rule, sid, option, where);
  }
  if (sid == 0 || sid >= kFirstWordId) {
    throw ConfigError("the rule has no number", where,
                      "give sid, from 1 to " + std::to_string(kFirstWordId - 1));
  }
  if (rule.patterns.empty()) {
    throw ConfigError("the rule looks for nothing", where, "give content or pcre");
  }
  return {sid, std::move(rule)};
}

// Calls `take` for each line that is neither blank nor a # comment.
template <class Take>
void for_each_line(const std::string& path, const std::string& where, Take take) {
  std::ifstream in = open_text_file(path, where);
  uint32_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string text = trimmed(line);
    if (!text.empty() && text.front() != '#') take(text, path + ":" + std::to_string(number));
  }
}

void check_count(size_t n, const std::string& where) {
  if (n <= kMaxDpiRules) return;
  throw ConfigError("there are too many rules", where,
                    "at most " + std::to_string(kMaxDpiRules) + " fit");
}

}  // namespace

void read_rules(const std::string& path, const std::string& where, bool ignores_headers,
                std::map<uint32_t, DpiRule>& rules) {
  for_each_line(path, where, [&](const std::string& line, const std::string& at) {
    auto [sid, rule] = parse_line(line, at, ignores_headers);
    if (!rules.emplace(sid, std::move(rule)).second) {
      throw ConfigError("another rule has the number " + std::to_string(sid), at,
                        "keep one of them");
    }
    check_count(rules.size(), at);
  });
}

void read_words(const std::string& path, const std::string& where, Action action,
                std::map<uint32_t, DpiRule>& rules) {
  uint32_t id = kFirstWordId;
  for_each_line(path, where, [&](const std::string& line, const std::string& at) {
    if (line.size() > kMaxPatternBytes) {
      throw ConfigError("the word is too long", at,
                        "at most " + std::to_string(kMaxPatternBytes) + " bytes");
    }
    rules.emplace(id++, DpiRule{.patterns = {{line, true}}, .action = action, .message = line});
    check_count(rules.size(), at);
  });
}

}  // namespace batchplane::dpi
