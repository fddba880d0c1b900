// SPDX-License-Identifier: BSD-3-Clause
// device_profile_run_test.cc - requests to the device profiler: accepted and refused ones.
#include "app/start/device_profile_run.h"

#include <gtest/gtest.h>

#include "app/wire/json_value.h"

namespace batchplane::app {
namespace device_profile_run_test {

DeviceProfileRequest read(const std::string& json) {
  PipelineSpec spec;
  spec.modules = {{"deep", "dpi", {}}};
  return device_profile_request_from(parse_json(json, "request"), spec);
}
std::string error_of(const std::string& json) {
  try {
    (void)read(json);
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}

TEST(DeviceProfileRequestTest, IsRead) {
  const DeviceProfileRequest request =
      read(R"({"devices": {"t": {"kind": "cores", "params": {"threads": 1}}}, "modules": ["deep"],
               "batch_pkts": [1, 16384], "ms": 2, "pair_batch_pkts": 64})");
  ASSERT_EQ(request.devices.size(), 1U);
  EXPECT_EQ(request.devices[0].name, "t");
  EXPECT_EQ(request.modules, std::vector<std::string>{"deep"});
  EXPECT_EQ(request.batch_pkts.back(), 16'384U);
  EXPECT_EQ(request.ms, 2);
  EXPECT_EQ(request.pair_batch_pkts, 64U);
}

TEST(DeviceProfileRequestTest, RefusesWhatCannotBe) {
  EXPECT_NE(error_of(R"({"modules": ["depp"]})").find("did you mean 'deep'?"), std::string::npos);
  EXPECT_NE(error_of(R"({"modules": ["deep"], "batch_pkts": [0]})").find("1 to 16384"),
            std::string::npos);
  EXPECT_NE(
      error_of(R"({"modules": ["deep"], "batch_pkts": [8], "pair_batch_pkts": 9})").find("0 to 8"),
      std::string::npos);
  EXPECT_NE(error_of(R"({"batch_pkts": [8]})").find("no module is named"), std::string::npos);
  EXPECT_NE(error_of(R"({"msec": 1})").find("unknown key 'msec'"), std::string::npos);
}

}  // namespace device_profile_run_test
}  // namespace batchplane::app
