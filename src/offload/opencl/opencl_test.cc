// SPDX-License-Identifier: BSD-3-Clause
// opencl_test.cc - kernels on any device at hand, compared with the CPU byte by byte. Skipped if there is
// none.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "module_harness.h"
#include "offload/kernel_lane.h"
#include "offload/opencl/any_device_test_util.h"
#include "offload/stage_test_util.h"

namespace batchplane::offload {
namespace opencl_test {

struct Made {
  Made(const std::string& kind, const Dict& params) : info(*find_module_kind(kind)) {
    Args args(info.params, params, "modules.x");
    args.set_env(&env);
    args.set_name("x");
    module = info.make(args);
  }
  Environment env;
  const ModuleInfo& info;
  std::unique_ptr<Module> module;
};

TEST(OpenCl, ComputesDigestsOfEveryLengthAsTheProcessorDoes) {
  constexpr uint32_t kLongest = 1500;
  Rng rng(11);
  Bytes texts((kLongest + 1) * kLongest);  // one after another, so that they begin at any address
  for (uint8_t& byte : texts) byte = static_cast<uint8_t>(rng.below(256));
  std::string why;
  const auto device = any_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  const std::span<uint8_t> lent[] = {texts};
  device->lend(lent);
  std::vector<Kernel::Input> inputs;
  for (uint32_t n = 0, at = 0; n <= kLongest; at += n++) inputs.emplace_back(&texts[at], n);
  for (const char* const algorithm : {"md5", "sha1", "sha256"}) {
    const Made made("digest", {{"algorithm", algorithm}});
    Kernel& kernel = *made.module->kernel();
    const auto made_kernel = device->make_kernel(kernel, kLongest + 1, nullptr, "devices.x");
    DeviceKernel& on_device = *made_kernel;
    for (const Kernel::Input input : inputs) ASSERT_TRUE(on_device.add(1, input));
    ASSERT_TRUE(on_device.launch(1));
    while (on_device.poll(1) == DeviceKernel::State::kRunning) std::this_thread::yield();
    ASSERT_EQ(on_device.fault().what, nullptr);
    std::vector<uint64_t> expected(inputs.size() * kernel.result_bytes() / sizeof(uint64_t));
    auto* const bytes = reinterpret_cast<uint8_t*>(expected.data());
    kernel.compute(nullptr, inputs.data(), static_cast<uint32_t>(inputs.size()), bytes);
    for (uint32_t n = 0; n <= kLongest; ++n) {
      const uint32_t at = n * kernel.result_bytes();
      ASSERT_EQ(std::memcmp(on_device.results(1) + at, bytes + at, kernel.result_bytes()), 0)
          << algorithm << " of " << n << " bytes";
    }
  }
}

TEST(OpenCl, SourcesThatAreWrongAreTold) {
  std::string why;
  const auto device = any_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  class Broken final : public Kernel {
    [[nodiscard]] KernelSource source() const override {
      return {"__kernel void k() { int x = y; }", ".version 5.0\n.target sm_60\n.entry k y"};
    }
    [[nodiscard]] const char* entry() const override { return "k"; }
    [[nodiscard]] uint32_t result_bytes() const override { return 8; }
    [[nodiscard]] Input input_of(Packet& /*pkt*/) const noexcept override { return {}; }
    void compute(const KernelTable* /*table*/, const Input* /*inputs*/, uint32_t /*n*/,
                 uint8_t* /*results*/) noexcept override {}
    void apply(KernelTable* /*table*/, Context& /*ctx*/, Batch& /*batch*/,
               const uint8_t* /*results*/) noexcept override {}
  };
  Broken broken;
  try {
    const auto made = device->make_kernel(broken, 1, nullptr, "devices.x");
    FAIL() << "it compiled";
  } catch (const ConfigError& error) {
    const bool is_clang = error.line().find("undeclared identifier 'y'") != std::string::npos;
    EXPECT_TRUE(is_clang || error.line().find("yntax") != std::string::npos) << error.line();
  }
}

// A whole engine, with a device thread beside the worker.
TEST(OpenCl, TakesAStagesPacketsInOrder) {
  std::string why;
  if (any_device(why) == nullptr) GTEST_SKIP() << why;
  for (const uint32_t threads : {0U, 1U}) {
    // Nothing is taken back, however busy this machine is: ten times this law is 10 s.
    const Dict laws{{"test_work", Dict{{"batch_ns", 1'000'000'000}}}};
    const DeviceSpec gpu{
        "gpu", kind_of_any_device(), {{"threads", threads}, {"check_one_in", 1}, {"laws", laws}}};
    stage_test::Rig rig(
        stage_test::pipeline({{"on", stage_test::kGpu}, {"batch_pkts", 64}, {"backpressure", true}},
                             {gpu}),
        20'000, false);
    while (stage_test::world.n_made < stage_test::world.limit_pkts) rig.loop(10);
    rig.engine->stop(true);
    rig.expect_all();
    const Value shown = rig.stats()["devices"].as_list()[0];
    EXPECT_EQ(shown["fault"].as_string(), "");
    EXPECT_GT(shown["done_pkts"].as_int(), 0);
  }
}

}  // namespace opencl_test
}  // namespace batchplane::offload
