// SPDX-License-Identifier: BSD-3-Clause
// memory_plan_test.cc - each table is counted once, then doubled for an apply.
#include "app/plan/memory_plan.h"

#include <gtest/gtest.h>

#include "modules/route/route_syntax.h"

namespace batchplane::app {
namespace {

ModuleSpec module_of(const std::string& name, const std::string& kind, Dict params = {}) {
  ModuleSpec spec;
  spec.name = name;
  spec.kind = kind;
  spec.params = std::move(params);
  return spec;
}

uint64_t table_bytes(const Dict& params) {
  return route_table_memory<Ipv4Family>("", params).front().bytes;
}

// Only the second module varies.
uint64_t estimate_with(ModuleSpec second) {
  PipelineSpec spec;
  spec.modules.push_back(module_of("lookup", "ipv4_lookup",
                                   {{"table", "main"}, {"synthetic", Dict{{"count", 1'000'000}}}}));
  spec.modules.push_back(std::move(second));
  return memory_mb_estimate(spec);
}

TEST(MemoryPlan, ATableThatTwoLookupsNameCountsOnce) {
  const uint64_t with_none = estimate_with(module_of("other", "null"));
  EXPECT_EQ(estimate_with(module_of("other", "ipv4_lookup", {{"table", "main"}})), with_none);
  const uint64_t own_mb = 2 * table_bytes({}) >> 20;
  EXPECT_NEAR(static_cast<double>(estimate_with(module_of("other", "ipv4_lookup"))),
              static_cast<double>(with_none + own_mb), 1.0);
}

TEST(MemoryPlan, EachVrfOfALookupHasATable) {
  const uint64_t with_none = estimate_with(module_of("other", "null"));
  const uint64_t own_mb = 2 * table_bytes({}) >> 20;
  const Dict named{{"vrf", 2}, {"table", "main"}};
  EXPECT_NEAR(static_cast<double>(estimate_with(module_of(
                  "other", "vrf_lookup",
                  {{"vrfs", List{Dict{{"vrf", 0}}, named, Dict{{"vrf", 1}}, "nonsense"}}}))),
              static_cast<double>(with_none + 2 * own_mb), 1.0);
}

TEST(MemoryPlan, ATableThatWillBeRefusedTakesNone) {
  const uint64_t with_none = estimate_with(module_of("other", "null"));
  for (const Dict& params : {Dict{{"max_prefixes", 99'000'000}}, Dict{{"max_prefixes", "many"}}}) {
    EXPECT_EQ(estimate_with(module_of("other", "ipv4_lookup", params)), with_none);
  }
}

TEST(MemoryPlan, HasRoomForAnotherTableBesideTheOneThatRuns) {
  const uint64_t table_mb = table_bytes({{"synthetic", Dict{{"count", 1'000'000}}}}) >> 20;
  EXPECT_GE(estimate_with(module_of("other", "null")), 2 * table_mb);
}

}  // namespace
}  // namespace batchplane::app
