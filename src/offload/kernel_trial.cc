// SPDX-License-Identifier: BSD-3-Clause
// kernel_trial.cc - a trial before a device gets packets: does it compute what the CPU does, and how fast?
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "offload/kernel_lane.h"

namespace batchplane::offload {
namespace {

constexpr uint32_t kTrialPkts = 256;
constexpr uint32_t kLongestInput = 1500;
constexpr uint32_t kShortInput = 64;
constexpr uint32_t kLongInput = 1024;
constexpr uint32_t kRuns = 5;
constexpr uint64_t kLongestTrialNs = 10'000'000'000;  // a first launch may compile

}  // namespace

// The inputs that were added to the first slot.
void KernelLane::run_once(const std::string& where) {
  const TscClock& clock = TscClock::instance();
  const uint64_t until_ns = clock.now_ns() + kLongestTrialNs;
  auto state = device_->launch(0) ? DeviceKernel::State::kRunning : DeviceKernel::State::kFailed;
  while (state == DeviceKernel::State::kRunning && clock.now_ns() < until_ns)
    state = device_->poll(0);
  if (state == DeviceKernel::State::kDone) return;
  const DeviceFault fault = device_->fault();
  const std::string why = fault.what == nullptr
                              ? std::string("it does not end within 10 s")
                              : fault.what + (": error " + std::to_string(fault.code));
  throw ConfigError("the kernel '" + std::string(kernel_.entry()) + "' does not run: " + why, where,
                    "leave the device out of `on`, or use another driver");
}

double KernelLane::time_ns(uint32_t n, Kernel::Input input, const std::string& where) {
  double least_ns = 0;
  for (uint32_t run = 0; run < kRuns; ++run) {
    const uint64_t began_ns = TscClock::instance().now_ns();
    device_->clear_for_trial();
    while (device_->n_added(0) < n && device_->add(0, input)) {
    }
    run_once(where);
    const auto ns = static_cast<double>(TscClock::instance().now_ns() - began_ns);
    least_ns = run == 0 ? ns : std::min(least_ns, ns);
  }
  return least_ns;
}

Kernel::Input KernelLane::trial_input(std::span<uint8_t> text) const {
  return text.first(rewriting_ == nullptr ? text.size() : rewriting_->write_trial(text));
}

bool KernelLane::is_trial_right(const std::vector<Kernel::Input>& inputs) {
  const auto n = static_cast<uint32_t>(inputs.size());
  const uint32_t result_bytes = kernel_.result_bytes();
  if (rewriting_ != nullptr) {
    bool is_right = true;
    for (uint32_t i = 0; i < n; ++i) {
      is_right = is_right && is_same(kernel_.table(), device_->rewritten(0, i),
                                     device_->results(0) + i * result_bytes);
    }
    return is_right;
  }
  std::vector<uint64_t> expected(size_t{n} * result_bytes / sizeof(uint64_t));
  auto* const bytes = reinterpret_cast<uint8_t*>(expected.data());
  kernel_.compute(kernel_.table(), inputs.data(), n, bytes);
  return std::memcmp(bytes, device_->results(0), size_t{n} * result_bytes) == 0;
}

void KernelLane::try_out(const std::string& where, uint32_t max_pkts) {
  const uint32_t n = std::min(max_pkts, kTrialPkts);
  Rng rng(1);
  std::span<uint8_t> room = device_->trial_memory();
  std::vector<Kernel::Input> inputs;
  device_->clear_for_trial();
  for (uint32_t i = 0; i < n; ++i) {
    const std::span<uint8_t> text = room.first(rng.below(kLongestInput + 1));
    room = room.subspan(text.size());
    for (uint8_t& byte : text) byte = static_cast<uint8_t>(rng.below(256));
    const Kernel::Input input = trial_input(text);
    if (device_->add(0, input)) inputs.push_back(input);
  }
  run_once(where);
  if (!is_trial_right(inputs)) {
    throw ConfigError("the kernel '" + std::string(kernel_.entry()) + "' computes wrong there",
                      where, "leave the device out of `on`, or use another driver");
  }
  const std::span<uint8_t> texts = device_->trial_memory();
  std::ranges::fill(texts.first(kShortInput + kLongInput), uint8_t{1});
  const Kernel::Input short_input = trial_input(texts.first(kShortInput));
  const Kernel::Input long_input = trial_input(texts.subspan(kShortInput, kLongInput));
  constexpr double kMoreBytes = kLongInput - kShortInput;
  const double one_ns = time_ns(1, short_input, where);
  const double long_one_ns = time_ns(1, long_input, where);
  const double short_ns = time_ns(n, short_input, where);
  const double long_ns = time_ns(n, long_input, where);
  const double n_more = std::max(1U, n - 1);
  const double each_ns = n == 1 ? 0 : std::max(0.0, (short_ns - one_ns) / n_more);
  const double each_long_ns = n == 1 ? 0 : std::max(0.0, (long_ns - long_one_ns) / n_more);
  law_.byte_ns = std::max(0.0, (each_long_ns - each_ns) / kMoreBytes);
  law_.pkt_ns = std::max(0.0, each_ns - law_.byte_ns * kShortInput);
  law_.length_ns = std::max(0.0, (long_one_ns - one_ns) / kMoreBytes - law_.byte_ns);
  law_.batch_ns = std::max(0.0, one_ns - each_ns - law_.length_ns * kShortInput);
}

}  // namespace batchplane::offload
