// SPDX-License-Identifier: BSD-3-Clause
// json_value.cc - builds a Value from parser events, and writes one.
#include "app/wire/json_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace batchplane::app {
namespace {

using Json = nlohmann::json;

// The parser reports single events and does not recurse, so we control the depth.
class Builder {
 public:
  // NOLINTBEGIN(readability-identifier-naming): names that the library calls
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;
  // NOLINTEND(readability-identifier-naming)

  bool null() { return put({}); }
  bool boolean(bool b) { return put(b); }
  bool number_integer(number_integer_t i) { return put(static_cast<int64_t>(i)); }
  bool number_unsigned(number_unsigned_t u) {
    if (u > static_cast<uint64_t>(INT64_MAX)) return fail("an integer is out of range", "64 bits");
    return put(static_cast<int64_t>(u));
  }
  bool number_float(number_float_t d, const string_t& text) {
    // A float of digits alone is an integer that was too large.
    if (text.find_first_of(".eE") == std::string::npos) {
      return fail("the integer " + text.substr(0, 40) + " is out of range", "64 bits");
    }
    return put(d);
  }
  bool string(string_t& s) { return put(std::move(s)); }
  bool binary(binary_t&) { return fail("binary data is no JSON", ""); }
  bool start_object(size_t) { return open(Dict{}); }
  bool start_array(size_t) { return open(List{}); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(string_t& name) {
    Frame& frame = stack_.back();
    if (frame.dict.contains(name)) return fail("the key '" + name + "' stands twice", "remove one");
    frame.key = std::move(name);
    return true;
  }
  bool parse_error(size_t at_byte, const std::string& last, const Json::exception& e) {
    const bool is_range = e.id / 100 == 4;
    return fail(is_range ? "the number " + last.substr(0, 40) + " is out of range"
                         : "no valid JSON at byte " + std::to_string(at_byte),
                "");
  }

  Value result;
  std::string error;
  std::string fix;

 private:
  struct Frame {
    bool is_list = false;
    List list = {};
    Dict dict = {};
    std::string key = {};
  };

  bool fail(std::string message, std::string how) {
    if (error.empty()) {
      error = std::move(message);
      fix = std::move(how);
    }
    return false;
  }
  bool open(Value container) {
    if (stack_.size() >= kMaxJsonDepth) {
      return fail("nested deeper than " + std::to_string(kMaxJsonDepth) + " levels", "flatten it");
    }
    stack_.emplace_back();
    stack_.back().is_list = container.is_list();
    return true;
  }
  bool close() {
    Frame done = std::move(stack_.back());
    stack_.pop_back();
    return done.is_list ? put(std::move(done.list)) : put(std::move(done.dict));
  }
  bool put(Value value) {
    if (stack_.empty()) {
      result = std::move(value);
    } else if (stack_.back().is_list) {
      stack_.back().list.push_back(std::move(value));
    } else {
      stack_.back().dict.emplace(std::move(stack_.back().key), std::move(value));
    }
    return true;
  }

  std::vector<Frame> stack_;
};

bool is_plain(char c) { return c >= 0x20 && c != '"' && c != '\\'; }

// Fast path for names and keys, of which an answer has thousands: the library would build a tree and a writer
// for each.
void append_string(std::string& out, const std::string& text) {
  if (std::ranges::all_of(text, is_plain)) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  out += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void append_double(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  const std::string_view written(text.data(), static_cast<size_t>(end - text.data()));
  out += written;
  // Keeps a float a float when it is read back.
  if (written.find_first_of(".en") == std::string_view::npos) out += ".0";
}

}  // namespace

Value parse_json(std::string_view text, const std::string& where) {
  Builder builder;
  if (!Json::sax_parse(text, &builder)) throw ConfigError(builder.error, where, builder.fix);
  return std::move(builder.result);
}

void append_json(std::string& out, const Value& value) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_int()) {
    out += std::to_string(value.as_int());
  } else if (value.is_double()) {
    append_double(out, value.as_double());
  } else if (value.is_string()) {
    append_string(out, value.as_string());
  } else if (value.is_list()) {
    out += '[';
    const char* separator = "";
    for (const Value& element : value.as_list()) {
      out += separator;
      append_json(out, element);
      separator = ",";
    }
    out += ']';
  } else {
    out += '{';
    const char* separator = "";
    for (const auto& [key, element] : value.as_dict()) {
      out += separator;
      append_string(out, key);
      out += ':';
      append_json(out, element);
      separator = ",";
    }
    out += '}';
  }
}

std::string to_json(const Value& value) {
  std::string out;
  append_json(out, value);
  return out;
}

}  // namespace batchplane::app
