// SPDX-License-Identifier: BSD-3-Clause
// source.h - a generator and the bounded ring that it fills, or a recorded trace, or an inline
// source.
//
// The same schedules, orders and seeds as src/traffic. Packets exist from when they are put into
// the ring; what waits for room in it is only a schedule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/value.h"
#include "exec/arrivals.h"
#include "exec/demand.h"
#include "exec/turns.h"
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
  std::vector<uint64_t> time_ns;  // not falling
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
  bool drops_when_full = false;  // else packets wait for room, as the generator makes them wait
  uint64_t max_late_ns = 0;      // waiting for longer: refused; 0 = never
  uint64_t limit_pkts = ~0ULL;
  // A closed loop: so many packets are inside, and each that leaves lets the next one in. The first
  // ones enter one by one, at rate_pps, and none takes time to make. 0: none.
  uint32_t window_pkts = 0;
  uint32_t ring_pkts = 64;
  bool is_inline = false;  // packets are made as the worker polls; ring_pkts is the batch then
  double pkt_ns = 0;       // what making one takes the generator's core
  double burst_ns = 0;     // and putting into the ring what is due together
  double look_ns = 0;      // how long until it looks again, having found nothing to do; 0 = at once
  double store_ns = 0;     // from a burst's last word until the worker can see it
  StallSpec stalls;        // of the core that makes them
  TraceArrivals trace;     // instead of the schedules when it has packets
};

struct TrafficFlowCounts {
  uint64_t sent_pkts = 0;
  uint64_t sent_bytes = 0;
  uint64_t refused_pkts = 0;  // too late, or the ring was full
};

// Owner: the simulation; polled by one simulated worker.
class Source {
 public:
  // `first_flow`: number of its first traffic flow over all sources.
  Source(SourceSpec spec, uint32_t first_flow, PacketPool& pool, Recorder& recorder);

  // Up to `most` packets that are in the ring at now_ns.
  uint32_t poll(Packet** pkts, uint32_t most, uint64_t now_ns);
  // What the last poll took is out of the ring at now_ns; the next poll is later.
  void note_room(uint64_t now_ns);
  // When the next packet can be polled; kNeverNs when none will come. As of the last poll.
  [[nodiscard]] uint64_t next_ns();

  void set_rate(double rate_pps, uint64_t now_ns);
  // Throws ConfigError when the flow has no rate of its own.
  void set_flow_rate(const std::string& flow, double rate_pps, uint64_t now_ns);
  void set_weights(const std::vector<double>& weights);
  void set_on(bool is_on, uint64_t now_ns);
  void set_saturating(bool is_saturating, uint64_t now_ns);
  // Of a closed loop: a packet of it has left the pipeline.
  void note_left(uint64_t now_ns);
  // For plans, before the first poll: what is next in the schedule is in the ring as soon as there
  // is room, whenever it would be due, and whatever making it takes. Less than `max_pkts`: a poll
  // brings so many in the mean.
  void fill_always(double poll_pkts, uint32_t max_pkts);
  // What it offers by its schedule; 0 = it saturates.
  [[nodiscard]] double offered_pps() const;

  [[nodiscard]] const SourceSpec& spec() const { return spec_; }
  [[nodiscard]] uint32_t first_flow() const { return first_flow_; }
  [[nodiscard]] uint64_t held_pkts() const { return n_ring_; }
  // Of a trace that is replayed at its times: what has not come yet, or waits for room.
  [[nodiscard]] uint64_t unreplayed_pkts() const {
    if (!is_trace() || is_endless()) return 0;
    return std::min<uint64_t>(spec_.trace.time_ns.size() - trace_at_, left_pkts_);
  }
  [[nodiscard]] const std::vector<TrafficFlowCounts>& counts() const { return counts_; }
  // What has come until now_ns, of which the task took taken_pkts.
  [[nodiscard]] exec::InputCounts demand(uint64_t taken_pkts, uint64_t now_ns);
  void begin_fill_period() { fill_.begin_period(); }
  [[nodiscard]] Value show() const;

 private:
  struct Stream {
    exec::Turns turns;
    exec::Arrivals<Rng> arrivals;
    uint32_t first_flow;  // what turn 0 stands for
    exec::DueCount<Rng> due = {};
    uint32_t train_flow = 0;
    uint32_t train_left_pkts = 0;
  };
  struct Slot {
    Packet* pkt;
    uint64_t since_ns;  // in the ring from then on
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
  // There is always another packet, and only room is waited for.
  [[nodiscard]] bool is_closed() const { return spec_.window_pkts != 0 && !is_always_full_; }
  [[nodiscard]] bool is_endless() const { return spec_.is_saturating || is_always_full_; }
  // Schedules say what follows what, and not when.
  [[nodiscard]] bool keeps_order() const { return is_trace() || !spec_.is_saturating; }
  uint32_t take_share(uint32_t most);

  SourceSpec spec_;
  uint32_t first_flow_;
  PacketPool& pool_;
  Recorder& recorder_;
  std::vector<Stream> streams_;  // [0] is shared by flows without own rate
  std::vector<uint32_t> heap_;   // streams by due time, then number
  std::vector<TrafficFlowCounts> counts_;
  std::vector<Slot> ring_;
  uint32_t ring_mask_ = 0;
  uint32_t ring_head_ = 0;
  uint32_t n_ring_ = 0;
  uint32_t n_seen_ = 0;  // of them, by the worker, when it looked last
  RingFill fill_;
  uint64_t left_pkts_;
  uint64_t ready_ticks_ = 0;  // the generator's core is free again, and has seen the last room
  bool was_full_ = false;
  bool is_started_ = false;
  uint64_t pkt_ticks_;
  uint64_t burst_ticks_;
  uint64_t look_ticks_;
  uint64_t store_ticks_;
  std::vector<uint64_t> returns_;  // of a closed loop: when the next packets enter, a heap
  size_t trace_at_ = 0;
  Stalls stalls_;
  uint64_t due_ns_ = 0;  // when the schedule's next packet is due, once it is started
  bool is_always_full_ = false;
  double poll_pkts_ = 0;    // that a poll brings in the mean; 0 = all that are there
  double credit_pkts_ = 0;  // of them: what polls before have not brought
};

}  // namespace batchplane::sim
