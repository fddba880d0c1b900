// SPDX-License-Identifier: BSD-3-Clause
// stages_test.cc - modules with a device are split, saved as they were written, or refused.
#include "spec/stages.h"

#include <gtest/gtest.h>

#include "spec/config_json.h"
#include "spec/doors.h"

namespace batchplane {
namespace stages_test {

Kinds known() {
  Kinds kinds;
  kinds.modules["in"] = {.shape = Shape::kInput};
  kinds.modules["work"] = {.shape = Shape::kSplitter};
  kinds.modules["work/stage"] = {.shape = Shape::kQueue};
  kinds.modules["work/results"] = {.shape = Shape::kSplitter};
  kinds.modules["sink"] = {.shape = Shape::kTerminal, .is_egress = true};
  return kinds;
}

// Two inputs, each on a worker of its own, into one module on a device.
PipelineSpec example() {
  PipelineSpec spec;
  spec.workers = {{"w0"}, {"w1"}};
  spec.modules = {{"in", "in"}, {"in1", "in"}, {"x", "work"}, {"out", "sink"}, {"other", "sink"}};
  spec.modules[0].worker = "w1";
  spec.modules[2].device = Dict{{"on", List{"gpu"}}};
  spec.edges = {{"in", "0", "x"}, {"x", "0", "out"}, {"x", "1", "other"}, {"x", "drop", "other"}};
  spec.flows = {{"f", {"in", "x:1", "other"}, 0}, {"g", {"in", "x", "out"}, 0}};
  return spec;
}

std::vector<ConfigError> divide(PipelineSpec& spec) {
  std::vector<ConfigError> errors;
  Mistakes mistakes{errors, spec.source_map};
  add_stages(spec, known(), mistakes);
  return errors;
}

TEST(Stages, TakeThePlaceOfAModuleOnADevice) {
  PipelineSpec spec = example();
  EXPECT_TRUE(divide(spec).empty());
  ASSERT_EQ(spec.modules.size(), 6U);
  EXPECT_EQ(spec.modules[2].kind, "work/stage");
  EXPECT_EQ(spec.modules[2].worker, "w1");  // the worker that brings the packets also polls them
  EXPECT_EQ(spec.modules[5].name, "x/done");
  EXPECT_EQ(spec.edges[1].from, "x/done");
  EXPECT_EQ(spec.edges[3].from, "x/done");
  EXPECT_EQ(spec.flows[0].path, (std::vector<std::string>{"in", "x", "x/done:1", "other"}));
  EXPECT_EQ(spec.flows[1].path, (std::vector<std::string>{"in", "x", "x/done", "out"}));
}

TEST(Stages, AreSavedAsTheyWereWritten) {
  PipelineSpec spec = example();
  spec.modules[2].worker = "w1";  // named, so that both agree
  const Value as_written = spec_to_value(spec);
  divide(spec);
  add_doors(spec, known());
  EXPECT_EQ(spec_to_value(spec), as_written);
}

TEST(Stages, HaveDoorsWhereSeveralWorkersBringPackets) {
  PipelineSpec spec = example();
  spec.modules[1].worker = "w0";
  spec.edges.push_back({"in1", "0", "x"});
  spec.modules[2].worker = "w1";
  const Value as_written = spec_to_value(spec);
  divide(spec);
  add_doors(spec, known());
  EXPECT_EQ(spec.modules.back().door_of, "x");
  EXPECT_EQ(spec_to_value(spec), as_written);
}

TEST(Stages, AreNothingForOtherKinds) {
  PipelineSpec spec = example();
  spec.modules[3].device = Dict{{"on", List{"gpu"}}};
  const std::vector<ConfigError> errors = divide(spec);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].where(), "modules.out.device");
  EXPECT_EQ(std::string(errors[0].fix()), "those that do: work");
}

}  // namespace stages_test
}  // namespace batchplane
