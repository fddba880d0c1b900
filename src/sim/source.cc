// SPDX-License-Identifier: BSD-3-Clause
#include "sim/source.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "sim/clock.h"

namespace batchplane::sim {
Source::Source(SourceSpec spec, uint32_t first_flow, PacketPool& pool, Recorder& recorder)
    : spec_(std::move(spec)),
      first_flow_(first_flow),
      pool_(pool),
      recorder_(recorder),
      counts_(spec_.flows.size()),
      ring_(std::bit_ceil(spec_.ring_pkts)),
      ring_mask_(static_cast<uint32_t>(ring_.size() - 1)),
      left_pkts_(spec_.limit_pkts),
      pkt_ticks_(to_ticks(spec_.pkt_ns)) {
  exec::ArrivalSpec arrival{.kind = spec_.arrivals,
                            .rate_per_s = spec_.rate_pps / spec_.burst_pkts,
                            .on_ns = spec_.on_ns,
                            .off_ns = spec_.off_ns};
  std::vector<double> weights;
  double shared = 0;
  for (const TrafficFlow& flow : spec_.flows) {
    weights.push_back(flow.rate_pps > 0 ? 0 : flow.weight);
    shared += weights.back();
  }
  if (shared <= 0) {
    arrival.rate_per_s = 0;
    std::ranges::fill(weights, 1.0);
  }
  streams_.push_back(
      {exec::Turns(spec_.order, spec_.seed), exec::Arrivals<Rng>(arrival, Rng(spec_.seed + 1)), 0});
  streams_.back().turns.set_weights(weights);
  for (uint32_t f = 0; f < spec_.flows.size(); ++f) {
    if (spec_.flows[f].rate_pps <= 0) continue;
    arrival.rate_per_s = spec_.flows[f].rate_pps / spec_.burst_pkts;
    const uint64_t seed = spec_.seed + 2ULL * f + 2;
    streams_.push_back(
        {exec::Turns(spec_.order, seed), exec::Arrivals<Rng>(arrival, Rng(seed + 1)), f});
    streams_.back().turns.set_weights({1.0});
  }
}

void Source::rebuild_heap() {
  heap_.clear();
  for (uint32_t i = 0; i < streams_.size(); ++i) heap_.push_back(i);
  for (size_t i = heap_.size(); i-- > 0;) sift_down(i);
}

void Source::sift_down(size_t i) {
  const auto is_before = [&](uint32_t a, uint32_t b) {
    const uint64_t due_a = streams_[a].arrivals.due_ns();
    const uint64_t due_b = streams_[b].arrivals.due_ns();
    return due_a != due_b ? due_a < due_b : a < b;
  };
  for (;;) {
    size_t least = i;
    for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap_.size(); ++child) {
      if (is_before(heap_[child], heap_[least])) least = child;
    }
    if (least == i) return;
    std::swap(heap_[i], heap_[least]);
    i = least;
  }
}

uint64_t Source::due_ns() const {
  if (is_trace()) {
    return trace_at_ < spec_.trace.time_ns.size() ? spec_.trace.time_ns[trace_at_] : exec::kNeverNs;
  }
  return streams_[heap_.front()].arrivals.due_ns();
}

// The flow of the packet that is due next, and one step on in the schedule.
uint32_t Source::take_flow(uint32_t& size_bytes) {
  if (is_trace()) {
    size_bytes = spec_.trace.size_bytes[trace_at_];
    return spec_.trace.flow[trace_at_++];
  }
  Stream& stream = streams_[spec_.is_saturating ? 0 : heap_.front()];
  uint32_t flow = stream.train_flow;
  if (spec_.is_saturating || stream.train_left_pkts == 0) {
    stream.turns.each_next(1, [&](uint32_t, uint32_t turn) { flow = stream.first_flow + turn; });
    stream.train_flow = flow;
    stream.train_left_pkts = spec_.burst_pkts;
  }
  if (!spec_.is_saturating && --stream.train_left_pkts == 0) {
    stream.arrivals.advance();
    sift_down(0);
  }
  size_bytes = spec_.flows[flow].size_bytes;
  return flow;
}

void Source::put(uint32_t flow, uint32_t size_bytes, uint64_t entry_ns, uint64_t since_ns) {
  Packet* const pkt = pool_.take();
  pkt->entry_ns = entry_ns;
  pkt->task_entry_ns = entry_ns;
  pkt->flow = first_flow_ + flow;
  pkt->size_bytes = size_bytes;
  pkt->path_state = 0;
  pkt->trace_id = kUntraced;
  if (recorder_.wants_packets()) [[unlikely]]
    pkt->trace_id = recorder_.add_packet({first_flow_ + flow, entry_ns, 0, 0, false});
  ring_[(ring_head_ + n_ring_++) & ring_mask_] = {pkt, since_ns};
  counts_[flow].sent_pkts += 1;
  counts_[flow].sent_bytes += size_bytes;
}

// Fills the ring with what the generator could put there until now_ns.
void Source::produce(uint64_t now_ns) {
  if (!spec_.is_on || left_pkts_ == 0) return;
  if (!is_started_) {
    for (Stream& stream : streams_) stream.arrivals.start(now_ns);
    rebuild_heap();
    is_started_ = true;
  }
  const uint64_t now_ticks = now_ns << kTicksPerNsLog2;
  // Room came with the last poll, and not before.
  if (was_full_) ready_ticks_ = std::max(ready_ticks_, now_ticks);
  was_full_ = false;
  while (left_pkts_ != 0) {
    const uint64_t due = spec_.is_saturating ? 0 : due_ns();
    if (due > now_ns) return;
    const uint64_t start_ticks = std::max(due << kTicksPerNsLog2, ready_ticks_);
    const uint64_t start_ns = start_ticks >> kTicksPerNsLog2;
    if (n_ring_ == spec_.ring_pkts && !(spec_.drops_when_full && !spec_.is_saturating)) {
      was_full_ = true;
      return;
    }
    if (start_ns > now_ns) return;
    uint32_t size_bytes = 0;
    const uint32_t flow = take_flow(size_bytes);
    const bool is_late =
        spec_.max_late_ns != 0 && !spec_.is_saturating && start_ns - due > spec_.max_late_ns;
    if (n_ring_ == spec_.ring_pkts || is_late) {
      refuse(flow);
      continue;
    }
    ready_ticks_ = start_ticks + pkt_ticks_;
    if (left_pkts_ != ~0ULL) --left_pkts_;
    put(flow, size_bytes, spec_.is_saturating ? start_ns : due, start_ns);
  }
}

uint32_t Source::poll(Packet** pkts, uint32_t most, uint64_t now_ns) {
  produce(now_ns);
  uint32_t n = 0;
  while (n < most && n_ring_ != 0 && ring_[ring_head_].since_ns <= now_ns) {
    Packet* const pkt = ring_[ring_head_].pkt;
    pkts[n++] = pkt;
    ring_head_ = (ring_head_ + 1) & ring_mask_;
    --n_ring_;
    if (pkt->trace_id != kUntraced) [[unlikely]]
      recorder_.packets[pkt->trace_id].poll_ns = now_ns;
  }
  // What waited for room is put there now.
  if (n != 0 && was_full_ && !spec_.is_inline) produce(now_ns);
  return n;
}

uint64_t Source::next_ns() {
  if (n_ring_ != 0) return ring_[ring_head_].since_ns;
  if (!spec_.is_on || left_pkts_ == 0) return exec::kNeverNs;
  if (!is_started_) return 0;
  const uint64_t ready_ns = (ready_ticks_ + kTicksPerNs - 1) >> kTicksPerNsLog2;
  if (spec_.is_saturating) return ready_ns;
  const uint64_t due = due_ns();
  return due == exec::kNeverNs ? due : std::max(due, ready_ns);
}

void Source::set_rate(double rate_pps, uint64_t now_ns) {
  spec_.rate_pps = rate_pps;
  streams_.front().arrivals.set_rate(rate_pps / spec_.burst_pkts, now_ns);
  rebuild_heap();
}

void Source::set_flow_rate(const std::string& flow, double rate_pps, uint64_t now_ns) {
  for (size_t i = 1; i < streams_.size(); ++i) {
    TrafficFlow& mine = spec_.flows[streams_[i].first_flow];
    if (mine.name != flow) continue;
    mine.rate_pps = rate_pps;
    streams_[i].arrivals.set_rate(rate_pps / spec_.burst_pkts, now_ns);
    rebuild_heap();
    return;
  }
  throw ConfigError("no flow '" + flow + "' with a rate of its own", "generators." + spec_.name,
                    "give the flow a rate_pps in the pipeline");
}

void Source::set_weights(const std::vector<double>& weights) {
  if (weights.size() != spec_.flows.size()) {
    throw ConfigError(std::to_string(weights.size()) + " weights for " +
                          std::to_string(spec_.flows.size()) + " flows",
                      "generators." + spec_.name, "give one a flow");
  }
  double sum = 0;
  for (const double weight : weights) sum += weight >= 0 ? weight : -1e18;
  if (!(sum > 0)) {
    throw ConfigError("weights must not be negative, nor all 0", "generators." + spec_.name,
                      "switch it off instead");
  }
  streams_.front().turns.set_weights(weights);
}

void Source::set_on(bool is_on, uint64_t now_ns) {
  if (is_on == spec_.is_on) return;
  produce(now_ns);  // what was due before
  spec_.is_on = is_on;
  is_started_ = false;
  ready_ticks_ = std::max(ready_ticks_, now_ns << kTicksPerNsLog2);
}

void Source::set_saturating(bool is_saturating, uint64_t now_ns) {
  if (is_saturating == spec_.is_saturating) return;
  produce(now_ns);
  spec_.is_saturating = is_saturating;
  is_started_ = false;
  ready_ticks_ = std::max(ready_ticks_, now_ns << kTicksPerNsLog2);
}

Value Source::show() const {
  List flows;
  uint64_t sent = 0;
  uint64_t refused = 0;
  for (size_t f = 0; f < counts_.size(); ++f) {
    sent += counts_[f].sent_pkts;
    refused += counts_[f].refused_pkts;
    flows.emplace_back(Dict{{"name", spec_.flows[f].name},
                            {"sent_pkts", counts_[f].sent_pkts},
                            {"sent_bytes", counts_[f].sent_bytes},
                            {"refused_pkts", counts_[f].refused_pkts}});
  }
  double rate_pps = 0;
  for (const Stream& stream : streams_) rate_pps += stream.arrivals.spec().rate_per_s;
  return Dict{{"name", spec_.name},
              {"port", spec_.port},
              {"sent_pkts", sent},
              {"refused_pkts", refused},
              {"starved_polls", 0},
              {"rate_pps",
               spec_.is_saturating || is_trace() ? Value() : Value(rate_pps * spec_.burst_pkts)},
              {"is_on", spec_.is_on},
              {"is_saturating", spec_.is_saturating},
              {"late_ns", 0},
              {"flows", std::move(flows)}};
}

}  // namespace batchplane::sim
