// SPDX-License-Identifier: BSD-3-Clause
// gpu_transfer.cc - how fast packets get to a GPU, copied by the host or fetched by the GPU, and how much of it
// is hidden behind the kernels of other batches.
//
// usage: bench_gpu_transfer [GPU]      GPU: part of its name, or its number (the first)
// One line per kernel, frame and batch, ns a packet: on its way, copied and fetched, two batches under way; in the
// kernel; both together, copied with two batches under way, fetched with two and with as many as there may be; and
// the slower of way and kernel over the last of these.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "core/module/kernel.h"
#include "core/module/register.h"
#include "offload/cuda/cuda_device.h"

namespace {

using namespace batchplane;
using offload::DeviceKernel;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kStrideBytes = 2176;
constexpr uint32_t kMostPkts = 16'384;
constexpr auto kTime = std::chrono::milliseconds(25);
constexpr uint32_t kRounds = 3;

class NothingTable final : public KernelTable {
  [[nodiscard]] std::vector<uint32_t> words() const override { return {0}; }
};

// Reads a word of each input.
class Nothing final : public Kernel {
 public:
  [[nodiscard]] KernelSource source() const override {
    return {
#include "offload/number.cl.h"
        ,
#include "offload/number.ptx.h"
    };
  }
  [[nodiscard]] const char* entry() const override { return "number"; }
  [[nodiscard]] uint32_t result_bytes() const override { return 8; }
  [[nodiscard]] Input input_of(Packet& /*pkt*/) const noexcept override { return {}; }
  [[nodiscard]] KernelTable* table() noexcept override { return &table_; }
  void compute(const KernelTable* /*table*/, const Input* /*inputs*/, uint32_t /*n*/,
               uint8_t* /*results*/) noexcept override {}
  void apply(KernelTable* /*table*/, Context& /*ctx*/, Batch& /*batch*/,
             const uint8_t* /*results*/) noexcept override {}

 private:
  NothingTable table_;
};

void begin(DeviceKernel& on, uint32_t slot, const std::vector<uint8_t>& memory, uint32_t n,
           uint32_t n_bytes) {
  on.clear(slot);
  for (uint32_t i = 0; i < n; ++i)
    if (!on.add(slot, {&memory[size_t{i} * kStrideBytes], n_bytes})) break;
  if (!on.launch(slot)) throw ConfigError(on.fault().what, "GPU");
}
void wait(DeviceKernel& on, uint32_t slot) {
  DeviceKernel::State state{};
  while ((state = on.poll(slot)) == DeviceKernel::State::kRunning) {
  }
  if (state == DeviceKernel::State::kFailed) throw ConfigError(on.fault().what, "GPU");
}

// The least of a few runs; `n_under_way`: up to kSlots.
double ns_a_batch(DeviceKernel& on, uint32_t n_under_way, const std::vector<uint8_t>& memory,
                  uint32_t n, uint32_t n_bytes) {
  double least_ns = 1e18;
  for (uint32_t round = 0; round < kRounds; ++round) {
    uint64_t n_done = 0;
    const auto began = Clock::now();
    for (uint32_t s = 0; s < n_under_way; ++s) begin(on, s, memory, n, n_bytes);
    while (Clock::now() - began < kTime) {
      const uint32_t slot = n_done++ % n_under_way;
      wait(on, slot);
      begin(on, slot, memory, n, n_bytes);
    }
    for (uint32_t s = 0; s < n_under_way; ++s) wait(on, (n_done++) % n_under_way);
    const std::chrono::duration<double, std::nano> took = Clock::now() - began;
    least_ns = std::min(least_ns, took.count() / static_cast<double>(n_done));
  }
  return least_ns;
}

struct Times {
  double alone_ns, two_ns, all_ns;  // of a batch
};

Times times_of(const offload::CudaDevice& device, Kernel& kernel,
               const std::vector<uint8_t>& memory, uint32_t n, uint32_t n_bytes) {
  const auto on = device.make_kernel(kernel, kMostPkts, nullptr, "GPU");
  return {ns_a_batch(*on, 1, memory, n, n_bytes), ns_a_batch(*on, 2, memory, n, n_bytes),
          ns_a_batch(*on, DeviceKernel::kSlots, memory, n, n_bytes)};
}

void measure(const std::string& gpu) {
  std::vector<uint8_t> memory(size_t{kMostPkts} * kStrideBytes);
  Rng rng(1);
  for (uint8_t& byte : memory) byte = static_cast<uint8_t>(rng.below(256));
  const auto copying = std::make_shared<offload::CudaDevice>(offload::CudaChoice{gpu}, "GPU");
  const auto fetching = std::make_shared<offload::CudaDevice>(offload::CudaChoice{gpu}, "GPU");
  const std::span<uint8_t> lent[] = {memory};
  fetching->lend(lent);
  std::printf("# %s, %llu MiB mapped; ns a packet\n", fetching->name().c_str(),
              static_cast<unsigned long long>(fetching->lent_bytes() >> 20));
  std::printf("%-7s %5s %6s %8s %8s %8s %8s %8s %8s %7s\n", "kernel", "bytes", "batch", "copied",
              "fetched", "kernel", "both_cp", "both_ft2", "both_ft", "overlap");
  for (const char* const algorithm : {"md5", "sha256"}) {
    Environment env;
    const ModuleInfo& info = *find_module_kind("digest");
    Args args(info.params, {{"algorithm", algorithm}}, "modules.x");
    args.set_env(&env);
    args.set_name("x");
    const auto module = info.make(args);
    Nothing nothing;
    for (const uint32_t n_bytes : {64U, 576U, 1472U}) {
      for (const uint32_t n : {16U, 64U, 256U, 1024U, 4096U, 16'384U}) {
        const Times copied = times_of(*copying, nothing, memory, n, n_bytes);
        const Times fetched = times_of(*fetching, nothing, memory, n, n_bytes);
        const Times by_copy = times_of(*copying, *module->kernel(), memory, n, n_bytes);
        const Times by_fetch = times_of(*fetching, *module->kernel(), memory, n, n_bytes);
        const double kernel_ns = by_fetch.alone_ns - fetched.alone_ns;
        std::printf("%-7s %5u %6u %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %7.2f\n", algorithm, n_bytes,
                    n, copied.two_ns / n, fetched.two_ns / n, kernel_ns / n, by_copy.two_ns / n,
                    by_fetch.two_ns / n, by_fetch.all_ns / n,
                    std::max(kernel_ns, fetched.all_ns) / by_fetch.all_ns);
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    measure(argc > 1 ? argv[1] : "");
  } catch (const ConfigError& error) {
    std::fprintf(stderr, "bench_gpu_transfer: %s\n", error.line().c_str());
    return 2;
  }
}
