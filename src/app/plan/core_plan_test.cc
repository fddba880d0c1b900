// SPDX-License-Identifier: BSD-3-Clause
// core_plan_test.cc - which thread gets which core, by the number of cores.
#include "app/plan/core_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "spec/config_json.h"

namespace batchplane::app {
namespace {

CorePlan dealt(std::vector<int> cores, PipelineSpec& spec) {
  CorePlan plan{.cores = std::move(cores)};
  plan.control_core = plan.cores.front();
  assign_workers(spec, plan);
  return plan;
}

TEST(CorePlan, GeneratorsLeaveTheControlCoreWhenAnotherIsFree) {
  PipelineSpec spec;
  const CorePlan four = dealt({0, 1, 2, 3}, spec);
  EXPECT_EQ(spec.workers.at(0).core, 3);
  EXPECT_EQ(four.generator_core, 2);
  EXPECT_EQ(four.control_core, 0);

  spec = {};
  EXPECT_EQ(dealt({4, 6}, spec).generator_core, 4) << "two cores: with control";
  EXPECT_EQ(spec.workers.at(0).core, 6);

  spec = {};
  spec.workers = {{"w0", -1}, {"schedule", -1, std::nullopt, true}};
  EXPECT_EQ(dealt({4, 6}, spec).generator_core, 4);
  EXPECT_EQ(spec.workers.at(1).core, -1) << "a shared worker has no thread";

  spec = {};
  const CorePlan one = dealt({5}, spec);
  EXPECT_EQ(one.generator_core, 5);
}

TEST(CorePlan, CoresThatAreNamedAreTaken) {
  PipelineSpec spec;
  spec.workers = {{"a", 1}, {"b", -1}};
  spec.generators.resize(1);
  spec.generators[0].core = 2;
  const CorePlan plan = dealt({0, 1, 2, 3}, spec);
  EXPECT_EQ(spec.workers[1].core, 3);
  EXPECT_EQ(plan.generator_core, 0) << "1 and 3 have workers, 2 a generator of its own";
}

TEST(CorePlan, WorkersThatShareACoreAreSavedSoThatTheyStartAgain) {
  PipelineSpec spec;
  spec.workers = {{"a", -1}, {"b", -1}};
  dealt({5}, spec);
  EXPECT_EQ(spec.workers[1].core, 5) << "no core is free";
  std::vector<ConfigError> errors;
  const PipelineSpec again = spec_from_value(spec_to_value(spec), errors);
  for (const ConfigError& error : errors) EXPECT_FALSE(error.where().starts_with("workers"));
  ASSERT_EQ(again.workers.size(), 2U);
  EXPECT_EQ(again.workers[0].core, 5);
  EXPECT_EQ(again.workers[1].core, -1);
}

}  // namespace
}  // namespace batchplane::app
