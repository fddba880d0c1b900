// SPDX-License-Identifier: BSD-3-Clause
// cost_law_value_test.cc - cost laws survive conversion to plain values and back; errors are reported.
#include "base/cost_law_value.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace batchplane {
namespace {

TEST(CostLawValueTest, ARoundTripKeepsEverything) {
  for (const CostLaw& law :
       {CostLaw(), CostLaw(12.25, 0.75), CostLaw({{1, 20.125}, {2, 30}, {3, 33}}, {9, 8.5}),
        CostLaw({{1, 20}, {8, 30}, {256, 999.5}}, {9, 8.5}),
        CostLaw({{1, 100}, {2, 100}, {3, 100}, {4, 200}})}) {
    EXPECT_EQ(cost_law_from(cost_law_value(law), "x"), law);
  }
  EXPECT_FALSE(cost_law_value({{{1, 4}, {2, 5}}, {3, 1}}).contains("table_pkts"));
}

TEST(CostLawValueTest, ATableAloneGetsALine) {
  const CostLaw law = cost_law_from(Dict{{"table_ns", List{12, 14, 16, 18}}, {"kind", "acl"}}, "x");
  EXPECT_NEAR(law.line().cost_per_batch_ns, 10, 1e-9);
  EXPECT_NEAR(law.line().cost_per_pkt_ns, 2, 1e-9);
  EXPECT_EQ(law.ns(3), 16);
}

std::string error_of(const Dict& given) {
  try {
    (void)cost_law_from(given, "costs.acl");
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}

TEST(CostLawValueTest, WhatIsWrongIsSaid) {
  const List times{5, 6, 7};
  EXPECT_NE(error_of({}).find("costs.acl: the cost is not whole"), std::string::npos);
  EXPECT_NE(error_of({{"cost_per_pkt_ns", 3}, {"table_ns", times}}).find("not whole"),
            std::string::npos);
  EXPECT_NE(error_of({{"cost_per_batch_ns", -1}, {"cost_per_pkt_ns", 3}})
                .find("costs.acl: 'cost_per_batch_ns' is -1"),
            std::string::npos);
  EXPECT_NE(error_of({{"cost_per_batch_ns", "x"}, {"cost_per_pkt_ns", 3}}).find("is a string"),
            std::string::npos);
  EXPECT_NE(error_of({{"table_ns", List{5, 2e9}}}).find("costs.acl.table_ns: time 2 of the table"),
            std::string::npos);
  EXPECT_NE(error_of({{"table_ns", List{}}}).find("the table is empty"), std::string::npos);
  EXPECT_NE(
      error_of({{"table_ns", times}, {"table_pkts", List{1, 2}}}).find("2 sizes have 3 times"),
      std::string::npos);
  EXPECT_NE(error_of({{"table_ns", times}, {"table_pkts", List{1, 4, 4}}}).find("ascend"),
            std::string::npos);
  EXPECT_NE(error_of({{"table_ns", times}, {"table_pkts", List{0, 1, 2}}}).find("size 0"),
            std::string::npos);
}

}  // namespace
}  // namespace batchplane
