// SPDX-License-Identifier: BSD-3-Clause
// json_line.cc - recursive-descent parser for one line of JSON.
#include "base/json_line.h"

#include <charconv>
#include <cmath>
#include <string>

#include "base/error.h"

namespace batchplane {
namespace {

constexpr uint32_t kMaxNested = 16;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Value whole() {
    Value value = any(0);
    skip_space();
    if (at_ != text_.size()) fail("something follows the value", "write one value per line");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& message, const std::string& fix = "") const {
    throw ConfigError("no valid JSON at byte " + std::to_string(at_ + 1) + ": " + message, "",
                      fix.empty() ? "write one JSON value per line" : fix);
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Value any(uint32_t depth) {
    if (depth == kMaxNested) fail("the nesting is too deep", "16 levels are read");
    skip_space();
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string();
      case 't':
        if (take_word("true")) return true;
        break;
      case 'f':
        if (take_word("false")) return false;
        break;
      case 'n':
        if (take_word("null")) return {};
        break;
      default:
        return number();
    }
    fail("an unknown word", "true, false, null, or text in quotes");
  }

  Value object(uint32_t depth) {
    Dict dict;
    ++at_;
    if (take('}')) return dict;
    do {
      skip_space();
      if (peek() != '"') fail("expected a key in quotes");
      std::string key = string();
      if (!take(':')) fail("expected ':' behind the key '" + key + "'");
      Value value = any(depth + 1);
      if (!dict.emplace(key, std::move(value)).second) {
        fail("the key '" + key + "' stands twice", "remove one");
      }
    } while (take(','));
    if (!take('}')) fail("expected ',' or '}'");
    return dict;
  }

  Value array(uint32_t depth) {
    List list;
    ++at_;
    if (take(']')) return list;
    do {
      list.push_back(any(depth + 1));
    } while (take(','));
    if (!take(']')) fail("expected ',' or ']'");
    return list;
  }

  std::string string() {
    std::string text;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return text;
      }
      if (static_cast<unsigned char>(c) < 0x20) fail("a control character in quotes");
      text += c == '\\' ? escaped() : c;
    }
    fail("the text has no closing quote");
  }
  // No other escapes: names and addresses do not need them.
  char escaped() {
    ++at_;
    const char c = peek();
    if (c == '"' || c == '\\' || c == '/') return c;
    if (c == 'n') return '\n';
    if (c == 't') return '\t';
    fail("an unknown escape", R"(\", \\, \/, \n and \t are read)");
  }

  Value number() {
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    const char* stop = begin;
    const auto belongs = [](char c) {
      return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
    };
    while (stop != end && belongs(*stop)) ++stop;
    if (stop == begin) fail("expected a value");
    int64_t integer = 0;
    const auto [after, error] = std::from_chars(begin, stop, integer);
    if (error == std::errc() && after == stop) {
      at_ += static_cast<size_t>(stop - begin);
      return integer;
    }
    double real = 0;
    const auto [after_real, error_real] = std::from_chars(begin, stop, real);
    if (error == std::errc::result_out_of_range && after == stop) {
      fail("the integer is out of range", "64 bits");
    }
    if (error_real != std::errc() || after_real != stop || !std::isfinite(real)) {
      fail("this is no number");
    }
    at_ += static_cast<size_t>(stop - begin);
    return real;
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Value parse_json_line(std::string_view text) { return Reader(text).whole(); }

}  // namespace batchplane
