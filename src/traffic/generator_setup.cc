// SPDX-License-Identifier: BSD-3-Clause
// generator_setup.cc - parameters, live settings and counters of the generator.
#include <algorithm>
#include <numeric>

#include "traffic/generator.h"

namespace batchplane::traffic {
namespace {

exec::ArrivalKind parse_kind(const std::string& name) {
  if (name == "poisson") return exec::ArrivalKind::kPoisson;
  return name == "on_off" ? exec::ArrivalKind::kOnOff : exec::ArrivalKind::kConstant;
}

std::vector<ParamSpec> make_params() {
  return with_traffic_params({
      {.name = "rate_pps",
       .type = ParamType::kFloat,
       .unit = "pps",
       .default_value = 100000.0,
       .help = "packets a second, over all flows without a rate of their own",
       .min = 0,
       .max = 1e9},
      {.name = "saturate",
       .type = ParamType::kBool,
       .default_value = false,
       .help = "as fast as the ring takes them; rates do not count, weights do"},
      {.name = "window_pkts",
       .unit = "pkts",
       .default_value = 0,
       .help = "simulations only: a closed loop of so many packets, each of which enters when one "
               "has left; 0 = none",
       .min = 0,
       .max = 65536},
      {.name = "arrivals",
       .type = ParamType::kString,
       .default_value = "constant",
       .help = "spacing of the arrivals",
       .choices = {"constant", "poisson", "on_off"}},
      {.name = "on_ns",
       .unit = "ns",
       .default_value = 1000000,
       .help = "on_off: time on",
       .min = 1,
       .max = 1e15},
      {.name = "off_ns",
       .unit = "ns",
       .default_value = 1000000,
       .help = "on_off: time off; rates are means over both",
       .min = 0,
       .max = 1e15},
      {.name = "burst_pkts",
       .unit = "pkts",
       .default_value = 1,
       .help = "packets of one flow that arrive together",
       .min = 1,
       .max = 65536},
      {.name = "max_late_ns",
       .unit = "ns",
       .default_value = 0,
       .help = "a packet that finds no room in the ring for longer is refused (counted, not sent); "
               "0 = it waits however long",
       .min = 0,
       .max = 1e15},
      {.name = "limit_pkts",
       .unit = "pkts",
       .default_value = 0,
       .help = "stop after this many; 0 = never",
       .min = 0},
      {.name = "is_on",
       .type = ParamType::kBool,
       .default_value = true,
       .help = "whether it sends from the start"},
  });
}

}  // namespace

const std::vector<ParamSpec>& generator_params() {
  static const std::vector<ParamSpec> kParams = make_params();
  return kParams;
}

Generator::Generator(const Args& args, BurstRing& ring, PacketPool& pool, ProducerCounts& told)
    : ring_(ring),
      pool_(pool),
      told_(told),
      flows_(parse_flows(args)),
      counts_(std::make_unique<FlowCounts[]>(flows_.size())),
      train_pkts_(args.u32("burst_pkts")),
      max_late_ns_(args.u64("max_late_ns")),
      left_pkts_(args.u64("limit_pkts") != 0 ? args.u64("limit_pkts") : ~0ULL),
      is_saturating_(args.flag("saturate")) {
  if (args.u32("window_pkts") != 0) {
    throw ConfigError("only a simulation can close the loop", args.where() + ".window_pkts",
                      "batchplane simulate, or leave it out");
  }
  set_on(args.flag("is_on"));
  const Order order = parse_order(args.string("order"));
  const uint64_t seed = args.u64("seed");
  exec::ArrivalSpec arrival{.kind = parse_kind(args.string("arrivals")),
                            .rate_per_s = args.number("rate_pps") / train_pkts_,
                            .on_ns = args.u64("on_ns"),
                            .off_ns = args.u64("off_ns")};
  std::vector<FlowSpec> sharing = flows_;
  bool any_shares = false;
  for (FlowSpec& flow : sharing) {
    if (flow.rate_pps > 0) flow.weight = 0;
    any_shares |= flow.weight > 0;
    weights_.push_back(flow.weight);
  }
  if (!any_shares) arrival.rate_per_s = 0;
  streams_.push_back(std::make_unique<Stream>(sharing, order, seed, 0, arrival));
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    if (flows_[f].rate_pps <= 0) continue;
    arrival.rate_per_s = flows_[f].rate_pps / train_pkts_;
    const std::vector<FlowSpec> alone = {flows_[f]};
    streams_.push_back(std::make_unique<Stream>(alone, order, seed + 2 * f + 2, f, arrival));
  }
  for (const auto& stream : streams_) {
    stream->rate_pps = stream->arrivals.spec().rate_per_s * train_pkts_;
    const uint32_t longest = stream->frames.max_len_bytes();
    if (longest <= pool.data_bytes()) continue;
    throw ConfigError("frames of " + std::to_string(longest) + " bytes do not fit packets of " +
                          std::to_string(pool.data_bytes()),
                      args.where(), "make frames smaller, or the packets of the pool larger");
  }
}

void Generator::set_rate(double rate_pps) {
  if (rate_pps < 0 || rate_pps > 1e9) {
    throw ConfigError("a rate of " + std::to_string(rate_pps) + " pps", "rate_pps", "0 to 1e9");
  }
  streams_.front()->rate_pps.store(rate_pps, std::memory_order_relaxed);
  change_.fetch_add(1, std::memory_order_release);
}

void Generator::set_flow_rate(const std::string& flow, double rate_pps) {
  for (const auto& stream : streams_) {
    if (stream == streams_.front() || flows_[stream->first_flow].name != flow) continue;
    stream->rate_pps.store(std::max(0.0, rate_pps), std::memory_order_relaxed);
    change_.fetch_add(1, std::memory_order_release);
    return;
  }
  throw ConfigError("no flow '" + flow + "' with a rate of its own", "flow",
                    "give the flow a rate_pps when the generator is made");
}

void Generator::set_weights(const std::vector<double>& weights) {
  if (weights.size() != flows_.size()) {
    throw ConfigError(
        std::to_string(weights.size()) + " weights for " + std::to_string(flows_.size()) + " flows",
        "weights", "give one a flow");
  }
  double sum = 0;
  for (const double weight : weights) sum += weight < 0 ? -1e18 : weight;
  if (sum <= 0) {
    throw ConfigError("weights must not be negative, nor all 0", "weights",
                      "switch it off instead");
  }
  {
    const std::lock_guard lock(weights_mutex_);
    weights_ = weights;
    are_weights_new_ = true;
  }
  change_.fetch_add(1, std::memory_order_release);
}

GeneratorStats Generator::stats() const {
  GeneratorStats stats;
  for (size_t f = 0; f < flows_.size(); ++f) {
    stats.sent_pkts += counts_[f].sent_pkts.load(std::memory_order_relaxed);
    stats.refused_pkts += counts_[f].refused_pkts.load(std::memory_order_relaxed);
  }
  stats.starved_polls = starved_polls_.load(std::memory_order_relaxed);
  stats.late_ns = late_ns_.load(std::memory_order_relaxed);
  stats.held_ups = held_ups();
  stats.held_up_ns = held_up_ns();
  stats.is_on = is_on_.load(std::memory_order_relaxed);
  stats.is_saturating = is_saturating_.load(std::memory_order_relaxed);
  if (!stats.is_saturating) {
    for (const auto& stream : streams_) {
      stats.rate_pps += stream->rate_pps.load(std::memory_order_relaxed);
    }
  }
  return stats;
}

std::vector<GeneratorFlowStats> Generator::flow_stats() const {
  std::vector<GeneratorFlowStats> all;
  for (size_t f = 0; f < flows_.size(); ++f) {
    all.push_back({flows_[f].name, counts_[f].sent_pkts.load(std::memory_order_relaxed),
                   counts_[f].sent_bytes.load(std::memory_order_relaxed),
                   counts_[f].refused_pkts.load(std::memory_order_relaxed)});
  }
  return all;
}

Dict Generator::saved_params() const {
  return {{"rate_pps", streams_.front()->rate_pps.load(std::memory_order_relaxed)},
          {"is_on", is_on_.load(std::memory_order_relaxed)},
          {"saturate", is_saturating_.load(std::memory_order_relaxed)}};
}

}  // namespace batchplane::traffic
