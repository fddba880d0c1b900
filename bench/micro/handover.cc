// SPDX-License-Identifier: BSD-3-Clause
// handover.cc - packets a second from a producer core to a worker core that touches each header.
//
// Two ways back for the packets are compared: through the pool (what the engine does), and through
// a second ring. --core is the worker's; --batches the length of a trial in ms.
#include <pthread.h>
#include <rte_lcore.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/net.h"
#include "base/pin_thread.h"
#include "common/environment.h"
#include "common/report.h"
#include "core/module/context.h"
#include "ports/ring_take.h"
#include "traffic/template.h"

namespace batchplane {
namespace {

constexpr uint32_t kBurstPkts = 32;
constexpr uint32_t kPoolPkts = 8192;
constexpr uint32_t kJudgedRingPkts = 1024;
constexpr uint32_t kMemoryMb = 256;

enum class Return { kPool, kRing };

struct Trial {
  uint32_t ring_pkts;
  Return way_back;
  bench::Result result = {};
};

void pin(int cpu) {
  batchplane::pin_this_thread(cpu);
  if (rte_thread_register() != 0) std::abort();
}

struct Bench {
  PacketPool& pool;
  BurstRing ring;
  SpscRing<Packet*> back{kPoolPkts};
  Return way_back;
  std::atomic<bool> is_ready{false};
  std::atomic<bool> is_stopped{false};
  uint64_t sent = 0;

  // Way back by ring: the producer owns a fixed set of packets at the start.
  bool get(Packet** pkts) {
    if (way_back == Return::kPool) return pool.alloc_bulk(pkts, kBurstPkts);
    return back.size() >= kBurstPkts && back.dequeue(pkts, kBurstPkts) == kBurstPkts;
  }
  bool fetch(Packet** pkts) {
    if (!get(pkts)) return false;
    for (uint32_t i = 0; i < kBurstPkts; ++i) {
      prefetch_for_write(traffic::fresh_data(*pkts[i]));
    }
    return true;
  }
  void give(Packet** pkts, uint32_t n) {
    if (n == 0) return;
    if (way_back == Return::kPool) {
      PacketPool::free_bulk(pkts, n);
    } else {
      back.enqueue(pkts, n);
    }
  }

  void produce(int cpu, traffic::TemplateSet& frames) {
    pin(cpu);
    is_ready.store(true, std::memory_order_release);
    // Two bursts in hand: while one is written, the lines of the next come over from the worker.
    Packet* hand[2][kBurstPkts];
    uint32_t at = 0;
    const TscClock& clock = TscClock::instance();
    bool has_next = false;
    while (!is_stopped.load(std::memory_order_relaxed)) {
      if (!has_next && !(has_next = fetch(hand[at]))) continue;
      if (ring.free_slots() < kBurstPkts) continue;
      Packet** const pkts = hand[at];
      at ^= 1;
      has_next = fetch(hand[at]);
      const uint64_t now_ns = clock.now_ns();
      BurstSlot slots[kBurstPkts];
      frames.each_next(kBurstPkts, [&](uint32_t i, const traffic::TemplateSet::Frame& frame) {
        traffic::copy_frame(traffic::fresh_data(*pkts[i]), frame.bytes, frame.len_bytes);
        offer_line(traffic::fresh_data(*pkts[i]));
        slots[i] = BurstSlot::make(pkts[i], frame.len_bytes, now_ns);
      });
      ring.enqueue(slots, kBurstPkts);
      sent += kBurstPkts;
    }
    if (has_next) PacketPool::free_bulk(hand[at], kBurstPkts);
    rte_thread_unregister();
  }

  // Returns packets a second over the time given.
  double work(uint64_t run_ns) {
    Packet* pkts[kBurstPkts];
    const TscClock& clock = TscClock::instance();
    // It starts on this core, and must get away first.
    while (!is_ready.load(std::memory_order_acquire)) std::this_thread::yield();
    const uint64_t start_ns = clock.now_ns();
    uint64_t now_ns = start_ns;
    uint64_t taken = 0;
    while (now_ns - start_ns < run_ns) {
      for (int k = 0; k < 16; ++k) {
        const uint32_t n = ports::take_fresh(ring, pkts, kBurstPkts);
        for (uint32_t i = 0; i < n; ++i) {
          uint8_t* ip = pkts[i]->data() + net::kEthBytes;
          ip[net::kIpTtl] = static_cast<uint8_t>(ip[net::kIpTtl] - 1);
        }
        give(pkts, n);
        taken += n;
      }
      now_ns = clock.now_ns();
    }
    const double rate = static_cast<double>(taken) / static_cast<double>(now_ns - start_ns) * 1e3;
    is_stopped.store(true, std::memory_order_relaxed);
    return finish(taken) ? rate : -1;
  }

  // What is still in the ring is counted too: nothing may be lost.
  bool finish(uint64_t taken) {
    producer.join();
    Packet* pkts[kBurstPkts];
    while (const uint32_t n = ports::take_fresh(ring, pkts, kBurstPkts)) {
      PacketPool::free_bulk(pkts, n);
      taken += n;
    }
    return taken == sent;
  }

  std::thread producer;
};

double run_trial(PacketPool& pool, const Trial& trial, uint64_t run_ns, int cpu) {
  traffic::FlowSpec flow;
  flow.sizes = {{64, 1}};
  traffic::TemplateSet frames(std::vector<traffic::FlowSpec>(16, flow), traffic::Order::kRoundRobin,
                              1);
  Bench bench{.pool = pool, .ring = BurstRing(trial.ring_pkts), .way_back = trial.way_back};
  std::vector<Packet*> own(kPoolPkts / 4);
  if (trial.way_back == Return::kRing) {
    if (!pool.alloc_bulk(own.data(), static_cast<uint32_t>(own.size()))) std::abort();
    bench.back.enqueue(own.data(), static_cast<uint32_t>(own.size()));
  }
  bench.producer = std::thread([&] { bench.produce(cpu, frames); });
  const double mpps = bench.work(run_ns);
  while (const uint32_t n = bench.back.dequeue(own.data(), kBurstPkts)) {
    PacketPool::free_bulk(own.data(), n);
  }
  return mpps;
}

// Times a packet, so that percentiles are those of time as everywhere.
void run_trials(std::vector<Trial>& kinds, const bench::Options& options) {
  const int producer_cpu = options.core == 0 ? 1 : 0;
  PacketPool pool("handover", kPoolPkts);
  for (uint32_t t = 0; t < options.trials; ++t) {
    for (Trial& kind : kinds) {
      const double mpps =
          run_trial(pool, kind, uint64_t{options.batches} * 1'000'000, producer_cpu);
      if (mpps < 0) throw std::runtime_error("packets were lost on the way");
      kind.result.ns_per_pkt.push_back(1e3 / mpps);
    }
  }
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("handover", options);
  std::vector<Trial> kinds;
  for (const uint32_t ring_pkts : {64U, 256U, 1024U, 4096U}) {
    for (const Return way_back : {Return::kPool, Return::kRing}) {
      kinds.push_back({ring_pkts, way_back});
    }
  }
  run_trials(kinds, options);
  for (const Trial& kind : kinds) {
    const bench::Interval ns = bench::time_percentile(kind.result, 0.1);
    const bench::Interval mpps{1e3 / ns.median, 1e3 / ns.high, 1e3 / ns.low};
    // Short rings are there for their short delays; one that may fill has to keep the rate.
    const bool is_judged = kind.ring_pkts == kJudgedRingPkts && kind.way_back == Return::kPool;
    report.figure("hand-over, ring of " + std::to_string(kind.ring_pkts) + ", back by " +
                      (kind.way_back == Return::kPool ? "the pool" : "a ring"),
                  "Mpps", mpps, is_judged ? std::optional(bench::Target{35, false}) : std::nullopt);
  }
  return report.finish();
}

}  // namespace
}  // namespace batchplane

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 200, .batches = 5});
  return bench::guarded([&] { return batchplane::run(options); });
}
