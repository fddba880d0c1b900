// SPDX-License-Identifier: BSD-3-Clause
// cases_test.cc - every kind of module is fuzzed and measured, or says why it is not.
#include "cases/cases.h"

#include <gtest/gtest.h>

#include "core/module/kind.h"

namespace batchplane::cases {
namespace {

using Lines = std::vector<std::string>;

TEST(Cases, EveryKindIsFuzzedOrSaysWhyNot) {
  std::set<std::string> covered;
  for (const FuzzCase& one : fuzz_cases()) covered.insert(one.kind);
  EXPECT_EQ(faults_of(Need::kFuzz, covered), Lines{});
}

TEST(Cases, EveryKindIsMeasuredOrSaysWhyNot) {
  std::set<std::string> covered;
  std::set<std::string> labels;
  for (const CostCase& one : cost_cases()) {
    covered.insert(one.kind);
    EXPECT_TRUE(labels.insert(one.label).second) << "two cost cases are called " << one.label;
  }
  EXPECT_EQ(faults_of(Need::kCost, covered), Lines{});
}

// Each kind declares its state, so that nobody guesses from its name whether workers can share it.
TEST(Kinds, EachSaysWhatPacketsLeaveBehindInIt) {
  for (const ModuleInfo* info : all_module_kinds()) {
    EXPECT_TRUE(info->state.has_value() || info->kind.starts_with("test_")) << info->kind;
  }
}

// An input that takes packets from elsewhere belongs to one worker; so does a module that opens a
// file.
TEST(Kinds, WhatHasOneEndHasOneOwner) {
  for (const ModuleInfo* info : all_module_kinds()) {
    if (info->kind.starts_with("test_")) continue;
    const bool is_input = info->shape == Shape::kInput || info->shape == Shape::kQueue;
    EXPECT_EQ(is_input, info->feed != batchplane::Feed::kNone) << info->kind;
    if (is_input || info->opens) {
      EXPECT_EQ(info->state, StateOf::kOneOwner) << info->kind;
    }
  }
}

TEST(Cases, TheKindWithoutACaseIsNamed) {
  EXPECT_EQ(faults_of(Need::kFuzz, {"ttl", "wonder"}, {"ttl"}, {}),
            Lines{"module kind 'wonder' has no fuzz case: list one under .fuzz in its x_cases.cc, "
                  "or say there under .without why not (docs/adding-a-module.md)"});
}

TEST(Cases, AReasonExcusesFromThatNeedAlone) {
  const std::vector<Without> without{{"wonder", Need::kCost, "it costs nothing"}};
  EXPECT_EQ(faults_of(Need::kCost, {"wonder"}, {}, without), Lines{});
  EXPECT_EQ(faults_of(Need::kGolden, {"wonder"}, {}, without).size(), 1U);
}

TEST(Cases, AReasonThatHoldsNoLongerIsAFault) {
  const std::vector<Without> without{{"wonder", Need::kCost, "it costs nothing"}};
  EXPECT_EQ(faults_of(Need::kCost, {"wonder"}, {"wonder"}, without),
            Lines{"module kind 'wonder' has a case and says why it has none: it costs nothing"});
  EXPECT_EQ(faults_of(Need::kCost, {}, {}, without),
            Lines{"there is no module kind 'wonder' to say why it has no case"});
}

}  // namespace
}  // namespace batchplane::cases
