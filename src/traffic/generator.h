// SPDX-License-Identifier: BSD-3-Clause
// generator.h - a traffic generator on its own thread, which fills a ring with due packets.
//
// Every packet has a due time and counts as entering the pipeline then, whether or not the ring has room (no
// coordinated omission): a slow pipeline sees the delay that it causes, and cannot slow its own input down.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/burst_ring.h"
#include "core/packet/packet_pool.h"
#include "exec/arrivals.h"
#include "traffic/template.h"

namespace batchplane::traffic {

// Parameters of a generator: rates, arrivals, flows.
const std::vector<ParamSpec>& generator_params();

struct GeneratorFlowStats {
  std::string name;
  uint64_t sent_pkts = 0;
  uint64_t sent_bytes = 0;
  uint64_t refused_pkts = 0;  // dropped: too late when the ring had room again
};

struct GeneratorStats {
  uint64_t sent_pkts = 0;
  uint64_t refused_pkts = 0;
  uint64_t starved_polls = 0;  // packets were due, but the pool had none
  uint64_t held_ups = 0;       // how often the machine stalled its loop
  uint64_t held_up_ns = 0;     // and for how long in total
  uint64_t late_ns = 0;        // wait of the oldest due packet, as of the last burst
  double rate_pps = 0;         // requested; 0 when saturating
  bool is_on = true;
  bool is_saturating = false;
};

// Owner of run_burst/run: one thread. Everything else: any thread, at any time.
class Generator {
 public:
  static constexpr uint32_t kBurstPkts = exec::kGeneratorBurstPkts;

  // `ring`, `pool` and `told`, which receives the counts of packets not in the ring, must outlive the
  // generator. Throws ConfigError.
  Generator(const Args& args, BurstRing& ring, PacketPool& pool, ProducerCounts& told);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Enqueues packets that are due at now_ns, at most kBurstPkts; returns how many.
  uint32_t run_burst(uint64_t now_ns) noexcept;
  // Body of its thread: sends bursts until told to stop, yielding the core in between.
  void run(const std::atomic<bool>& must_stop);

  // Total rate of the flows without a rate of their own.
  void set_rate(double rate_pps);
  // Rate of one flow that has its own; throws ConfigError otherwise.
  void set_flow_rate(const std::string& flow, double rate_pps);
  // One weight per flow, in order; throws ConfigError when the number is wrong or all are 0.
  void set_weights(const std::vector<double>& weights);
  void set_on(bool is_on) { is_on_.store(is_on, std::memory_order_relaxed); }
  void set_saturating(bool is_saturating) {
    is_saturating_.store(is_saturating, std::memory_order_relaxed);
  }

  [[nodiscard]] GeneratorStats stats() const;
  // Stalls since its thread was started: time between two bursts beyond their own.
  [[nodiscard]] uint64_t held_ups() const { return held_ups_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t held_up_ns() const { return held_up_ns_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::vector<GeneratorFlowStats> flow_stats() const;
  // Live changes to its parameters.
  [[nodiscard]] Dict saved_params() const;

 private:
  // One arrival process and the frames that it sends.
  struct Stream {
    Stream(std::vector<FlowSpec> flows, Order order, uint64_t seed, uint32_t first,
           const exec::ArrivalSpec& arrival)
        : frames(flows, order, seed),
          arrivals(arrival, Rng(seed + 1)),
          first_flow(first),
          rate_pps(arrival.rate_per_s) {}
    TemplateSet frames;
    exec::Arrivals<Rng> arrivals;
    uint32_t first_flow;  // index of the stream's first flow
    std::atomic<double> rate_pps;
    exec::DueCount<Rng> due;
    const TemplateSet::Frame* train = nullptr;  // frame of the current arrival
    uint32_t train_left_pkts = 0;
  };
  struct alignas(64) FlowCounts {
    std::atomic<uint64_t> sent_pkts{0};
    std::atomic<uint64_t> sent_bytes{0};
    std::atomic<uint64_t> refused_pkts{0};
  };

  void take_changes(uint64_t now_ns);
  uint32_t fill_saturating(BurstSlot* slots, uint32_t room, uint64_t now_ns);
  uint32_t fill_due(BurstSlot* slots, uint32_t room, uint64_t now_ns);
  void refuse_late(uint64_t now_ns);
  void note_backlog(uint64_t now_ns, bool was_short);
  void forget_backlog();
  // The stream with the earliest due packet.
  Stream& next_stream();
  // Returns the frame of the stream's next packet and advances its schedule.
  const TemplateSet::Frame& take_frame(Stream& stream);
  BurstSlot write_packet(const TemplateSet::Frame& frame, uint32_t flow, uint64_t due_ns);
  bool refill_hand();

  BurstRing& ring_;
  PacketPool& pool_;
  ProducerCounts& told_;
  std::vector<FlowSpec> flows_;
  std::vector<std::unique_ptr<Stream>> streams_;  // [0]: flows without a rate of their own
  std::unique_ptr<FlowCounts[]> counts_;
  uint32_t train_pkts_;
  uint64_t max_late_ns_;
  uint64_t left_pkts_;
  bool is_started_ = false;

  // Allocated ahead, so that their cache lines arrive from the worker's core while others are written.
  Packet* hand_[2 * kBurstPkts];
  uint32_t n_hand_ = 0;

  std::atomic<bool> is_on_{true};
  std::atomic<bool> is_saturating_;
  std::atomic<uint32_t> change_{0};
  uint32_t seen_change_ = 0;
  mutable std::mutex weights_mutex_;
  std::vector<double> weights_;   // guarded by weights_mutex_
  bool are_weights_new_ = false;  // guarded by weights_mutex_

  std::atomic<uint64_t> starved_polls_{0};
  std::atomic<uint64_t> late_ns_{0};
  std::atomic<uint64_t> held_ups_{0};
  std::atomic<uint64_t> held_up_ns_{0};
};

}  // namespace batchplane::traffic
