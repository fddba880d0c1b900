// SPDX-License-Identifier: BSD-3-Clause
// rewrite_fields.cc - parses the fields of a rewrite.
#include "modules/policy/rewrite_fields.h"

#include "modules/common/item_syntax.h"
#include "modules/common/match_fields.h"

namespace batchplane::rewrite {
namespace {

Base base_of(const Value& value, const std::string& where) {
  if (value.is_null()) return Base::kL2;
  const std::string name = value.is_string() ? value.as_string() : "";
  if (name == "l2") return Base::kL2;
  if (name == "l3") return Base::kL3;
  if (name == "l4") return Base::kL4;
  throw ConfigError("expected l2, l3 or l4", where, "the header that the offset counts from");
}

Field parse(const Value& item, const std::string& where) {
  check_keys(item, {"offset", "size_bytes", "value", "base", "mask"}, where);
  if (!item.has("value")) throw ConfigError("value is missing", where, "what to write there");
  const auto size =
      static_cast<uint32_t>(int_value(item["size_bytes"], 1, 8, where + ".size_bytes"));
  const uint64_t mask =
      item.has("mask")
          ? to_memory_order(parse_field_value(item["mask"], size, where + ".mask"), size)
          : to_memory_order(~0ULL >> (64 - 8 * size), size);
  const uint64_t value =
      to_memory_order(parse_field_value(item["value"], size, where + ".value"), size);
  if ((value & ~mask) != 0) {
    throw ConfigError("the value has bits outside the mask", where + ".value",
                      "clear those bits, or widen the mask");
  }
  return {
      .value = value,
      .mask = mask,
      .offset_bytes = static_cast<uint16_t>(int_value(item["offset"], 0, 9000, where + ".offset")),
      .size_bytes = static_cast<uint8_t>(size),
      .base = base_of(item["base"], where + ".base")};
}

}  // namespace

Program parse_fields(const List& list, const std::string& where) {
  if (list.empty() || list.size() > kMaxFields) {
    throw ConfigError("there are " + std::to_string(list.size()) + " fields", where,
                      "give 1 to " + std::to_string(kMaxFields));
  }
  Program program;
  for (size_t i = 0; i < list.size(); ++i) {
    const Field field = parse(list[i], where + "[" + std::to_string(i) + "]");
    program.fields[program.n++] = field;
    program.needs_l4 |= field.base == Base::kL4;
  }
  return program;
}

}  // namespace batchplane::rewrite
