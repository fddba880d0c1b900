// SPDX-License-Identifier: BSD-3-Clause
// profile_run_test.cc - requests to the profiler: accepted and refused ones.
#include "app/start/profile_run.h"

#include <gtest/gtest.h>

#include "app/wire/json_value.h"
#include "base/cost_law_value.h"

namespace batchplane::app {
namespace {

PipelineSpec two_modules() {
  PipelineSpec spec;
  for (const char* name : {"ttl_0", "ttl_1"}) {
    ModuleSpec module;
    module.name = name;
    module.kind = "ttl";
    spec.modules.push_back(module);
  }
  return spec;
}

std::string error_of(const std::string& json) {
  try {
    (void)profile_request_from(parse_json(json, "request"), two_modules());
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}

TEST(ProfileRequestTest, EverythingMayBeLeftOut) {
  const ProfileRequest request = profile_request_from(parse_json("{}", "request"), two_modules());
  EXPECT_TRUE(request.options.groups.empty());
  EXPECT_TRUE(request.has_loop);
  EXPECT_GT(request.options.ms_per_module, 0);
}

TEST(ProfileRequestTest, IsRead) {
  const ProfileRequest request = profile_request_from(
      parse_json(R"({"groups": [["ttl_0", "ttl_1"]], "ms_per_module": 5, "passes": 2,
                     "loop": false, "feeders": {"near": "far"}})",
                 "request"),
      two_modules());
  ASSERT_EQ(request.options.groups.size(), 1U);
  EXPECT_EQ(request.options.groups[0], (std::vector<std::string>{"ttl_0", "ttl_1"}));
  EXPECT_EQ(request.options.ms_per_module, 5);
  EXPECT_EQ(request.options.passes, 2U);
  EXPECT_FALSE(request.has_loop);
  EXPECT_EQ(request.options.feeders.at("near"), "far");
}

TEST(ProfileRequestTest, MistakesAreNamed) {
  EXPECT_NE(error_of(R"({"groups": [["ttl_0"], ["tll_1"]]})").find("did you mean 'ttl_1'"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"groups": [["tll_1"]]})").find("groups[0]"), std::string::npos);
  EXPECT_NE(error_of(R"({"groups": [[]]})"), "");
  EXPECT_NE(error_of(R"({"groups": "ttl_0"})"), "");
  EXPECT_NE(error_of(R"({"ms_per_module": 0})").find("ms_per_module"), std::string::npos);
  EXPECT_NE(error_of(R"({"ms_per_module": 1e9})"), "");
  EXPECT_NE(error_of(R"({"passes": 0})").find("passes"), std::string::npos);
  EXPECT_NE(error_of(R"({"time_ms": 3})").find("unknown key 'time_ms'"), std::string::npos);
  EXPECT_NE(error_of("[]"), "");
}

// A measured law survives being written to a file and read back.
TEST(ProfileEntryTest, ARoundTripKeepsTables) {
  profile::ModuleProfile measured{.name = "acl_0", .kind = "acl", .members = {"acl_0", "acl_1"}};
  std::vector<CostLaw::Point> stairs;
  for (uint32_t n = 1; n <= 32; ++n) stairs.push_back({n, 50.1 + 80.3 * ((n + 7) / 8)});
  for (const CostLaw& law : {CostLaw(stairs), CostLaw({{1, 0.1}, {3, 7e-3}, {256, 1e5 / 3}}),
                             CostLaw(stairs).scaled(1.37, 0.91)}) {
    measured.law = law;
    const Value entry = profile_value(measured, "acl", "", 32);
    EXPECT_EQ(cost_law_from(parse_json(to_json(entry), "entry"), "entry"), law);
  }
}

}  // namespace
}  // namespace batchplane::app
