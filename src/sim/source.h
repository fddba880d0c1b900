// SPDX-License-Identifier: BSD-3-Clause
// source.h - a generator and the bounded ring that it fills, or a recorded trace, or an inline
// source.
//
// Same schedules, orders and seeds as src/traffic. A packet exists only once it is in the ring;
// packets that wait for room are only entries of the schedule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/engine_costs.h"
#include "base/rng.h"
#include "base/value.h"
#include "exec/arrivals.h"
#include "exec/demand.h"
#include "exec/ring_size.h"
#include "exec/turns.h"
#include "sim/loop_order.h"
#include "sim/packet.h"
#include "sim/recorder.h"
#include "sim/stalls.h"

namespace batchplane::sim {

struct TrafficFlow {
  std::string name;
  double weight = 1;
  double rate_pps = 0;  // 0 = a share of the source's rate
  uint32_t size_bytes = 64;
};

struct TraceArrivals {
  std::vector<uint64_t> time_ns;  // non-decreasing
  std::vector<uint32_t> flow;     // position in SourceSpec::flows
  std::vector<uint32_t> size_bytes;
};

struct SourceSpec {
  std::string name;
  std::string port;
  std::vector<TrafficFlow> flows;
  exec::ArrivalKind arrivals = exec::ArrivalKind::kConstant;
  exec::Order order = exec::Order::kRoundRobin;
  double rate_pps = 100'000;
  uint64_t on_ns = 1'000'000;
  uint64_t off_ns = 1'000'000;
  uint32_t burst_pkts = 1;
  uint64_t seed = 1;
  bool is_saturating = false;
  bool is_on = true;
  bool drops_when_full = false;  // else packets wait for room, as in the generator
  uint64_t max_late_ns = 0;      // packets that waited longer are refused; 0 = never
  uint64_t limit_pkts = ~0ULL;
  // Closed loop: number of packets in flight; each one that leaves admits the next. The first ones
  // enter one by one at rate_pps, and making packets takes no time. 0: open loop.
  uint32_t window_pkts = 0;
  uint32_t ring_pkts = exec::kDefaultRingPkts;
  bool is_inline = false;  // packets are made when the worker polls; ring_pkts is then the batch
  GeneratorCosts costs;    // of the generator's core; look_ns 0: it looks all the time
  StallSpec stalls;        // of that core
  TraceArrivals trace;     // replaces the schedules if it has packets
};

struct TrafficFlowCounts {
  uint64_t sent_pkts = 0;
  uint64_t sent_bytes = 0;
  uint64_t refused_pkts = 0;  // too late, or the ring was full
};

// Owner: the simulation; polled by one simulated worker.
class Source {
 public:
  // `first_flow`: number of its first traffic flow, counted over all sources.
  Source(SourceSpec spec, uint32_t first_flow, PacketPool& pool, Recorder& recorder);

  // Up to `most` packets that are in the ring at now_ns.
  uint32_t poll(Packet** pkts, uint32_t most, uint64_t now_ns);
  // The ring space of the last poll becomes free at now_ns; the next poll is later.
  void note_room(uint64_t now_ns);
  // When the next packet can be polled, as of the last poll; kNeverNs if there will be none.
  [[nodiscard]] uint64_t next_ns();

  void set_rate(double rate_pps, uint64_t now_ns);
  // Throws ConfigError if the flow has no rate of its own.
  void set_flow_rate(const std::string& flow, double rate_pps, uint64_t now_ns);
  void set_weights(const std::vector<double>& weights);
  void set_on(bool is_on, uint64_t now_ns);
  void set_saturating(bool is_saturating, uint64_t now_ns);
  // For a closed loop: one of its packets has left the pipeline.
  void note_left(uint64_t now_ns);
  // From now on, that adds the worker that polls the source to `woken`.
  void wake(Woken& woken, uint32_t reader) {
    woken_ = &woken;
    reader_ = reader;
  }
  // For plans, before the first poll: the schedule's next packet is in the ring as soon as there is
  // room, regardless of its due time and generation cost. If `part` is less than 1, a poll returns
  // that part of what it may take, on average.
  void fill_always(double part, uint32_t max_pkts);
  // For plans below full load: the same packets in the same order, one by one at this rate.
  void fill_evenly(double rate_pps);
  // Offered rate by its schedule; 0 = it saturates.
  [[nodiscard]] double offered_pps() const;

  [[nodiscard]] const SourceSpec& spec() const { return spec_; }
  [[nodiscard]] uint32_t first_flow() const { return first_flow_; }
  [[nodiscard]] uint64_t held_pkts() const { return n_ring_; }
  // For a trace replayed at its own times: packets that have not come yet or wait for room.
  [[nodiscard]] uint64_t unreplayed_pkts() const {
    if (!is_trace() || is_endless()) return 0;
    return std::min<uint64_t>(spec_.trace.time_ns.size() - trace_at_, left_pkts_);
  }
  [[nodiscard]] const std::vector<TrafficFlowCounts>& counts() const { return counts_; }
  // Packets that came until now_ns, of which the task took taken_pkts.
  [[nodiscard]] exec::InputCounts demand(uint64_t taken_pkts, uint64_t now_ns);
  void begin_fill_period() { fill_.begin_period(); }
  [[nodiscard]] Value show() const;

 private:
  struct Stream {
    exec::Turns turns;
    exec::Arrivals<Rng> arrivals;
    uint32_t first_flow;  // flow of turn 0
    exec::DueCount<Rng> due = {};
    uint32_t train_flow = 0;
    uint32_t train_left_pkts = 0;
  };
  struct Slot {
    Packet* pkt;
    uint64_t since_ns;  // when it entered the ring
  };

  void start(uint64_t now_ns);
  void produce(uint64_t now_ns);
  void take_stalls(uint64_t now_ns);
  void fill(uint64_t now_ns);
  [[nodiscard]] uint64_t look_from(uint64_t ticks) const;
  void look(uint64_t now_ns);
  [[nodiscard]] uint64_t due_pkts(uint64_t now_ns);
  void put_at_once(uint64_t look_ticks, uint64_t now_ns);
  void put_burst(uint64_t look_ticks);
  void put_returned(uint64_t now_ns);
  void put(uint32_t flow, uint32_t size_bytes, uint64_t entry_ns, uint64_t since_ns);
  void refuse(uint32_t flow) { ++counts_[flow].refused_pkts; }
  void note_due();
  uint32_t take_flow(uint32_t& size_bytes);
  void sift_down(size_t i);
  void rebuild_heap();
  [[nodiscard]] bool is_trace() const { return !spec_.trace.time_ns.empty(); }
  // Packets are always available, and only wait for room.
  [[nodiscard]] bool is_closed() const { return spec_.window_pkts != 0 && !is_always_full_; }
  [[nodiscard]] bool is_endless() const { return spec_.is_saturating || is_always_full_; }
  // Schedules fix the order of packets, but not their times.
  [[nodiscard]] bool keeps_order() const { return is_trace() || !spec_.is_saturating; }
  uint32_t take_share(uint32_t most);

  SourceSpec spec_;
  uint32_t first_flow_;
  PacketPool& pool_;
  Recorder& recorder_;
  std::vector<Stream> streams_;  // [0] is shared by flows without a rate of their own
  std::vector<uint32_t> heap_;   // streams by due time, then number
  std::vector<TrafficFlowCounts> counts_;
  std::vector<Slot> ring_;
  uint32_t ring_mask_ = 0;
  uint32_t ring_head_ = 0;
  uint32_t n_ring_ = 0;
  uint32_t n_seen_ = 0;  // how many of them the worker saw at its last look
  RingFill fill_;
  uint64_t left_pkts_;
  uint64_t ready_ticks_ = 0;  // when the generator's core is free again and has seen the last room
  bool was_full_ = false;
  bool is_started_ = false;
  uint64_t pkt_ticks_;
  uint64_t burst_ticks_;
  uint64_t look_ticks_;
  uint64_t store_ticks_;
  // for a closed loop: heap of the times at which next packets enter
  std::vector<uint64_t> returns_;
  Woken* woken_ = nullptr;
  uint32_t reader_ = 0;  // worker
  size_t trace_at_ = 0;
  Stalls stalls_;
  uint64_t due_ns_ = 0;  // due time of the schedule's next packet, once started
  bool is_always_full_ = false;
  double part_of_poll_ = 0;  // mean share of a poll that it fills; 0 = all that are there
  double credit_pkts_ = 0;   // packets owed by earlier polls
};

}  // namespace batchplane::sim
