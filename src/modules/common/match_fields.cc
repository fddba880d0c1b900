// SPDX-License-Identifier: BSD-3-Clause
// match_fields.cc - checks and packs the fields of exact-match rules.
#include "modules/common/match_fields.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"
#include "base/net.h"

namespace batchplane {
namespace {

uint64_t full_mask(uint32_t size_bytes) { return ~0ULL >> (64 - 8 * size_bytes); }

int64_t integer_in(const Value& value, int64_t least, int64_t most, const std::string& where) {
  if (!value.is_int() || value.as_int() < least || value.as_int() > most) {
    throw ConfigError("expected an integer", where,
                      "from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value.as_int();
}

bool parse_hex(const std::string& text, uint64_t& number) {
  if (!text.starts_with("0x") && !text.starts_with("0X")) return false;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 2, end, number, 16);
  return error == std::errc() && stop == end && text.size() > 2;
}

}  // namespace

uint64_t parse_field_value(const Value& value, uint32_t size_bytes, const std::string& where) {
  uint64_t number = 0;
  if (value.is_int() && value.as_int() >= 0) {
    number = static_cast<uint64_t>(value.as_int());
  } else if (value.is_string()) {
    const std::string& text = value.as_string();
    if (const auto mac = net::parse_mac(text); mac && size_bytes == 6) {
      for (const uint8_t byte : *mac) number = number << 8 | byte;
    } else if (const auto ip = net::parse_ipv4(text); ip && size_bytes == 4) {
      number = *ip;
    } else if (!parse_hex(text, number)) {
      throw ConfigError(
          "'" + text + "' is no value for a field of " + std::to_string(size_bytes) + " bytes",
          where, "write 12, \"0x0c\", an IPv4 address (4 bytes) or a MAC (6 bytes)");
    }
  } else {
    throw ConfigError("expected a value, found " + std::string(value.type_name()), where,
                      "write 12, \"0x0c\", an IPv4 address (4 bytes) or a MAC (6 bytes)");
  }
  if ((number & ~full_mask(size_bytes)) != 0) {
    throw ConfigError("the value needs more than " + std::to_string(size_bytes) + " bytes", where,
                      "make the field wider or the value smaller");
  }
  return number;
}

MatchLayout::MatchLayout(const List& fields, const std::string& where) {
  if (fields.empty() || fields.size() > kMaxMatchFields) {
    throw ConfigError("there are " + std::to_string(fields.size()) + " fields", where + ".fields",
                      "give 1 to " + std::to_string(kMaxMatchFields));
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string at = where + ".fields[" + std::to_string(i) + "]";
    if (!fields[i].is_dict()) {
      throw ConfigError("expected {offset, size_bytes, mask}", at,
                        "e.g. {offset: 30, size_bytes: 4}");
    }
    for (const auto& [key, value] : fields[i].as_dict()) {
      if (key == "offset" || key == "size_bytes" || key == "mask") continue;
      throw ConfigError("unknown key '" + key + "'", at, "a field has offset, size_bytes and mask");
    }
    MatchField field;
    field.offset_bytes = static_cast<uint32_t>(
        integer_in(fields[i]["offset"], 0, kMaxFrameBytes - 8, at + ".offset"));
    field.size_bytes =
        static_cast<uint32_t>(integer_in(fields[i]["size_bytes"], 1, 8, at + ".size_bytes"));
    const Value& mask = fields[i]["mask"];
    field.mask =
        to_memory_order(mask.is_null() ? full_mask(field.size_bytes)
                                       : parse_field_value(mask, field.size_bytes, at + ".mask"),
                        field.size_bytes);
    fast_len_bytes_ = std::max(fast_len_bytes_, field.offset_bytes + 8);
    min_len_bytes_ = std::max(min_len_bytes_, field.offset_bytes + field.size_bytes);
    fields_.push_back(field);
  }
  assign_words();
}

// Widest first, each into the first word with room: a field never spans two words, and at most
// eight fields need at most eight words.
void MatchLayout::assign_words() {
  std::vector<uint32_t> order(fields_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](uint32_t i) { return fields_[i].size_bytes; });
  std::array<uint32_t, kMaxKeyWords> used_bytes{};
  for (const uint32_t i : order) {
    uint32_t word = 0;
    while (used_bytes[word] + fields_[i].size_bytes > 8) ++word;
    fields_[i].word = word;
    fields_[i].shift_bits = 8 * used_bytes[word];
    used_bytes[word] += fields_[i].size_bytes;
    n_words_ = std::max(n_words_, word + 1);
  }
}

WideKey MatchLayout::key_of(const List& values, const std::string& where) const {
  if (values.size() != fields_.size()) {
    throw ConfigError("there are " + std::to_string(values.size()) + " values for " +
                          std::to_string(fields_.size()) + " fields",
                      where + ".values", "give one value per field, in order");
  }
  WideKey key{};
  for (size_t i = 0; i < values.size(); ++i) {
    const MatchField& field = fields_[i];
    const std::string at = where + ".values[" + std::to_string(i) + "]";
    const uint64_t bits =
        to_memory_order(parse_field_value(values[i], field.size_bytes, at), field.size_bytes);
    if ((bits & ~field.mask) != 0) {
      throw ConfigError("the value has bits outside the field's mask, so it never matches", at,
                        "clear those bits, or widen the mask");
    }
    key[field.word] |= bits << field.shift_bits;
  }
  return key;
}

}  // namespace batchplane
