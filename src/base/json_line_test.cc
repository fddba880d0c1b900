// SPDX-License-Identifier: BSD-3-Clause
// json_line_test.cc - good lines become values; for bad ones the error says where.
#include "base/json_line.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace batchplane {
namespace {

std::string refusal(const std::string& text) {
  try {
    (void)parse_json_line(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(JsonLine, ReadsEveryKindOfValue) {
  const Value value = parse_json_line(
      R"( {"a": [1, -2, 3.5, true, false, null], "b": {"c": "x \"y\" \\ \/ \n"}, "d": [], "e": {}} )");
  EXPECT_EQ(value["a"], Value(List{1, -2, 3.5, true, false, Value()}));
  EXPECT_EQ(value["b"]["c"].as_string(), "x \"y\" \\ / \n");
  EXPECT_TRUE(value["d"].is_list());
  EXPECT_TRUE(value["e"].is_dict());
  EXPECT_EQ(parse_json_line("9223372036854775807").as_int(), INT64_MAX);
  EXPECT_EQ(parse_json_line("-9223372036854775808").as_int(), INT64_MIN);
  EXPECT_EQ(parse_json_line("1e3").as_double(), 1000.0);
}

TEST(JsonLine, RefusesInvalidJson) {
  const char* const bad[] = {"",          " ",        "{",       "}",      "[1",
                             "[1,]",      "{\"a\"}",  "{\"a\":", "{a: 1}", "{\"a\":1,",
                             "\"x",       "\"x\\q\"", "tru",     "nul",    "1 2",
                             "--1",       "1e999",    "0x10",    "{} {}",  "[1 2]",
                             "{\"a\" 1}", "\"\x01\"", "\"\\",    "+",      "99999999999999999999"};
  for (const char* text : bad) EXPECT_NE(refusal(text), "") << text;
  EXPECT_NE(refusal("{\"a\": 1, \"b\": x}").find("byte 15"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1, \"a\": 2}").find("stands twice"), std::string::npos);
}

TEST(JsonLine, NestingEnds) {
  EXPECT_EQ(refusal(std::string(16, '[') + std::string(16, ']')), "");
  EXPECT_NE(refusal(std::string(17, '[') + std::string(17, ']')).find("too deep"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(100'000, '[')), "");
}

}  // namespace
}  // namespace batchplane
