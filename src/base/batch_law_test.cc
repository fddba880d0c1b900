// SPDX-License-Identifier: BSD-3-Clause
// batch_law_test.cc - laws of lines and of tables; as plain values and back.
#include "base/batch_law.h"

#include <gtest/gtest.h>

#include "base/batch_law_value.h"
#include "base/error.h"

namespace batchplane {
namespace {

constexpr const char* kWhere = "devices.gpu.laws.dpi";

BatchLaw tabled() {
  return {.batch_ns = 100,
          .table =
              std::make_shared<const BatchTable>(BatchTable{.batch_pkts = {1, 16, 256},
                                                            .pkt_bytes = {64, 576},
                                                            .alone_ns = {10, 20, 25, 80, 265, 1040},
                                                            .busy_ns = {4, 9, 20, 90, 200, 1000}})};
}

TEST(BatchLawTest, ATableIsInterpolatedInBothDirections) {
  const BatchLaw law = tabled();
  EXPECT_DOUBLE_EQ(law.time_ns(1, 64), 10);
  EXPECT_DOUBLE_EQ(law.time_ns(256, 576), 1040);
  EXPECT_DOUBLE_EQ(law.time_ns(4, 64), 13) << "a fifth of the way from 10 to 25";
  EXPECT_DOUBLE_EQ(law.time_ns(16, 320), 52.5) << "between two lengths";
  EXPECT_DOUBLE_EQ(law.time_ns(4, 320), 15 + (52.5 - 15) / 5);
}

TEST(BatchLawTest, BeyondATableSlopesGoOn) {
  const BatchLaw law = tabled();
  EXPECT_DOUBLE_EQ(law.time_ns(496, 64), 505) << "1 ns a packet";
  EXPECT_DOUBLE_EQ(law.time_ns(1, 1088), 30);
  EXPECT_GE(law.time_ns(0.01, 1), 0);
  const BatchLaw one{.table = std::make_shared<const BatchTable>(BatchTable{{8}, {64}, {50}, {}})};
  EXPECT_DOUBLE_EQ(one.time_ns(1, 1472), 50) << "a single point has no slope";
}

TEST(BatchLawTest, ABatchTakesNoMoreOfTheDeviceThanItLasts) {
  const BatchLaw law = tabled();
  EXPECT_DOUBLE_EQ(law.busy_ns(1, 64), 4);
  EXPECT_DOUBLE_EQ(law.busy_ns(16, 576), 80) << "90 with several under way is a bad reading";
  EXPECT_DOUBLE_EQ((BatchLaw{.batch_ns = 7, .pkt_ns = 2}).busy_ns(3, 64), 13);
}

TEST(BatchLawTest, LawsAreScaledAndExtended) {
  EXPECT_DOUBLE_EQ(tabled().times(3).time_ns(16, 576), 240);
  EXPECT_DOUBLE_EQ(tabled().times(3).busy_ns(1, 576), 27);
  EXPECT_DOUBLE_EQ(tabled().plus(600, 10).time_ns(16, 64), 25 + 600 + 160);
  EXPECT_DOUBLE_EQ(tabled().plus(600, 10).batch_ns, 700) << "the summary, too";
  EXPECT_DOUBLE_EQ((BatchLaw{.pkt_ns = 2}).plus(600, 10).time_ns(2, 64), 624);
}

TEST(BatchLawTest, ARoundTripKeepsEverything) {
  for (const BatchLaw& law :
       {BatchLaw{}, BatchLaw{1, 2.5, 0.25, 4}, tabled(), tabled().times(0.1)}) {
    EXPECT_EQ(batch_law_from(batch_law_value(law), kWhere), law);
  }
  EXPECT_NE(tabled(), tabled().times(1.1));
  EXPECT_NE(tabled(), BatchLaw{.batch_ns = 100});
}

std::string law_refusal(const Value& given) {
  try {
    (void)batch_law_from(given, kWhere);
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}

TEST(BatchLawTest, WhatIsWrongIsSaid) {
  const auto has = [](const std::string& line, const std::string& part) {
    EXPECT_NE(line.find(part), std::string::npos) << line;
  };
  has(law_refusal(3), "batch: 20us");
  has(law_refusal(Dict{{"packet_ns", 1}}), "'packet_ns' is no part of a law");
  has(law_refusal(Dict{{"pkt_ns", -1}}), "pkt_ns");
  has(law_refusal(Dict{{"pkt_ns", 2e9}}), "0 to 1000000000");
  Dict table{{"batch_pkts", List{1, 4}}, {"pkt_bytes", List{64}}, {"ns", List{List{1}, List{2}}}};
  EXPECT_EQ(law_refusal(Dict{{"table", table}}), "");
  const auto with = [&](const std::string& key, Value value) {
    Dict changed = table;
    changed[key] = std::move(value);
    return law_refusal(Dict{{"table", std::move(changed)}});
  };
  has(with("ns", List{List{1}}), "not whole");
  has(with("ns", List{List{1}, List{2, 3}}), "not whole");
  has(with("ns", List{List{1}, List{"x"}}), "no time");
  has(with("busy_ns", List{1, 2}), "table.busy_ns");
  has(with("batch_pkts", List{4, 4}), "ascend");
  has(with("batch_pkts", List{}), "table.batch_pkts");
  has(with("sizes", 1), "'sizes' is no part of a table");
}

}  // namespace
}  // namespace batchplane
