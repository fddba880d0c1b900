// SPDX-License-Identifier: BSD-3-Clause
// json_value_test.cc - JSON text to values and back; invalid input.
#include "app/wire/json_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/rng.h"

namespace batchplane::app {
namespace {

std::string refusal(const std::string& text) {
  try {
    (void)parse_json(text, "here");
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(JsonValue, KeepsEveryTypeInARoundTrip) {
  const std::string text =
      R"({"a":[1,-2,9223372036854775807],"b":1.5,"c":2.0,"d":true,"e":null,"f":"\"\\\nü","g":{}})";
  const Value value = parse_json(text, "here");
  EXPECT_TRUE(value["c"].is_double());
  EXPECT_TRUE(value["a"].as_list()[2].is_int());
  EXPECT_EQ(to_json(value), text);
  EXPECT_EQ(parse_json(to_json(value), "here"), value);
}

TEST(JsonValue, WritesNumbersThatAreNotFiniteAsNull) {
  EXPECT_EQ(to_json(List{std::numeric_limits<double>::infinity(), std::nan("")}), "[null,null]");
}

TEST(JsonValue, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(to_json(std::string("a\xff")), "\"a\xEF\xBF\xBD\"");
}

TEST(JsonValue, WritesEachCharacterAsTheLibraryDoes) {
  for (int c = 0; c < 0x80; ++c) {
    const std::string text = std::string("a") + static_cast<char>(c) + "b";
    EXPECT_EQ(to_json(text), nlohmann::json(text).dump()) << "character " << c;
  }
  EXPECT_EQ(to_json(std::string()), "\"\"");
}

TEST(JsonValue, RefusesDeepNesting) {
  EXPECT_EQ(refusal(std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']')), "");
  EXPECT_NE(refusal(std::string(kMaxJsonDepth + 1, '[') + std::string(kMaxJsonDepth + 1, ']')), "");
  EXPECT_NE(refusal(std::string(1'000'000, '[')), "");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"a":)";
  EXPECT_NE(refusal(objects), "");
}

TEST(JsonValue, RefusesKeysThatStandTwice) {
  EXPECT_NE(refusal(R"({"a":1,"b":2,"a":3})").find("'a' stands twice"), std::string::npos);
}

TEST(JsonValue, RefusesNumbersOutOfRange) {
  EXPECT_NE(refusal("9223372036854775808"), "");
  EXPECT_NE(refusal("99999999999999999999999999"), "");
  EXPECT_NE(refusal("1e999"), "");
  EXPECT_NE(refusal("-1e999"), "");
}

TEST(JsonValue, RefusesInvalidJson) {
  for (const char* text : {"", "{", "[1,]", "nul", "{\"a\"}", "1 2", "\"\xff\"", "'a'", "\x01"}) {
    EXPECT_NE(refusal(text), "") << text;
  }
}

TEST(JsonValue, SurvivesMutatedText) {
  const std::string good = R"({"a":[1,2.5,{"b":"text"}],"c":null,"d":[true,false,[]]})";
  Rng rng(7);
  uint32_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (int edits = 0; edits < 3; ++edits) {
      text[rng.below(static_cast<uint32_t>(text.size()))] = static_cast<char>(rng.below(256));
    }
    if (!refusal(text).empty()) ++refused;
  }
  EXPECT_GT(refused, 1000U);
}

}  // namespace
}  // namespace batchplane::app
