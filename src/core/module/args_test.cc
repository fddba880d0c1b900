// SPDX-License-Identifier: BSD-3-Clause
// args_test.cc - messages of the parameter checks; drop reasons of the same name are one.
#include "core/module/args.h"

#include <gtest/gtest.h>

#include "base/nearest_word.h"
#include "core/module/drop_reason.h"

namespace batchplane {
namespace {

const std::vector<ParamSpec> kSpecs = {
    {.name = "flag", .type = ParamType::kBool, .default_value = true, .help = "H"},
    {.name = "count",
     .type = ParamType::kInt,
     .unit = "pkts",
     .help = "how many",
     .min = 1,
     .max = 9},
    {.name = "share",
     .type = ParamType::kFloat,
     .default_value = 0.5,
     .help = "H",
     .min = 0,
     .max = 1},
    {.name = "mode",
     .type = ParamType::kString,
     .default_value = "x",
     .help = "H",
     .choices = {"x", "y"}},
    {.name = "mac", .type = ParamType::kMac, .default_value = "02:00:00:00:00:01", .help = "H"},
    {.name = "ip", .type = ParamType::kIpv4, .default_value = "10.0.0.1", .help = "H"},
    {.name = "net", .type = ParamType::kIpv4Prefix, .default_value = "10.0.0.0/8", .help = "H"},
    {.name = "list", .type = ParamType::kList, .default_value = List{}, .help = "H"},
    {.name = "dict", .type = ParamType::kDict, .default_value = Dict{}, .help = "H"},
    {.name = "pair", .type = ParamType::kList, .default_value = List{}, .help = "H", .min = 2},
    {.name = "word", .type = ParamType::kString, .default_value = "", .help = "H", .min = 1},
};

std::vector<std::string> mistakes(const Dict& given) {
  std::vector<ConfigError> errors;
  const Args args(kSpecs, given, "modules.m", errors);
  std::vector<std::string> lines;
  for (const ConfigError& error : errors) lines.push_back(error.line());
  return lines;
}

TEST(Args, DefaultsFillWhatIsNotGiven) {
  std::vector<ConfigError> errors;
  const Args args(kSpecs, {{"count", 3}}, "m", errors);
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(args.u32("count"), 3U);
  EXPECT_TRUE(args.flag("flag"));
  EXPECT_TRUE(args.given("count"));
  EXPECT_FALSE(args.given("flag"));
  EXPECT_THROW((void)args.at("nothing"), ConfigError);
}

TEST(Args, EveryMistakeHasItsText) {
  const std::pair<Dict, std::string> cases[] = {
      {{}, "modules.m: 'count' is missing (add count: how many)"},
      {{{"count", "3"}}, "modules.m.params.count: expected an integer, found '3' (how many)"},
      {{{"count", 10}}, "modules.m.params.count: 10 is out of range 1 .. 9 pkts (how many)"},
      {{{"count", 0}}, "modules.m.params.count: 0 is out of range 1 .. 9 pkts (how many)"},
      {{{"count", 3}, {"flag", 1}}, "modules.m.params.flag: expected true or false, found '1' (H)"},
      {{{"count", 3}, {"share", "a"}}, "modules.m.params.share: expected a number, found 'a' (H)"},
      {{{"count", 3}, {"share", 1.5}}, "modules.m.params.share: 1.5 is out of range 0 .. 1 (H)"},
      {{{"count", 3}, {"mode", "z"}}, "modules.m.params.mode: 'z' is not one of x, y (H)"},
      {{{"count", 3}, {"mode", 4}}, "modules.m.params.mode: expected string, found '4' (H)"},
      {{{"count", 3}, {"mac", "02:00"}}, "modules.m.params.mac: '02:00' is no MAC address (H)"},
      {{{"count", 3}, {"ip", "10.0.0"}}, "modules.m.params.ip: '10.0.0' is no IPv4 address (H)"},
      {{{"count", 3}, {"net", "10.0.0.1/8"}},
       "modules.m.params.net: '10.0.0.1/8' is no IPv4 prefix such as 10.0.0.0/8 (host bits must be "
       "zero) "
       "(H)"},
      {{{"count", 3}, {"list", 1}}, "modules.m.params.list: expected a list, found '1' (H)"},
      {{{"count", 3}, {"dict", 1}}, "modules.m.params.dict: expected a mapping, found '1' (H)"},
      {{{"count", 3}, {"pair", List{1}}}, "modules.m.params.pair: needs at least 2 elements (H)"},
      {{{"count", 3}, {"word", ""}}, "modules.m.params.word: must not be empty (H)"},
      {{{"count", 3}, {"cuont", 1}},
       "modules.m.params.cuont: unknown parameter 'cuont' (did you mean 'count'?)"},
      {{{"count", 3}, {"zzzzzzzz", 1}},
       "modules.m.params.zzzzzzzz: unknown parameter 'zzzzzzzz' (one of: count, dict, flag, ip, "
       "list, mac, mode, net, pair, share, word)"},
  };
  for (const auto& [given, line] : cases)
    EXPECT_EQ(mistakes(given), std::vector<std::string>{line});
  EXPECT_EQ(mistakes({{"count", 10}, {"ip", "x"}, {"q", 1}}).size(), 3U);
}

TEST(Args, LeastLengthsBindWhatIsGivenNotTheDefault) {
  EXPECT_TRUE(mistakes({{"count", 3}}).empty());
  EXPECT_TRUE(mistakes({{"count", 3}, {"pair", List{1, 2}}, {"word", "w"}}).empty());
  EXPECT_TRUE(mistakes({{"count", 3}, {"list", List{}}, {"mode", "x"}}).empty());
}

TEST(NearestWord, OffersWhatIsNearAndNothingElse) {
  const std::vector<std::string> words = {"source", "sink", "split"};
  EXPECT_EQ(nearest_word("sorce", words), "source");
  EXPECT_EQ(nearest_word("sikn", words), "sink");
  EXPECT_EQ(nearest_word("xyzxyz", words), "");
  EXPECT_EQ(nearest_word("", words), "");
}

TEST(DropReason, SameNameIsTheSameReason) {
  const DropReason first{"test_reason_a", "m", "r"};
  const DropReason again{"test_reason_a", "other", "other"};
  const DropReason other{"test_reason_b", "m", "r"};
  EXPECT_EQ(first.index(), again.index());
  EXPECT_NE(first.index(), other.index());
  EXPECT_EQ(drop_reasons()[first.index()].name, "test_reason_a");
  EXPECT_EQ(drop_reasons()[first.index()].meaning, "m");
}

}  // namespace
}  // namespace batchplane
