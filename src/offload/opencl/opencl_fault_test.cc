// SPDX-License-Identifier: BSD-3-Clause
// opencl_fault_test.cc - an OpenCL that is absent, refuses, fails, hangs or computes wrong results: no packet
// is lost or out of order, and the device is taken out.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "module_harness.h"
#include "offload/opencl/fake_opencl_test_util.h"
#include "offload/opencl/module_side_test_util.h"

namespace batchplane::offload {
namespace opencl_fault_test {

using fake_cl::Fake;
using fake_cl::Faults;
using stage_test::Rig;
using stage_test::world;

DeviceSpec fake_gpu(uint32_t threads, Dict more = {}) {
  more["threads"] = threads;
  more["laws"] = Dict{{"test_work", Dict{{"batch_ns", 1000}}}};
  more.emplace("check_one_in", 8);
  return {"gpu", "opencl", more};
}
PipelineSpec on_gpu(uint32_t threads, Dict device = {}) {
  device.emplace("on", stage_test::kGpu);
  device.emplace("batch_pkts", 32);
  device.emplace("backpressure", true);
  return stage_test::pipeline(device, {fake_gpu(threads)});
}
Value gpu_of(Rig& rig) { return rig.stats()["devices"].as_list()[0]; }

void expect_taken_out(Rig& rig, const std::string& why) {
  rig.expect_all();
  EXPECT_FALSE(gpu_of(rig)["is_up"].as_bool());
  EXPECT_EQ(gpu_of(rig)["fault"].as_string(), why);
  EXPECT_GT(rig.stats()["inline_pkts"].as_int(), 0);
  EXPECT_LT(rig.stats()["inline_pkts"].as_int(), static_cast<int64_t>(world.n_made));
}

TEST(OpenClFaults, NoneAtAllLeavesTheProcessorNothingToDo) {
  const Fake fake({.n_polls = 3});
  {
    Rig rig(on_gpu(0), 6'400);
    rig.loop(2'000);
    rig.expect_all();
    EXPECT_EQ(rig.stats()["inline_pkts"].as_int(), 0);
    EXPECT_EQ(gpu_of(rig)["fault"].as_string(), "");
    EXPECT_EQ(gpu_of(rig)["runs_on"].as_string(), "fake-9000");
  }
  EXPECT_EQ(Fake::n_objects(), 0U);
}

void expect_taken_out_by(const fake_cl::Faults& faults, const std::string& why) {
  const Fake fake;
  Rig rig(on_gpu(0), 6'400);
  Fake::set(faults);
  rig.loop(2'000);
  expect_taken_out(rig, why);
}

TEST(OpenClFaults, ALaunchThatIsRefused) {
  expect_taken_out_by({.fail_launch_at = 50, .n_polls = 2},
                      "a kernel cannot begin: OpenCL error -36");
}

TEST(OpenClFaults, ABatchThatEndsWithAnError) {
  expect_taken_out_by({.fail_batch_at = 50, .n_polls = 2}, "a batch failed: OpenCL error -5");
}

TEST(OpenClFaults, ABatchThatNeverEnds) {
  const Fake fake;
  Rig rig(on_gpu(0), 64'000);
  Fake::set({.hang_from = 50});
  rig.loop(300);
  rig.loop(60, 100'000);  // overdue: the worker runs the waiting jobs
  EXPECT_TRUE(gpu_of(rig)["is_up"].as_bool());
  EXPECT_GE(rig.stats()["taken_back_jobs"].as_int(), 1);
  rig.loop(2'000, 2'000'000);
  expect_taken_out(rig, "a batch did not come back within a second");
}

TEST(OpenClFaults, ResultsThatAreWrong) {
  const Fake fake;
  Rig rig(on_gpu(0), 6'400);
  Fake::set({.wrong_from = 50, .n_polls = 2});
  rig.loop(2'000);
  expect_taken_out(rig, "results were wrong");  // and none of them was used
}

TEST(OpenClFaults, SlowBatchesAreTakenBackAndTheDeviceStays) {
  const Fake fake;
  Rig rig(on_gpu(0), 20'000);
  Fake::set({.n_polls = 1, .slow_one_in = 7, .slow_polls = 40});
  Rng rng(3);
  while (world.n_made < world.limit_pkts) rig.loop(1, rng.below(20) == 0 ? 6'000'000 : 500);
  rig.loop(100, 1'000'000);
  rig.expect_all();
  EXPECT_GT(rig.stats()["taken_back_jobs"].as_int(), 0);
  EXPECT_TRUE(gpu_of(rig)["is_up"].as_bool());
}

// With a device thread beside the worker.
TEST(OpenClFaults, WhateverGoesWrongOnAThreadLosesNothing) {
  const Faults all[] = {{.n_polls = 5},
                        {.fail_launch_at = 40, .n_polls = 5},
                        {.fail_batch_at = 40},
                        {.wrong_from = 40},
                        {.n_polls = 3, .slow_one_in = 5, .slow_polls = 100'000},
                        {.hang_from = 40, .n_polls = 2}};
  for (const Faults& faults : all) {
    const Fake fake;
    Rig rig(on_gpu(1, {{"depth", 8}}), 20'000, false);
    Fake::set(faults);
    while (world.n_made < world.limit_pkts) rig.loop(10);
    rig.engine->stop(true);
    rig.expect_all();
  }
}

TEST(OpenClFaults, AnApplyTakesOverWhatIsOnTheDevice) {
  const Fake fake;
  Rig rig(on_gpu(1), 30'000, false);
  Fake::set({.n_polls = 50});
  for (uint32_t i = 0; world.n_made < world.limit_pkts; ++i) {
    rig.loop(50);
    rig.apply(on_gpu(1, {{"batch_pkts", 1 + i * 37 % 300}}));
  }
  rig.engine->stop(true);
  rig.expect_all();
}

// The module that takes over has made its own table by then.
TEST(OpenClFaults, AnApplyGivesTheDeviceItsTable) {
  const Fake fake({.n_polls = 2});
  Rig rig(on_gpu(0), 12'800);
  rig.loop(50);
  rig.apply(on_gpu(0));
  rig.loop(50);
  world.n_here = 0;
  rig.loop(2'000);
  EXPECT_EQ(world.n_here, 0U);
  rig.expect_all();
}

// Results of a table that was edited meanwhile are not used, and not counted as wrong.
TEST(OpenClFaults, EditsOfATable) {
  for (const uint32_t threads : {0U, 1U}) {
    const Fake fake({.n_polls = 20});
    Rig rig(on_gpu(threads), 20'000, threads == 0);
    for (int64_t i = 1; world.n_made < world.limit_pkts; ++i) {
      rig.loop(10);
      rig.stage().command("table", i);
    }
    rig.loop(2'000);
    EXPECT_EQ(gpu_of(rig)["fault"].as_string(), "");
    EXPECT_GT(gpu_of(rig)["done_pkts"].as_int(), 0);
    rig.engine->stop(true);
    rig.expect_all();
  }
}

TEST(OpenClFaults, ATableThatDoesNotFit) {
  const Fake fake({.n_polls = 2});
  Rig rig(on_gpu(0), 6'400);
  rig.loop(50);
  Fake::set({.most_bytes = 1, .n_polls = 2});
  rig.stage().command("table", 1);
  rig.loop(2'000);
  expect_taken_out(rig, "it has no room for a new table");
}

// If a batch has more bytes than the device has room for, the rest is computed on the CPU.
TEST(OpenClFaults, BatchesThatAreTooLong) {
  const Fake fake({.n_polls = 2});
  Rig rig(
      stage_test::pipeline({{"on", stage_test::kGpu}, {"batch_pkts", 32}, {"backpressure", true}},
                           {fake_gpu(0, {{"check_one_in", 1000}})}),
      6'400);
  world.has_long_inputs = true;
  rig.loop(2'000);
  rig.expect_all();
  EXPECT_EQ(rig.stats()["inline_pkts"].as_int(), 0);
  EXPECT_EQ(gpu_of(rig)["fault"].as_string(), "");
}

TEST(OpenClFaults, WhatCannotBeIsToldAtTheStart) {
  const auto told = [](const Faults& faults, Dict params = {}) {
    const Fake fake(faults);
    return stage_test::refusal(
        stage_test::written({{"on", stage_test::kGpu}}, {fake_gpu(0, std::move(params))}));
  };
  const auto has = [](const std::string& lines, const std::string& part) {
    EXPECT_NE(lines.find(part), std::string::npos) << lines;
    EXPECT_EQ(std::ranges::count(lines, '\n'), 1) << lines;
  };
  EXPECT_EQ(told({}), "");
  has(told({.n_platforms = 0}), "OpenCL has no platform here");
  has(told({.n_devices = 0}), "the OpenCL platform 'A Fake Platform' has no device");
  has(told({}, {{"platform", "NVIDIA"}}), "there is no OpenCL platform 'NVIDIA'");
  has(told({}, {{"platform", "NVIDIA"}}), "one of: A Fake Platform");
  has(told({}, {{"platform", "Fake"}, {"device", "fake-900x"}}), "did you mean 'fake-9000'?");
  has(told({.is_bad_source = true}),
      "does not compile for 'fake-9000': error -11, error: no such word");
  has(told({.most_bytes = 10'000}),
      "for batches of 256 packets: error -61 (a smaller max_batch_pkts");
  has(told({.wrong_from = 1}), "the kernel 'number' computes wrong there");
  has(told({.fail_launch_at = 1}),
      "the kernel 'number' does not run: a kernel cannot begin: error -36");
}

// The fake device has groups of 16.
TEST(OpenClFaults, AKernelWhoseGroupsAreTooLargeIsRefused) {
  const Fake fake;
  const auto device =
      std::make_shared<const OpenClDevice>(OpenClChoice{}, std::vector<int>{}, "devices.gpu");
  opencl_modules_test::Side side("dpi", {}, 1);
  const std::string line =
      refusal_of([&] { (void)device->make_kernel(side.kernel(), 32, nullptr, "devices.gpu"); });
  EXPECT_NE(line.find("'fake-9000' has groups of 16 work items, and the kernel 'dpi' needs 32"),
            std::string::npos)
      << line;
}

}  // namespace opencl_fault_test
}  // namespace batchplane::offload
