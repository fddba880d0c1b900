// SPDX-License-Identifier: BSD-3-Clause
#include "profile/hop_meter.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/patience.h"
#include "base/percentile.h"
#include "base/pin_thread.h"
#include "core/engine/thread.h"
#include "profile/fit.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kHopBurstPkts = 32;
constexpr uint32_t kHopRingPkts = 256;
constexpr uint32_t kFrameBytes = 64;
constexpr size_t kMostBursts = 1U << 14;
constexpr size_t kLeastBursts = 100;

void note_burst(std::vector<double>& times, uint64_t burst_ns) {
  if (times.size() < kMostBursts) times.push_back(static_cast<double>(burst_ns) / kHopBurstPkts);
}

double median(const std::vector<double>& times) { return percentile(times, 0.5); }

}  // namespace

// As a source makes packets and a queue passes them on.
bool HopMeter::send(Ring& ring, std::vector<double>& ns) {
  const TscClock& clock = TscClock::instance();
  const uint64_t begin_ns = clock.now_ns();
  Packet* pkts[kHopBurstPkts];
  if (ring.free_slots(kHopBurstPkts) < kHopBurstPkts || !pool_.alloc_bulk(pkts, kHopBurstPkts))
    return false;
  pool_.prefetch_next(kHopBurstPkts);
  for (Packet* pkt : pkts) {
    pkt->reset(kFrameBytes);
    pkt->meta() = PacketMeta{.entry_ns = begin_ns};
    std::memset(pkt->data(), 0x5a, kFrameBytes);
  }
  for (Packet* pkt : pkts) enter_task(*pkt, begin_ns);
  ring.enqueue(pkts, kHopBurstPkts);
  note_burst(ns, clock.now_ns() - begin_ns);
  return true;
}

// As a queue is polled, and the first module behind it rewrites headers.
bool HopMeter::take(Ring& ring, std::vector<double>& ns) {
  const TscClock& clock = TscClock::instance();
  const uint64_t begin_ns = clock.now_ns();
  Packet* pkts[kHopBurstPkts];
  const uint32_t n = ring.dequeue(pkts, kHopBurstPkts);
  if (n == 0) return false;
  ring.peek(kHopBurstPkts, [](const Packet* pkt) { prefetch_whole(pkt); });
  for (uint32_t i = 0; i < n; ++i) {
    pkts[i]->meta().path_state = static_cast<uint16_t>(task_entry_ns(*pkts[i]));
    ++pkts[i]->data()[0];
  }
  PacketPool::free_bulk(pkts, n);
  if (n == kHopBurstPkts) note_burst(ns, clock.now_ns() - begin_ns);
  return true;
}

void HopMeter::run_near(uint64_t length_ns) {
  Ring ring(kHopRingPkts);
  const TscClock& clock = TscClock::instance();
  const uint64_t end_ns = clock.now_ns() + length_ns;
  while (clock.now_ns() < end_ns) {
    send(ring, near_.send_ns);
    while (take(ring, near_.take_ns)) {
    }
  }
}

void HopMeter::run_far(uint64_t length_ns) {
  Ring ring(kHopRingPkts);
  std::atomic<bool> must_stop{false};
  std::atomic<bool> is_under_way{false};  // or never will be
  std::thread sender([&] {
    const bool is_elsewhere = pin_this_thread(core_);
    [[maybe_unused]] const PacketThread registered;
    is_under_way.store(true, std::memory_order_release);
    while (is_elsewhere && !must_stop.load(std::memory_order_acquire)) send(ring, far_.send_ns);
  });
  Patience patience;
  while (!is_under_way.load(std::memory_order_acquire)) patience.wait();
  const TscClock& clock = TscClock::instance();
  const uint64_t end_ns = clock.now_ns() + length_ns;
  while (clock.now_ns() < end_ns) take(ring, far_.take_ns);
  must_stop.store(true, std::memory_order_release);
  sender.join();
  std::vector<double> untold;
  while (take(ring, untold)) {
  }
}

bool HopMeter::is_possible() const { return core_ >= 0 && core_ != sched_getcpu(); }

void HopMeter::pass(double ms) {
  if (!is_possible()) return;
  const auto half_ns = static_cast<uint64_t>(ms * 1e6 / 2);
  run_near(half_ns);
  run_far(half_ns);
}

HopCosts HopMeter::result(Doubts& doubts) const {
  HopCosts costs;
  if (near_.send_ns.empty()) return costs;  // no pass was possible
  const auto extra = [&doubts](const std::vector<double>& far, const std::vector<double>& near,
                               const std::string& what) {
    const size_t n_bursts = std::min(far.size(), near.size());
    if (n_bursts < kLeastBursts) {
      doubts.push_back(what + ": only " + std::to_string(n_bursts) +
                       " bursts went, too few for a cost: 0 is used");
      return 0.0;
    }
    return extra_ns(median(far), median(near), what, doubts);
  };
  costs.send_per_pkt_ns =
      extra(far_.send_ns, near_.send_ns, "a packet sent to a worker on another core");
  costs.take_per_pkt_ns =
      extra(far_.take_ns, near_.take_ns, "a packet taken from a worker on another core");
  return costs;
}

}  // namespace batchplane::profile
