// SPDX-License-Identifier: BSD-3-Clause
#include "common/timed_loop.h"

#include <sys/resource.h>

#include <array>
#include <vector>

#include "base/clock.h"
#include "base/pin_thread.h"
#include "common/stats.h"
#include "core/engine/thread.h"

namespace bench {
namespace {

constexpr uint64_t kSuspectNs = 5'000;  // a longer loop is worth asking the kernel about

uint64_t now_ns() { return batchplane::TscClock::instance().now_ns(); }

uint64_t switches_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw);
}

// The last loops' times, and what a swap among them has cost.
class LoopTimes {
 public:
  void add(uint64_t ns) {
    ring_[n_++ % kRing] = ns;
    if (left_ > 0) --left_;
  }
  void mark_swap() {
    left_ = kSwapLoops - 1;
    is_open_ = true;
    is_spoilt_ = n_ < kRing;
  }
  void spoil() { is_spoilt_ = true; }
  [[nodiscard]] bool is_swap_over() const { return is_open_ && left_ == 0; }
  void settle_swap(Stretch& stretch) {
    is_open_ = false;
    if (is_spoilt_) return;
    std::vector<double> before;
    std::vector<double> after;
    for (uint64_t i = n_ - kRing; i < n_; ++i) {
      (i < n_ - kSwapLoops ? before : after).push_back(static_cast<double>(ring_[i % kRing]));
    }
    const double usual_ns = bench::median_of(before);
    double extra_ns = 0;
    for (const double ns : after) extra_ns += ns - usual_ns;
    stretch.has_clean_swap = true;
    stretch.swap_extra_ns = std::max(extra_ns, 0.0);
    stretch.swap_loop_ns = std::max(bench::percentile(after, 1) - usual_ns, 0.0);
  }

 private:
  static constexpr uint64_t kSwapLoops = 32;
  static constexpr uint64_t kRing = 4 * kSwapLoops;
  std::array<uint64_t, kRing> ring_{};
  uint64_t n_ = 0;
  uint64_t left_ = 0;
  bool is_open_ = false;
  bool is_spoilt_ = false;
};

}  // namespace

void TimedLoop::run(int core) {
  batchplane::pin_this_thread(core);
  const batchplane::PacketThread registered;
  batchplane::Worker& worker = *engine_.workers().front();
  engine_.quiescence()->set_online(worker.options().index, true);
  for (uint64_t turn = 1; turn != kEnd; turn = wanted_.load(std::memory_order_acquire)) {
    seen_.store(turn, std::memory_order_release);
    Stretch stretch = loop_until_turn_ends(worker, turn);
    done_ = stretch;
  }
  engine_.quiescence()->set_online(worker.options().index, false);
  worker.context().flush_free();
}

Stretch TimedLoop::loop_until_turn_ends(batchplane::Worker& worker, uint64_t turn) {
  Stretch stretch;
  uint64_t switches = switches_of_this_thread();
  const uint64_t control_ns = worker.stats().control_ns;
  const uint64_t start_ns = now_ns();
  uint64_t last_ns = start_ns;
  LoopTimes times;
  uint64_t way = *way_;
  while (wanted_.load(std::memory_order_relaxed) == turn) {
    stretch.pkts += worker.loop_once();
    ++stretch.loops;
    const uint64_t at_ns = now_ns();
    const uint64_t took_ns = at_ns - last_ns;
    last_ns = at_ns;
    times.add(took_ns);
    if (*way_ != way) [[unlikely]] {
      way = *way_;
      ++stretch.swaps;
      times.mark_swap();
    }
    const bool is_swap_over = times.is_swap_over();
    if (took_ns <= std::max(kSuspectNs, stretch.longest_ns) && !is_swap_over) continue;
    const uint64_t switches_now = switches_of_this_thread();
    const bool was_switched = switches_now != switches;
    if (was_switched) {
      ++stretch.preempted;
      times.spoil();
    } else {
      stretch.longest_ns = std::max(stretch.longest_ns, took_ns);
    }
    if (is_swap_over) times.settle_swap(stretch);
    switches = switches_now;
    last_ns = now_ns();
  }
  stretch.length_ns = last_ns - start_ns;
  stretch.control_ns = worker.stats().control_ns - control_ns;
  return stretch;
}

}  // namespace bench
