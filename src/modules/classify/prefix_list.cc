// SPDX-License-Identifier: BSD-3-Clause
#include "modules/classify/prefix_list.h"

#include <charconv>

#include "base/error.h"
#include "base/text_file.h"
#include "modules/common/item_syntax.h"

namespace batchplane {
namespace {

constexpr int64_t kMaxMark = (1LL << 32) - 1;

PrefixLengths<1>::Key key_of(const net::Prefix4& prefix) { return {prefix.address}; }
PrefixLengths<2>::Key key_of(const net::Prefix6& prefix) {
  return {prefix.address.high, prefix.address.low};
}

void add_one(PrefixList& all, const PrefixKey& key, uint32_t mark, const std::string& where) {
  if (all.emplace(key, mark).second) return;
  throw ConfigError(format_prefix_key(key) + " is there already", where, "keep one of them");
}

}  // namespace

PrefixKey parse_prefix_key(const std::string& text, const std::string& where) {
  const bool has_length = text.find('/') != std::string::npos;
  if (text.find(':') == std::string::npos) {
    if (const auto v4 = net::parse_prefix4(has_length ? text : text + "/32")) return *v4;
  } else {
    if (const auto v6 = net::parse_prefix6(has_length ? text : text + "/128")) return *v6;
  }
  throw ConfigError("'" + text + "' is no prefix", where,
                    "such as 192.0.2.0/29 or 2001:db8:7::/56, with no bit set behind its length");
}

std::string format_prefix_key(const PrefixKey& key) {
  if (const auto* v4 = std::get_if<net::Prefix4>(&key)) return net::format_prefix4(*v4);
  return net::format_prefix6(std::get<net::Prefix6>(key));
}

void add_prefixes(PrefixList& all, const List& items, const std::string& where) {
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string at = where + "[" + std::to_string(i) + "]";
    const Value& item = items[i];
    check_keys(item, {"prefix", "mark"}, at);
    if (!item["prefix"].is_string()) {
      throw ConfigError("expected a prefix", at + ".prefix", "such as \"192.0.2.0/29\"");
    }
    const auto mark = static_cast<uint32_t>(int_value(item["mark"], 0, kMaxMark, at + ".mark"));
    add_one(all, parse_prefix_key(item["prefix"].as_string(), at + ".prefix"), mark, at);
  }
}

void add_prefix_file(PrefixList& all, const std::string& path, const std::string& where) {
  std::ifstream in = open_text_file(path, where);
  std::string line;
  for (size_t n = 1; std::getline(in, line); ++n) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty() || line.front() == '#' || line == "prefix,mark") continue;
    const std::string at = path + ":" + std::to_string(n);
    const size_t comma = line.find(',');
    uint32_t mark = 0;
    const char* const end = line.data() + line.size();
    const char* const begin = comma == std::string::npos ? end : line.data() + comma + 1;
    const auto [stop, error] = std::from_chars(begin, end, mark);
    if (error != std::errc() || stop != end) {
      throw ConfigError("'" + line + "' is no prefix with a mark", at, "such as 192.0.2.0/29,7");
    }
    add_one(all, parse_prefix_key(line.substr(0, comma), at), mark, at);
  }
}

List prefix_values(const PrefixList& all) {
  List values;
  for (const auto& [key, mark] : all) {
    values.emplace_back(Dict{{"prefix", format_prefix_key(key)}, {"mark", mark}});
  }
  return values;
}

void set_prefix(PrefixMarks& marks, const PrefixKey& key, uint32_t mark) {
  if (const auto* v4 = std::get_if<net::Prefix4>(&key)) {
    marks.v4.set(key_of(*v4), v4->length, mark);
  } else {
    const auto& v6 = std::get<net::Prefix6>(key);
    marks.v6.set(key_of(v6), v6.length, mark);
  }
}

void erase_prefix(PrefixMarks& marks, const PrefixKey& key) {
  if (const auto* v4 = std::get_if<net::Prefix4>(&key)) {
    marks.v4.erase(key_of(*v4), v4->length);
  } else {
    const auto& v6 = std::get<net::Prefix6>(key);
    marks.v6.erase(key_of(v6), v6.length);
  }
}

PrefixMarks marks_of(const PrefixList& all) {
  PrefixMarks marks;
  for (const auto& [key, mark] : all) set_prefix(marks, key, mark);
  return marks;
}

}  // namespace batchplane
