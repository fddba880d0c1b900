// SPDX-License-Identifier: BSD-3-Clause
// kernel_lane.cc - a batch's way through a device with its own memory.
#include "offload/kernel_lane.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace batchplane::offload {
namespace {

constexpr uint32_t kSamples = 16;  // compared in one go
constexpr uint32_t kMaxResultBytes = 64;
constexpr uint32_t kLineBytes = 64;
// Another core has just written the packets: their mbufs are prefetched this many packets ahead, and their
// bytes half as many.
constexpr uint32_t kHeadsAhead = 16;
constexpr uint32_t kBytesAhead = 8;

Kernel& kernel_of(Runner& runner, const std::string& where) {
  Kernel* const kernel = runner.module().kernel();
  if (kernel != nullptr && kernel->result_bytes() <= kMaxResultBytes) return *kernel;
  throw ConfigError(
      "a " + runner.info().kind + " has no kernel for devices with memory of their own", where,
      "leave the device out of `on`");
}

// The headers, and as much behind them as the kernel reads.
void prefetch_bytes(Packet& pkt, uint32_t most_input_bytes) {
  const uint8_t* const data = pkt.data();
  const uint32_t n_bytes =
      std::min(pkt.len_bytes(), std::min(most_input_bytes, kMaxFrameBytes) + 2 * kLineBytes);
  for (uint32_t at = 0; at < n_bytes; at += kLineBytes) __builtin_prefetch(data + at);
}

}  // namespace

KernelLane::KernelLane(const KernelDevice& device, Runner& runner, uint32_t max_pkts,
                       uint32_t check_one_in, const Quiescence* quiescence,
                       const std::string& where)
    : kernel_(kernel_of(runner, where)),
      rewriting_(kernel_.rewriting()),
      device_(device.make_kernel(kernel_, max_pkts, quiescence, where)),
      check_one_in_(check_one_in),
      check_room_(rewriting_ == nullptr ? 0 : RewritingKernel::kMostBytes) {
  try_out(where, max_pkts);
}

bool KernelLane::serve(SpscRing<LaneEntry>& ring, Context& ctx, uint64_t now_ns) noexcept {
  const bool has_ended = end_oldest(ctx, now_ns);
  return fault_.what == nullptr && (begin_next(ring, now_ns) || has_ended);
}

void KernelLane::renew_table() {
  try {
    device_->renew_table(kernel_, "");
  } catch (const ConfigError&) {
    has_no_room_.store(true, std::memory_order_relaxed);
  }
}

bool KernelLane::fail(const DeviceFault& fault) noexcept {
  fault_ = fault;
  return false;
}

// The job is unclaimed before the call into the library, which may never return.
bool KernelLane::begin_next(SpscRing<LaneEntry>& ring, uint64_t now_ns) noexcept {
  LaneEntry entry{};
  if (has_no_room_.load(std::memory_order_relaxed)) return fail({"it has no room for a new table"});
  if (tail_ - head_ == DeviceKernel::kSlots) return false;
  bool is_there = false;
  ring.peek(1, [&](const LaneEntry& next) {
    entry = next;
    is_there = true;
  });
  if (!is_there || !may_begin(entry)) return false;
  ring.dequeue(&entry, 1);
  if (!entry.job->claim(entry.number)) return true;
  const uint32_t slot = tail_ % DeviceKernel::kSlots;
  device_->clear(slot);
  const uint32_t most_input_bytes = device_->most_input_bytes(slot);
  Job& job = *entry.job;
  for (uint32_t i = 0; i < std::min(job.n_pkts, kHeadsAhead); ++i) prefetch_whole(job.pkts[i]);
  for (uint32_t i = 0; i < job.n_pkts; ++i) {
    if (i + kHeadsAhead < job.n_pkts) prefetch_whole(job.pkts[i + kHeadsAhead]);
    if (i + kBytesAhead < job.n_pkts && !device_->fetches(slot))
      prefetch_bytes(*job.pkts[i + kBytesAhead], most_input_bytes);
    if (!add(slot, *job.pkts[i])) break;  // the rest is computed on the CPU
  }
  job.unclaim();
  flights_[slot] = {entry, now_ns};
  ++tail_;
  return device_->launch(slot) || fail(device_->fault());
}

// Guesses are right if all earlier jobs have ended, or are in flight in this lane with right guesses.
bool KernelLane::may_begin(const LaneEntry& entry) noexcept {
  if (rewriting_ == nullptr || !rewriting_->guesses()) return true;
  if (!entry.job->waits_as(entry.number)) return true;  // taken back: it will not be begun
  if (entry.runner->is_turn_of(entry.number)) {
    rewriting_->guess_anew();
    was_guess_wrong_ = false;
    return true;
  }
  return !was_guess_wrong_ && head_ != tail_ &&
         flights_[(tail_ - 1) % DeviceKernel::kSlots].entry.number + 1 == entry.number;
}

bool KernelLane::add(uint32_t slot, Packet& pkt) noexcept {
  return rewriting_ == nullptr ? device_->add(slot, kernel_.input_of(pkt))
                               : device_->add(slot, *rewriting_, pkt);
}

bool KernelLane::end_oldest(Context& ctx, uint64_t now_ns) noexcept {
  if (head_ == tail_) return false;
  const uint32_t slot = head_ % DeviceKernel::kSlots;
  const Flight& flight = flights_[slot];
  const DeviceKernel::State state = device_->poll(slot);
  if (state == DeviceKernel::State::kFailed) return fail(device_->fault());
  if (state == DeviceKernel::State::kRunning) {
    const bool is_gone = now_ns - std::min(now_ns, flight.begun_ns) >= kLongestBatchNs;
    return is_gone && fail({"a batch did not come back within a second"});
  }
  Job& job = *flight.entry.job;
  Runner& runner = *flight.entry.runner;
  const uint64_t number = flight.entry.number;
  if (job.waits_as(number)) {
    if (!runner.is_turn_of(number)) return false;
    if (job.claim(number)) {
      // The check and its outcome use one table, even if it is edited meanwhile.
      KernelTable* const table = kernel_.table();
      const uint64_t table_number = table == nullptr ? 0 : table->number();
      const bool is_current = device_->table_number(slot) == table_number;
      if (is_current && !is_right(table, job, slot)) {
        job.unclaim();
        return fail({"results were wrong"});
      }
      apply(table, ctx, flight.entry, slot, is_current ? device_->n_added(slot) : 0);
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

bool KernelLane::is_same(const KernelTable* table, const RewritingKernel::Rewritten& rewritten,
                         const uint8_t* result) noexcept {
  const std::span<uint8_t> bytes(check_room_.data(), rewritten.sent.size());
  std::ranges::copy(rewritten.sent, bytes.begin());
  alignas(64) uint8_t expected[kMaxResultBytes];
  rewriting_->compute_over(table, &bytes, 1, expected);
  return std::memcmp(expected, result, kernel_.result_bytes()) == 0 &&
         std::equal(bytes.begin(), bytes.end(), rewritten.returned);
}

bool KernelLane::is_rewritten_right(const KernelTable* table, uint32_t slot) noexcept {
  const uint32_t n = device_->n_added(slot);
  bool is_right = true;
  for (; next_check_ < n; next_check_ += check_one_in_) {
    is_right = is_right && is_same(table, device_->rewritten(slot, next_check_),
                                   device_->results(slot) + next_check_ * kernel_.result_bytes());
  }
  next_check_ -= n;
  return is_right;
}

bool KernelLane::is_right(const KernelTable* table, const Job& job, uint32_t slot) noexcept {
  if (rewriting_ != nullptr) return is_rewritten_right(table, slot);
  const uint32_t n = device_->n_added(slot);
  const uint32_t result_bytes = kernel_.result_bytes();
  const uint8_t* const results = device_->results(slot);
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
    kernel_.compute(table, inputs, n_samples, expected);
    for (uint32_t s = 0; s < n_samples; ++s) {
      is_same = is_same && std::memcmp(expected + s * result_bytes, results + at[s] * result_bytes,
                                       result_bytes) == 0;
    }
  }
  next_check_ -= n;
  return is_same;
}

void KernelLane::apply(KernelTable* table, Context& ctx, const LaneEntry& entry, uint32_t slot,
                       uint32_t n_known) noexcept {
  Job& job = *entry.job;
  Runner& runner = *entry.runner;
  bool is_outdated = n_known != job.n_pkts;
  for (uint32_t at = 0; at < n_known; at += exec::kMaxBatchPkts) {
    const uint32_t next = std::min(at + exec::kMaxBatchPkts, job.n_pkts);
    for (uint32_t i = next; i < std::min(next + exec::kMaxBatchPkts, job.n_pkts); ++i)
      prefetch_whole(job.pkts[i]);
    const uint32_t n = std::min(exec::kMaxBatchPkts, n_known - at);
    const uint8_t* const results = device_->results(slot) + size_t{at} * kernel_.result_bytes();
    if (rewriting_ == nullptr) {
      runner.apply(table, ctx, &job.pkts[at], n, results);
      continue;
    }
    RewritingKernel::Rewritten rewritten[exec::kMaxBatchPkts];
    for (uint32_t i = 0; i < n; ++i) rewritten[i] = device_->rewritten(slot, at + i);
    if (!runner.apply(table, ctx, &job.pkts[at], n, results, rewritten)) is_outdated = true;
  }
  for (uint32_t at = n_known; at < job.n_pkts; at += exec::kMaxBatchPkts) {
    runner.run(ctx, &job.pkts[at], std::min(exec::kMaxBatchPkts, job.n_pkts - at));
  }
  was_guess_wrong_ = was_guess_wrong_ || is_outdated;
  n_outdated_ += is_outdated ? 1 : 0;
}

}  // namespace batchplane::offload
