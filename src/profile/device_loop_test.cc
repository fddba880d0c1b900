// SPDX-License-Identifier: BSD-3-Clause
// device_loop_test.cc - batches have the requested size, on the worker and on a thread, and every
// packet comes back. No time is asserted.
#include "profile/device_loop.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace batchplane::profile {
namespace device_loop_test {

class DeviceLoopTest : public testing::Test {
 protected:
  DeviceLoopTest() {
    PipelineSpec spec;
    const Dict laws{{"digest", Dict{{"batch_ns", 1'000'000'000}}}};
    spec.devices = {{"cores", "cores", {{"laws", laws}}}};
    std::vector<ConfigError> errors;
    Mistakes mistakes{errors, spec.source_map};
    offload::add_devices(spec, env_, nullptr, mistakes);
    EXPECT_TRUE(errors.empty());
    for (const uint32_t n_bytes : {60U, 100U}) {
      PacketImage image;
      image.bytes.assign(n_bytes, 7);
      images_.push_back(image);
    }
    module_.name = "d";
    module_.kind = "digest";
    module_.params = {{"scan", "frame"}};
  }
  static std::string unique_name() {
    static int n = 0;
    return "device_loop" + std::to_string(n++);
  }

  PacketPool pool_{unique_name(), 4096};
  Environment env_;
  std::vector<PacketImage> images_;
  ModuleSpec module_;
};

TEST_F(DeviceLoopTest, CountsBatchesOfTheSizeAskedFor) {
  for (const char* on : {"inline", "cores"}) {
    DeviceLoop loop(env_, pool_, module_, on, 1024, images_);
    EXPECT_EQ(loop.mean_pkt_bytes(), 80);
    for (const uint32_t n : {1U, 7U, 32U, 1000U}) {
      const std::atomic<uint64_t>& done_pkts = loop.counts().done[0].pkts;
      const uint64_t before = done_pkts.load();
      const DeviceTimes times = loop.run(n, 0.1);
      ASSERT_TRUE(times.is_good()) << on << n;
      for (const double ns : times.feed_ns) ASSERT_GT(ns, 0);
      EXPECT_GT(times.wall_ns, 0);
      EXPECT_EQ(times.dropped_pkts, 0U);
      for (const double ns : times.run_ns) ASSERT_GT(ns, 0);
      EXPECT_EQ(pool_.available_pkts(), pool_.size_pkts()) << "nothing is left inside";
      EXPECT_EQ((done_pkts.load() - before) % n, 0U) << "whole batches only";
    }
  }
}

TEST_F(DeviceLoopTest, TwoRunSideBySide) {
  DeviceLoop one(env_, pool_, module_, "inline", 64, images_);
  DeviceLoop other(env_, pool_, module_, "cores", 64, images_);
  const auto both = DeviceLoop::run_both(one, other, 64, 0.1);
  EXPECT_TRUE(both.first.is_good());
  EXPECT_TRUE(both.second.is_good());
  EXPECT_EQ(pool_.available_pkts(), pool_.size_pkts());
}

// The worker runs batches that a device does not take: that tells nothing about the device.
TEST_F(DeviceLoopTest, ADeviceThatIsDownHasNoTimes) {
  const auto devices =
      env_.shared<offload::Devices>(offload::kDevices, [] { return new offload::Devices; });
  devices->by_name.at("cores")->set_down_until(exec::kNeverNs);
  DeviceLoop loop(env_, pool_, module_, "cores", 64, images_);
  EXPECT_FALSE(loop.run(64, 0.1).is_good());
  EXPECT_EQ(pool_.available_pkts(), pool_.size_pkts());
}

TEST_F(DeviceLoopTest, RefusesWhatCanRunOnNoDevice) {
  module_.kind = "ttl";
  module_.params = {};
  EXPECT_THROW(DeviceLoop(env_, pool_, module_, "inline", 64, images_), ConfigError);
}

}  // namespace device_loop_test
}  // namespace batchplane::profile
