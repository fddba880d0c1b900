// SPDX-License-Identifier: BSD-3-Clause
// value_test.cc - copies share subtrees, and the state after a move.
#include "base/value.h"

#include <gtest/gtest.h>

namespace batchplane {
namespace {

// Answers are built level by level: with deep copies, each level would copy everything below it.
TEST(Value, CopiesShareWhatLiesBelow) {
  const Value leaf = Dict{{"rates", List{1, 2.5, "x"}}};
  const Value row = Dict{{"leaf", leaf}};
  const Value tree = List{row, row, leaf};
  const List& rows = tree.as_list();
  EXPECT_EQ(&rows[0]["leaf"].as_dict(), &leaf.as_dict());
  EXPECT_EQ(&rows[0].as_dict(), &rows[1].as_dict());
  EXPECT_EQ(&rows[2]["rates"].as_list(), &leaf["rates"].as_list());
}

TEST(Value, EqualWhereContentsAre) {
  const Value one = Dict{{"a", List{1, Dict{{"b", true}}}}};
  EXPECT_EQ(one, Value(Dict{{"a", List{1, Dict{{"b", true}}}}}));
  EXPECT_FALSE(one == Value(Dict{{"a", List{1, Dict{{"b", false}}}}}));
  EXPECT_FALSE(Value(1) == Value(1.0));
  EXPECT_FALSE(Value(List{}) == Value(Dict{}));
}

TEST(Value, NothingIsLeftAfterAMove) {
  Value from = List{1};
  const Value to = std::move(from);
  EXPECT_EQ(to.as_list().size(), 1U);
  EXPECT_TRUE(from.is_null());  // NOLINT(bugprone-use-after-move)
  from = Dict{{"again", 1}};
  EXPECT_EQ(from["again"].as_int(), 1);
}

}  // namespace
}  // namespace batchplane
