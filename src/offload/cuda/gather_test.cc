// SPDX-License-Identifier: BSD-3-Clause
// gather_test.cc - inputs of every length, at every alignment, copied by the kernel that fetches packets. It
// runs on an OpenCL device that is this processor, where an address of this machine is the device's, too.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "offload/opencl/opencl_device.h"

namespace batchplane::offload {
namespace gather_test {

constexpr const char* kText =
#include "offload/cuda/gather.cl.h"
    ;
constexpr uint32_t kItems = 32;
constexpr uint8_t kUntouched = 0xee;

struct Place {
  uint32_t at;
  uint32_t n_bytes;
};

class Gather {
 public:
  explicit Gather(const OpenClDevice& device) : api_(device.api()), context_(device.context()) {
    const cl::DeviceId id = device.id();
    const char* text = kText;
    queue_ = {api_.clCreateCommandQueue(context_, id, 0, &error_), {api_.clReleaseCommandQueue}};
    program_ = {api_.clCreateProgramWithSource(context_, 1, &text, nullptr, &error_),
                {api_.clReleaseProgram}};
    error_ = api_.clBuildProgram(program_.get(), 1, &id, "-cl-std=CL1.2 -Werror", nullptr, nullptr);
    EXPECT_EQ(error_, cl::kSuccess);
    kernel_ = {api_.clCreateKernel(program_.get(), "gather", &error_), {api_.clReleaseKernel}};
    EXPECT_EQ(error_, cl::kSuccess);
  }
  void operator()(std::vector<uint8_t>& to, const std::vector<Place>& places,
                  const std::vector<uint64_t>& from) {
    const auto n = static_cast<uint32_t>(places.size());
    const auto bytes = buffer(to.data(), to.size());
    const auto wheres = buffer(places.data(), n * sizeof places[0]);
    const auto froms = buffer(from.data(), n * sizeof from[0]);
    const cl::MemoryId memory[] = {bytes.get(), wheres.get(), froms.get()};
    EXPECT_EQ(api_.clSetKernelArg(kernel_.get(), 0, sizeof memory[0], &memory[0]), cl::kSuccess);
    EXPECT_EQ(api_.clSetKernelArg(kernel_.get(), 1, sizeof memory[1], &memory[1]), cl::kSuccess);
    EXPECT_EQ(api_.clSetKernelArg(kernel_.get(), 2, sizeof n, &n), cl::kSuccess);
    EXPECT_EQ(api_.clSetKernelArg(kernel_.get(), 3, sizeof memory[2], &memory[2]), cl::kSuccess);
    const size_t n_items = size_t{n} * kItems;
    const size_t group = kItems;
    EXPECT_EQ(api_.clEnqueueNDRangeKernel(queue_.get(), kernel_.get(), 1, nullptr, &n_items, &group,
                                          0, nullptr, nullptr),
              cl::kSuccess);
    EXPECT_EQ(api_.clEnqueueReadBuffer(queue_.get(), bytes.get(), cl::kTrue, 0, to.size(),
                                       to.data(), 0, nullptr, nullptr),
              cl::kSuccess);
  }

 private:
  [[nodiscard]] cl::Owned<cl::MemoryId> buffer(const void* from, size_t n_bytes) {
    return {api_.clCreateBuffer(context_, cl::kMemReadWrite | cl::kMemCopyHostPtr, n_bytes,
                                const_cast<void*>(from), &error_),
            {api_.clReleaseMemObject}};
  }

  const cl::Api& api_;
  const cl::ContextId context_;
  int32_t error_ = 0;
  cl::Owned<cl::QueueId> queue_;
  cl::Owned<cl::ProgramId> program_;
  cl::Owned<cl::KernelId> kernel_;
};

TEST(Gather, CopiesInputsOfEveryLengthFromAnywhere) {
  std::unique_ptr<OpenClDevice> device;
  try {
    device = std::make_unique<OpenClDevice>(OpenClChoice{"Portable", ""}, std::vector<int>{}, "");
  } catch (const ConfigError& error) {
    GTEST_SKIP() << error.line();
  }
  Gather gather(*device);
  Rng rng(4);
  std::vector<uint8_t> memory(size_t{4} << 20);
  for (uint8_t& byte : memory) byte = static_cast<uint8_t>(rng.below(256));
  std::vector<Place> places;
  std::vector<uint64_t> from;
  std::vector<size_t> begins;
  uint32_t at = 0;
  size_t begin = 64;
  const auto add = [&](uint32_t n_bytes) {
    // The next input's first 64 bytes keep units around this one inside the memory.
    places.push_back({at, n_bytes});
    begins.push_back(begin);
    from.push_back(reinterpret_cast<uint64_t>(memory.data() + begin));
    at += (n_bytes + 3) / 4 * 4;
    begin += n_bytes + rng.below(32);
  };
  for (uint32_t n_bytes = 0; n_bytes <= 600; ++n_bytes) add(n_bytes);
  for (uint32_t n_bytes = 2000; n_bytes <= 2100; ++n_bytes) add(n_bytes);
  for (const uint32_t n_bytes : {4079U, 4095U, 4096U, 4097U, 4113U, 9728U}) add(n_bytes);
  ASSERT_LT(begin + 64, memory.size());

  std::vector<uint8_t> to(at + 64, kUntouched);
  gather(to, places, from);
  for (size_t i = 0; i < places.size(); ++i) {
    ASSERT_TRUE(
        std::equal(&to[places[i].at], &to[places[i].at] + places[i].n_bytes, &memory[begins[i]]))
        << places[i].n_bytes << " bytes at " << from[i] % 16;
  }
  EXPECT_TRUE(
      std::all_of(to.begin() + at, to.end(), [](uint8_t byte) { return byte == kUntouched; }));
}

}  // namespace gather_test
}  // namespace batchplane::offload
