// SPDX-License-Identifier: BSD-3-Clause
#include "sim/source.h"

#include <algorithm>
#include <bit>
#include <cmath>

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
      pkt_ticks_(to_ticks(spec_.costs.per_pkt_ns)),
      burst_ticks_(spec_.is_inline ? 0 : to_ticks(spec_.costs.per_burst_ns)),
      look_ticks_(spec_.is_inline ? 0 : to_ticks(spec_.costs.look_ns)),
      store_ticks_(to_ticks(spec_.costs.store_ns)),
      stalls_(spec_.is_inline ? StallSpec{} : spec_.stalls, spec_.seed * 41 + first_flow) {
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
  produce(now_ns);  // packets due before the change
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

void Source::fill_always(double part, uint32_t max_pkts) {
  is_always_full_ = true;
  spec_.is_on = true;
  spec_.drops_when_full = false;
  left_pkts_ = ~0ULL;
  pkt_ticks_ = burst_ticks_ = look_ticks_ = store_ticks_ = 0;
  stalls_ = {};
  if (part >= 1) return;
  // After a poll the ring holds at most the arrivals since the previous poll.
  part_of_poll_ = part;
  spec_.ring_pkts = std::min(spec_.ring_pkts, static_cast<uint32_t>(std::ceil(part * max_pkts)));
}

void Source::fill_evenly(double rate_pps) {
  fill_always(1, 1);
  spec_.is_on = rate_pps > 0;
  if (spec_.is_on) pkt_ticks_ = std::max<uint64_t>(1, to_ticks(1e9 / rate_pps));
}

double Source::offered_pps() const {
  if (spec_.is_saturating) return 0;
  if (is_trace()) {
    const auto span_ns = static_cast<double>(std::max<uint64_t>(1, spec_.trace.time_ns.back()));
    return static_cast<double>(spec_.trace.time_ns.size()) * 1e9 / span_ns;
  }
  bool any_shares = false;
  double rate_pps = 0;
  for (const TrafficFlow& flow : spec_.flows) {
    rate_pps += flow.rate_pps;
    any_shares |= flow.rate_pps <= 0;
  }
  return any_shares ? rate_pps + spec_.rate_pps : rate_pps;
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
              {"held_ups", 0},
              {"held_up_ns", 0},
              {"rate_pps",
               spec_.is_saturating || is_trace() ? Value() : Value(rate_pps * spec_.burst_pkts)},
              {"is_on", spec_.is_on},
              {"is_saturating", spec_.is_saturating},
              {"late_ns", 0},
              {"flows", std::move(flows)}};
}

}  // namespace batchplane::sim
