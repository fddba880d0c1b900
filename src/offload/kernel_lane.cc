// SPDX-License-Identifier: BSD-3-Clause
// kernel_lane.cc - a batch's way over a device with memory of its own.
#include "offload/kernel_lane.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace batchplane::offload {
namespace {

constexpr uint32_t kSamples = 16;  // compared at once
constexpr uint32_t kMaxResultBytes = 64;

Kernel& kernel_of(Runner& runner, const std::string& where) {
  Kernel* const kernel = runner.module().kernel();
  if (kernel != nullptr && kernel->result_bytes() <= kMaxResultBytes) return *kernel;
  throw ConfigError("a " + runner.info().kind + " has no kernel for a device of kind opencl", where,
                    "leave the device out of `on`");
}

}  // namespace

KernelLane::KernelLane(const std::shared_ptr<const OpenClDevice>& device, Runner& runner,
                       uint32_t max_pkts, uint32_t check_one_in, const std::string& where)
    : kernel_(kernel_of(runner, where)),
      device_(device, kernel_, max_pkts, where),
      check_one_in_(check_one_in) {
  try_out(where, max_pkts);
}

bool KernelLane::serve(SpscRing<LaneEntry>& ring, Context& ctx, uint64_t now_ns) noexcept {
  const bool has_ended = end_oldest(ctx, now_ns);
  return fault_.what == nullptr && (begin_next(ring, now_ns) || has_ended);
}

bool KernelLane::fail(const DeviceFault& fault) noexcept {
  fault_ = fault;
  return false;
}

// The job waits again before the library is called, which may never return.
bool KernelLane::begin_next(SpscRing<LaneEntry>& ring, uint64_t now_ns) noexcept {
  LaneEntry entry{};
  if (tail_ - head_ == OpenClKernel::kSlots || ring.dequeue(&entry, 1) == 0) return false;
  if (!entry.job->claim(entry.number)) return true;
  const uint32_t slot = tail_ % OpenClKernel::kSlots;
  device_.clear(slot);
  Job& job = *entry.job;
  for (uint32_t i = 0; i < job.n_pkts; ++i) {
    if (!device_.add(slot, kernel_.input_of(*job.pkts[i]))) break;  // the rest is computed here
  }
  job.unclaim();
  flights_[slot] = {entry, now_ns};
  ++tail_;
  return device_.launch(slot) || fail(device_.fault());
}

bool KernelLane::end_oldest(Context& ctx, uint64_t now_ns) noexcept {
  if (head_ == tail_) return false;
  const uint32_t slot = head_ % OpenClKernel::kSlots;
  const Flight& flight = flights_[slot];
  const OpenClKernel::State state = device_.poll(slot);
  if (state == OpenClKernel::State::kFailed) return fail(device_.fault());
  if (state == OpenClKernel::State::kRunning) {
    const bool is_gone = now_ns - std::min(now_ns, flight.begun_ns) >= kLongestBatchNs;
    return is_gone && fail({"a batch did not come back within a second"});
  }
  Job& job = *flight.entry.job;
  Runner& runner = *flight.entry.runner;
  const uint64_t number = flight.entry.number;
  if (job.waits_as(number)) {
    if (!runner.is_turn_of(number)) return false;
    if (job.claim(number)) {
      if (!is_right(job, slot)) {
        job.unclaim();
        return fail({"results were wrong"});
      }
      apply(ctx, job, runner, slot);
      job.run_ns = now_ns - std::min(now_ns, std::max(free_ns_, flight.begun_ns));
      busy_ns_ += job.run_ns;
      runner.end_turn_of(number);
      job.end();
    }
  }
  free_ns_ = now_ns;
  ++head_;
  return true;
}

bool KernelLane::is_right(const Job& job, uint32_t slot) noexcept {
  const uint32_t n = device_.n_added(slot);
  const uint32_t result_bytes = kernel_.result_bytes();
  const uint8_t* const results = device_.results(slot);
  bool is_same = true;
  while (next_check_ < n) {
    Kernel::Input inputs[kSamples];
    uint32_t at[kSamples];
    uint32_t n_samples = 0;
    for (; next_check_ < n && n_samples < kSamples; next_check_ += check_one_in_) {
      at[n_samples] = next_check_;
      inputs[n_samples++] = kernel_.input_of(*job.pkts[next_check_]);
    }
    alignas(64) uint8_t expected[kSamples * kMaxResultBytes];
    kernel_.compute(inputs, n_samples, expected);
    for (uint32_t s = 0; s < n_samples; ++s) {
      is_same = is_same && std::memcmp(expected + s * result_bytes, results + at[s] * result_bytes,
                                       result_bytes) == 0;
    }
  }
  next_check_ -= n;
  return is_same;
}

void KernelLane::apply(Context& ctx, Job& job, Runner& runner, uint32_t slot) noexcept {
  const uint32_t n = device_.n_added(slot);
  for (uint32_t at = 0; at < n; at += exec::kMaxBatchPkts) {
    runner.apply(ctx, &job.pkts[at], std::min(exec::kMaxBatchPkts, n - at),
                 device_.results(slot) + size_t{at} * kernel_.result_bytes());
  }
  for (uint32_t at = n; at < job.n_pkts; at += exec::kMaxBatchPkts) {
    runner.run(ctx, &job.pkts[at], std::min(exec::kMaxBatchPkts, job.n_pkts - at));
  }
}

}  // namespace batchplane::offload
