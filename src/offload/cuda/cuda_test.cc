// SPDX-License-Identifier: BSD-3-Clause
// cuda_test.cc - a GPU that is absent, refuses, fails, hangs or computes wrong results: no packet is lost or
// out of order, and the device is taken out. For real GPUs: opencl_test.cc and opencl_modules_test.cc.
#include <gtest/gtest.h>

#include "module_harness.h"
#include "offload/cuda/cuda_device.h"
#include "offload/cuda/fake_cuda_test_util.h"

namespace batchplane::offload {
namespace cuda_test {

using fake_cu::Fake;
using fake_cu::Faults;
using stage_test::Rig;
using stage_test::world;

DeviceSpec fake_gpu(uint32_t threads, Dict more = {}) {
  more["threads"] = threads;
  more["laws"] = Dict{{"test_work", Dict{{"batch_ns", 1000}}}};
  more["check_one_in"] = 8;
  return {"gpu", "cuda", more};
}
PipelineSpec on_gpu(uint32_t threads, uint32_t batch_pkts = 32) {
  return stage_test::pipeline(
      {{"on", stage_test::kGpu}, {"batch_pkts", batch_pkts}, {"backpressure", true}},
      {fake_gpu(threads)});
}
Value gpu_of(Rig& rig) { return rig.stats()["devices"].as_list()[0]; }

// Small batches are read in place; of others the GPU fetches the packets where their memory is lent to it, and
// they are copied where not. Of many packets places and results are copied, too.
TEST(Cuda, ComputesAndGivesBackAllItTook) {
  for (const bool maps_nothing : {false, true}) {
    for (const uint32_t batch_pkts : {4U, 256U, 1024U}) {
      const Faults faults{.maps_nothing = maps_nothing, .n_polls = 3};
      const Fake fake(faults);
      {
        Rig rig(on_gpu(0, batch_pkts), 64 * batch_pkts);
        EXPECT_EQ(fake_cu::state.n_gathers > 0, batch_pkts > 16);  // in the trial, too
        const bool is_mapped = !maps_nothing && !rig.engine->pool()->memory().empty();
        Fake::set(faults);
        rig.loop(3'000);
        rig.expect_all();
        EXPECT_EQ(rig.stats()["inline_pkts"].as_int(), 0);
        EXPECT_EQ(gpu_of(rig)["fault"].as_string(), "");
        EXPECT_EQ(gpu_of(rig)["runs_on"].as_string(), "Fake H1");
        EXPECT_EQ(gpu_of(rig)["mapped_bytes"].as_int() > 0, is_mapped);
        EXPECT_EQ(fake_cu::state.n_copies > 0, batch_pkts >= (is_mapped ? 1024 : 256));
        EXPECT_EQ(fake_cu::state.n_gathers > 0, batch_pkts >= 256 && is_mapped);
        EXPECT_EQ(fake_cu::state.mapped.empty(), !is_mapped);
      }
      EXPECT_EQ(Fake::n_objects(), 1U);  // the context, one per driver
      EXPECT_TRUE(fake_cu::state.mapped.empty());
    }
  }
}

TEST(Cuda, LetsTheGpuOnlyReadPacketsWhereItCan) {
  for (const bool maps_writable_only : {false, true}) {
    std::vector<uint8_t> lent(4096);
    const std::span<uint8_t> pieces[] = {lent};
    const Fake fake({.maps_writable_only = maps_writable_only});
    CudaDevice device(CudaChoice{}, "devices.gpu");
    device.lend(pieces);
    EXPECT_EQ(device.lent_bytes(), lent.size());
    EXPECT_EQ(fake_cu::state.is_mapped_read_only, !maps_writable_only);
  }
}

// The first 8 KiB are copied here, and what is not lent. Devices on one GPU share what is mapped.
TEST(Cuda, FetchesInputsFromMemoryThatIsLent) {
  constexpr uint32_t kInputs = 16;
  constexpr uint32_t kInputBytes = 1000;
  std::vector<uint8_t> lent(size_t{kInputs} * kInputBytes);
  std::vector<uint8_t> other(kInputBytes);
  for (size_t i = 0; i < lent.size(); ++i) lent[i] = static_cast<uint8_t>(i * 7);
  const std::span<uint8_t> pieces[] = {lent};

  const Fake fake;
  Environment env;
  Args args(find_module_kind("test_work")->params, {}, "modules.x");
  args.set_env(&env);
  stage_test::TestWork work(args);
  auto first = std::make_shared<CudaDevice>(CudaChoice{}, "devices.first");
  first->lend(pieces);
  const auto device = std::make_shared<CudaDevice>(CudaChoice{}, "devices.gpu");
  device->lend(pieces);
  EXPECT_EQ(device->lent_bytes(), lent.size());
  first.reset();
  ASSERT_EQ(fake_cu::state.mapped.size(), 1U);
  EXPECT_EQ(fake_cu::state.n_users, 2U);  // the mapping lives in the first one's context

  const auto kernel = device->make_kernel(work, kInputs + 1, nullptr, "devices.gpu");
  std::vector<Kernel::Input> inputs{other};
  for (uint32_t i = 0; i < kInputs; ++i)
    inputs.emplace_back(&lent[size_t{i} * kInputBytes], kInputBytes - i);
  Fake::set({});
  for (const Kernel::Input input : inputs) ASSERT_TRUE(kernel->add(0, input));
  ASSERT_TRUE(kernel->launch(0));
  ASSERT_EQ(kernel->poll(0), DeviceKernel::State::kDone);
  std::vector<uint8_t> expected(inputs.size() * work.result_bytes());
  work.compute(work.table(), inputs.data(), kInputs + 1, expected.data());
  EXPECT_TRUE(std::ranges::equal(expected, std::span(kernel->results(0), expected.size())));
  EXPECT_EQ(fake_cu::state.n_gathers, 1U);
  EXPECT_EQ(fake_cu::state.n_copies, 0U);
  EXPECT_EQ(fake_cu::state.n_fetched, kInputs - 8);  // one and eight are copied
}

// Its thread reads where that memory is, while an apply offers the same pool again.
TEST(Cuda, ARunningDeviceIsLentNothingMore) {
  const Fake fake({.maps_nothing = true});
  Device device({.name = "gpu", .kind = "cuda", .n_threads = 0, .cuda = CudaChoice{}}, nullptr, 0);
  std::vector<uint8_t> memory(4096);
  const std::span<uint8_t> pieces[] = {memory};
  device.lend(pieces);
  Fake::set({});
  device.lend(pieces);
  EXPECT_EQ(device.show(0)["mapped_bytes"].as_int(), 0);
  EXPECT_TRUE(fake_cu::state.mapped.empty());
}

// The kernel cannot begin, but its batch is on its way: memory is in use until that has ended.
TEST(Cuda, WhatWasBegunBeforeAFailureIsWaitedFor) {
  static uint32_t n_polls;
  n_polls = 0;
  const Fake fake;
  cu::Api api = fake_cu::table();
  api.launch = [](cu::FunctionId, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                  uint32_t, cu::StreamId, void**, void**) { return 719; };
  api.event_query = [](cu::EventId) { return ++n_polls < 3 ? cu::kNotReady : cu::kSuccess; };
  cu::use_api(&api);
  Environment env;
  Args args(find_module_kind("test_work")->params, {}, "modules.x");
  args.set_env(&env);
  stage_test::TestWork work(args);
  const auto device = std::make_shared<const CudaDevice>(CudaChoice{}, "devices.gpu");
  auto kernel = device->make_kernel(work, 16, nullptr, "devices.gpu");
  const Bytes text(1000, 1);
  for (uint32_t i = 0; i < 16; ++i) ASSERT_TRUE(kernel->add(0, text));
  EXPECT_FALSE(kernel->launch(0));
  EXPECT_EQ(fake_cu::state.n_copies, 1U);
  kernel.reset();
  EXPECT_EQ(n_polls, 3U);
}

void expect_taken_out_by(const Faults& faults, const std::string& why) {
  const Fake fake;
  Rig rig(on_gpu(0), 6'400);
  Fake::set(faults);
  rig.loop(2'000);
  rig.expect_all();
  EXPECT_FALSE(gpu_of(rig)["is_up"].as_bool());
  EXPECT_EQ(gpu_of(rig)["fault"].as_string(), why);
  EXPECT_GT(rig.stats()["inline_pkts"].as_int(), 0);
  EXPECT_LT(rig.stats()["inline_pkts"].as_int(), static_cast<int64_t>(world.n_made));
}

TEST(Cuda, WhatFailsIsTakenOut) {
  expect_taken_out_by({.fail_launch_at = 50, .n_polls = 2},
                      "a kernel cannot begin: CUDA error 719");
  expect_taken_out_by({.fail_batch_at = 50, .n_polls = 2}, "a batch failed: CUDA error 700");
  expect_taken_out_by({.wrong_from = 50, .n_polls = 2}, "results were wrong");
}

TEST(Cuda, ABatchThatNeverEnds) {
  const Fake fake;
  Rig rig(on_gpu(0), 64'000);
  Fake::set({.hang_from = 50});
  rig.loop(300);
  rig.loop(60, 100'000);  // overdue: the worker runs the waiting jobs
  EXPECT_GE(rig.stats()["taken_back_jobs"].as_int(), 1);
  rig.loop(2'000, 2'000'000);
  rig.expect_all();
  EXPECT_EQ(gpu_of(rig)["fault"].as_string(), "a batch did not come back within a second");
}

TEST(Cuda, WhateverGoesWrongOnAThreadLosesNothing) {
  const Faults all[] = {{.n_polls = 5},
                        {.fail_launch_at = 40, .n_polls = 5},
                        {.fail_batch_at = 40},
                        {.wrong_from = 40},
                        {.hang_from = 40, .n_polls = 2}};
  for (const Faults& faults : all) {
    const Fake fake;
    Rig rig(on_gpu(1), 20'000, false);
    Fake::set(faults);
    while (world.n_made < world.limit_pkts) rig.loop(10);
    rig.engine->stop(true);
    rig.expect_all();
  }
}

// An edit copies its table from another thread and releases the previous one.
TEST(Cuda, EditsOfATable) {
  for (const uint32_t threads : {0U, 1U}) {
    const Fake fake({.n_polls = 20});
    Rig rig(on_gpu(threads), 20'000, threads == 0);
    const size_t n_objects = Fake::n_objects();
    for (int64_t i = 1; world.n_made < world.limit_pkts; ++i) {
      rig.loop(10);
      rig.stage().command("table", i);
    }
    rig.loop(2'000);
    EXPECT_EQ(gpu_of(rig)["fault"].as_string(), "");
    EXPECT_GT(gpu_of(rig)["done_pkts"].as_int(), 0);
    EXPECT_EQ(Fake::n_objects(), n_objects);
    rig.engine->stop(true);
    rig.expect_all();
  }
}

TEST(Cuda, ATableThatDoesNotFit) {
  const Fake fake({.n_polls = 2});
  Rig rig(on_gpu(0), 6'400);
  rig.loop(50);
  Fake::set({.most_bytes = 1, .n_polls = 2});
  rig.stage().command("table", 1);
  rig.loop(2'000);
  rig.expect_all();
  EXPECT_EQ(gpu_of(rig)["fault"].as_string(), "it has no room for a new table");
}

TEST(Cuda, WhatCannotBeIsToldAtTheStart) {
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
  EXPECT_EQ(told({}, {{"device", "0"}}), "");
  has(told({.n_gpus = 0}), "NVIDIA's driver has no GPU here");
  has(told({}, {{"device", "Fake H2"}}), "there is no GPU 'Fake H2' (did you mean 'Fake H1'?)");
  has(told({}, {{"device", "1"}}), "there is no GPU '1'");
  has(told({.is_bad_text = true}),
      "'Fake H1' does not take the kernel 'number': error 218, ptxas line 5; error: no such word");
  has(told({.most_bytes = 10'000}),
      "for batches of 256 packets: error 2 (a smaller max_batch_pkts");
  has(told({.wrong_from = 1}), "the kernel 'number' computes wrong there");
}

TEST(Cuda, AMissingDriverIsToldWhereItIsAskedFor) {
  const std::string told = stage_test::refusal(
      stage_test::written({{"on", stage_test::kGpu}}, {{"gpu", "cuda", Dict{}}}));
  if (told.find("libcuda.so.1") == std::string::npos) GTEST_SKIP() << "there is a driver";
  EXPECT_EQ(told.find("devices.gpu: there is no libcuda.so.1"), 0U) << told;
}

// A table may be the last owner of the device.
TEST(Cuda, GivesBackItsTablesWhereTheKernelAloneHasTheDevice) {
  const Fake fake;
  Environment env;
  Args args(find_module_kind("test_work")->params, {}, "modules.x");
  args.set_env(&env);
  stage_test::TestWork work(args);
  auto device = std::make_shared<const CudaDevice>(CudaChoice{}, "devices.gpu");
  auto kernel = device->make_kernel(work, 32, nullptr, "devices.gpu");
  device.reset();
  kernel.reset();
  EXPECT_EQ(Fake::n_objects(), 1U);
}

TEST(Cuda, ListsWhatThereIs) {
  const Fake fake({.n_gpus = 2});
  const List found = list_cuda_devices();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1]["device"].as_string(), "Fake H1");
  EXPECT_EQ(found[1]["driver"].as_string(), "CUDA 13.1");
}

std::unique_ptr<Module> made(const std::string& kind, const Dict& params, Environment& env) {
  const ModuleInfo& info = *find_module_kind(kind);
  Args args(info.params, params, "modules.x");
  args.set_env(&env);
  args.set_name("x");
  return info.make(args);
}

// Only if the build had a compiler for PTX.
TEST(Cuda, KernelsAreThereAsPtx) {
  const std::pair<std::string, Dict> all[] = {
      {"digest", {{"algorithm", "md5"}}},
      {"digest", {{"algorithm", "sha1"}}},
      {"digest", {{"algorithm", "sha256"}}},
      {"dpi", {}},
      {"classify", {{"random", List{4, 2}}}},
      {"esp_encrypt", {{"sas", List{}}, {"test_keys", true}}},
      {"esp_decrypt", {{"sas", List{}}, {"test_keys", true}}}};
  for (const auto& [kind, params] : all) {
    Environment env;
    const auto module = made(kind, params, env);
    const Kernel& kernel = *module->kernel();
    const std::string ptx = kernel.source().ptx;
    if (ptx.empty()) GTEST_SKIP() << "this build has no clang";
    EXPECT_NE(ptx.find(std::string(".entry ") + kernel.entry() + "("), std::string::npos);
    EXPECT_EQ(ptx.find("bar.sync") != std::string::npos, kernel.lanes() > 1) << kernel.entry();
    const std::string n_items = std::to_string(kernel.lanes() > 1 ? kernel.lanes() : 64);
    EXPECT_NE(ptx.find(".maxntid " + n_items + ", 1, 1"), std::string::npos) << kernel.entry();
  }
}

// A group has the kernel's lanes, and takes as many packets as it says.
TEST(Cuda, SharesPacketsAmongGroups) {
  static uint32_t n_groups;
  static uint32_t n_items;
  const Fake fake;
  cu::Api api = fake_cu::table();
  api.launch = [](cu::FunctionId, uint32_t groups, uint32_t, uint32_t, uint32_t items, uint32_t,
                  uint32_t, uint32_t, cu::StreamId, void**, void**) {
    n_groups = groups, n_items = items;
    return 0;
  };
  cu::use_api(&api);
  const auto device = std::make_shared<const CudaDevice>(CudaChoice{}, "devices.gpu");
  const Bytes text(100, 1);
  for (const auto& [kind, params] : std::initializer_list<std::pair<std::string, Dict>>{
           {"dpi", {}}, {"classify", {{"random", List{4, 2}}}}}) {
    Environment env;
    const auto module = made(kind, params, env);
    Kernel& kernel = *module->kernel();
    if (*kernel.source().ptx == '\0') GTEST_SKIP() << "this build has no clang";
    const auto on_device = device->make_kernel(kernel, 64, nullptr, "devices.gpu");
    const uint32_t n_inputs = kernel.group_inputs();
    EXPECT_EQ(n_inputs > 1, kind == "classify");
    for (uint32_t i = 0; i < 4 * n_inputs + 1; ++i) ASSERT_TRUE(on_device->add(0, text));
    EXPECT_TRUE(on_device->launch(0));
    EXPECT_EQ(n_groups, 5U);
    EXPECT_EQ(n_items, kernel.lanes());
  }
}

}  // namespace cuda_test
}  // namespace batchplane::offload
