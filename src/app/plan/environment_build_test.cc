// SPDX-License-Identifier: BSD-3-Clause
// environment_build_test.cc - addresses of interfaces: both IP versions, link-local addresses, mistakes.
#include "app/plan/environment_build.h"

#include <gtest/gtest.h>

namespace batchplane::app {
namespace {

struct Built {
  std::unique_ptr<Environment> env;
  std::vector<ConfigError> errors;
};
Built built_with(std::vector<std::string> addresses) {
  PipelineSpec spec;
  spec.ports = {{.name = "p", .kind = "null", .params = {}}};
  spec.interfaces = {
      {.name = "lan", .port = "p", .mac = "02:00:00:00:00:01", .addresses = std::move(addresses)}};
  Built built;
  built.env = build_environment(spec, PortsAre::kReal, {}, built.errors);
  return built;
}

TEST(EnvironmentBuild, InterfacesHaveAddressesOfBothFamilies) {
  const Built built = built_with({"10.0.0.1/24", "2001:db8::1/64", "10.1.0.1/16"});
  ASSERT_TRUE(built.errors.empty());
  const Interface& lan = built.env->interfaces.at(0);
  EXPECT_EQ(lan.addresses.size(), 2U);
  ASSERT_EQ(lan.addresses6.size(), 2U);
  EXPECT_EQ(net::format_prefix6(lan.addresses6[0]), "2001:db8::1/64");
  EXPECT_EQ(net::format_prefix6(lan.addresses6[1]), "fe80::ff:fe00:1/64");
}

TEST(EnvironmentBuild, AGivenLinkLocalAddressIsTheOnlyOne) {
  const Built built = built_with({"fe80::1/64"});
  ASSERT_TRUE(built.errors.empty());
  ASSERT_EQ(built.env->interfaces.at(0).addresses6.size(), 1U);
}

TEST(EnvironmentBuild, EachMistakeIsNamedWithItsPlace) {
  const Built built =
      built_with({"10.0.0.1", "2001:db8::1", "ff02::1/64", "::/0", "2001:db8::1/64"});
  ASSERT_EQ(built.errors.size(), 4U);
  EXPECT_NE(built.errors[1].line().find("addresses[1]"), std::string::npos);
  EXPECT_NE(built.errors[2].line().find("ff02::1/64"), std::string::npos);
}

}  // namespace
}  // namespace batchplane::app
