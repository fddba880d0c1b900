// SPDX-License-Identifier: BSD-3-Clause
// beside_test_util.h - a module twice, once with a kernel on a device, for tests that compare the two.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "offload/kernel/device_kernel.h"
#include "offload/opencl/module_side_test_util.h"

namespace batchplane::offload {
namespace opencl_modules_test {

// Launches the batch, waits for it and compares its results with the CPU's.
inline void expect_same_results(DeviceKernel& on_device, Kernel& kernel, uint32_t slot,
                                const std::vector<Kernel::Input>& inputs) {
  on_device.clear(slot);
  for (const Kernel::Input input : inputs) ASSERT_TRUE(on_device.add(slot, input));
  ASSERT_TRUE(on_device.launch(slot));
  while (on_device.poll(slot) == DeviceKernel::State::kRunning) std::this_thread::yield();
  ASSERT_EQ(on_device.fault().what, nullptr);
  ASSERT_EQ(on_device.table_number(slot), kernel.table()->number());
  const auto n = static_cast<uint32_t>(inputs.size());
  const uint8_t* const results = on_device.results(slot);
  const uint32_t result_bytes = kernel.result_bytes();
  std::vector<uint64_t> expected(size_t{n} * result_bytes / sizeof(uint64_t));
  auto* const bytes = reinterpret_cast<uint8_t*>(expected.data());
  kernel.compute(kernel.table(), inputs.data(), n, bytes);
  for (uint32_t i = 0; i < n; ++i) {
    ASSERT_EQ(std::memcmp(results + i * result_bytes, bytes + i * result_bytes, result_bytes), 0)
        << "packet " << i << " of " << n << ", input of " << inputs[i].size() << " bytes";
  }
}

// Sends the same frames to both sides.
class Beside {
 public:
  Beside(const std::shared_ptr<const KernelDevice>& device, const std::string& kind,
         const Dict& params, uint32_t most_pkts)
      : here(kind, params, most_pkts),
        there(kind, params, most_pkts),
        made(device->make_kernel(there.kernel(), most_pkts, nullptr, "devices.x")),
        on_device(*made) {}

  void command(const std::string& verb, const Value& args) {
    here.runner.module().command(verb, args);
    there.runner.module().command(verb, args);
    on_device.renew_table(there.kernel(), "");
  }

  void expect_same(const std::vector<Bytes>& frames) {
    here.take(frames);
    there.take(frames);
    here.run();
    Kernel& kernel = there.kernel();
    const uint32_t slot = n_batches_++ % DeviceKernel::kSlots;
    std::vector<Kernel::Input> inputs;
    for (Packet* pkt : there.pkts) inputs.push_back(kernel.input_of(*pkt));
    ASSERT_NO_FATAL_FAILURE(expect_same_results(on_device, kernel, slot, inputs));
    there.by_batches([&](uint32_t at, uint32_t n_pkts) {
      there.runner.apply(kernel.table(), *there.ctx, &there.pkts[at], n_pkts,
                         on_device.results(slot) + size_t{at} * kernel.result_bytes());
    });
    EXPECT_EQ(here.fates(), there.fates());
    expect_same_counts();
  }
  void expect_same_counts() {
    EXPECT_EQ(here.runner.module().show(), there.runner.module().show());
  }

  Side here;
  Side there;
  std::unique_ptr<DeviceKernel> made;
  DeviceKernel& on_device;

 private:
  uint32_t n_batches_ = 0;
};

}  // namespace opencl_modules_test
}  // namespace batchplane::offload
