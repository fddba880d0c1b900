// SPDX-License-Identifier: BSD-3-Clause
// pace.cc - sets each packet's earliest departure, so that a flow's packets leave at its rate: a
// scheduler with `discipline: calendar` behind it releases them then.
//
// As in Linux's EDT model (fq, and Carousel: Saeed et al., 2017). It never holds a packet.
//
// in: 1   out: 1   drops: pace_horizon
// state: when the next packet of each flow may leave; rate, delay and horizon, editable live
#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "core/module/register.h"
#include "egress/discipline/descriptor.h"
#include "egress/discipline/pace.h"
#include "modules/common/flow_tree.h"
#include "modules/common/item_syntax.h"
#include "modules/common/live_value.h"
#include "modules/egress/egress_flows.h"
#include "modules/egress/flow_rule.h"

namespace batchplane {
namespace {

const DropReason kPaceHorizon{
    "pace_horizon", "the packet's departure would be farther ahead than the horizon of a pace",
    "its flow sends more than rate_bps: raise that, or horizon_us if it only bursts"};

struct PaceSettings {
  uint64_t units_per_byte = 0;  // 0: no rate
  uint32_t delay_us = 0;
  uint32_t jitter_us = 0;
  uint32_t horizon_us = 0;
};

const std::vector<ParamSpec>& live_pace_params() {
  constexpr double kMaxUs = egress::kMaxDepartureAheadNs / 1e3;
  static const std::vector<ParamSpec> kParams = {
      {.name = "rate_bps",
       .type = ParamType::kInt,
       .unit = "bps",
       .default_value = 0,
       .help = "rate of each flow; 0: no limit",
       .min = 0,
       .max = static_cast<double>(egress::kMaxPaceBps)},
      {.name = "delay_us",
       .unit = "us",
       .default_value = 0,
       .help = "added to each packet's departure",
       .min = 0,
       .max = kMaxUs},
      {.name = "jitter_us",
       .unit = "us",
       .default_value = 0,
       .help = "plus a random time of up to this, for each packet",
       .min = 0,
       .max = kMaxUs},
      {.name = "horizon_us",
       .unit = "us",
       .default_value = 2'000'000,
       .help = "a packet whose departure is farther ahead is dropped",
       .min = 1,
       .max = kMaxUs}};
  return kParams;
}

PaceSettings pace_settings(const Args& args) {
  const uint64_t rate_bps = args.u64("rate_bps");
  if (rate_bps != 0 && rate_bps < egress::kMinPaceBps) {
    throw ConfigError("the rate is too low", args.where() + ".rate_bps",
                      "0 for none, or at least " + std::to_string(egress::kMinPaceBps));
  }
  const PaceSettings settings{
      .units_per_byte = rate_bps == 0 ? 0 : egress::time_units_per_byte(rate_bps),
      .delay_us = args.u32("delay_us"),
      .jitter_us = args.u32("jitter_us"),
      .horizon_us = args.u32("horizon_us")};
  if (settings.delay_us + settings.jitter_us > settings.horizon_us) {
    throw ConfigError("delay_us and jitter_us are more than horizon_us", args.where(),
                      "raise horizon_us: packets that leave later than that are dropped");
  }
  return settings;
}

class Pacer final : public Module {
 public:
  explicit Pacer(const Args& args)
      : flow_rule_(args),
        next_(args.u32("max_flows")),
        live_(pace_settings(args), args.env().quiescence),
        values_(values_of(live_pace_params(), args)),
        has_horizon_(!args.env().repeats_packets) {}

  void process(Context& ctx, Batch& batch) noexcept {
    const PaceSettings settings = live_.read();
    const uint64_t now_ns = ctx.now_ns;
    const uint64_t latest_ns = has_horizon_ ? now_ns + settings.horizon_us * 1000ULL : ~0ULL;
    const uint32_t n = batch.size_pkts;
    egress::FineTime* of[exec::kMaxBatchPkts];
    for (uint32_t i = 0; i < n; ++i) {
      of[i] = &next_[flow_of(*batch[i])];
      __builtin_prefetch(of[i], 1);
    }
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *batch[i];
      egress::FineTime& next = *of[i];
      uint64_t at_ns = now_ns + settings.delay_us * 1000ULL;
      if (settings.units_per_byte != 0 && next.ceil_ns() > now_ns) at_ns += next.ceil_ns() - now_ns;
      if (settings.jitter_us != 0) at_ns += rng_.below(settings.jitter_us) * 1000ULL;
      if (at_ns > latest_ns) [[unlikely]] {
        ctx.drop(batch, i, kPaceHorizon);
        continue;
      }
      next.raise_to(now_ns);
      next.add_units(pkt.len_bytes() * settings.units_per_byte);
      pkt.set_departure_ticks(departure_ticks_of(at_ns));
    }
  }

  // Packets on their way keep their times, and those behind them go on from there.
  Value command(const std::string& verb, const Value& args) override {
    if (verb != "set") return Module::command(verb, args);
    const Args checked = checked_set(live_pace_params(), values_, args);
    live_.set(pace_settings(checked));
    values_ = values_of(live_pace_params(), checked);
    return show();
  }
  [[nodiscard]] Value show() const override { return values_; }
  [[nodiscard]] Dict saved_params() const override { return values_; }

  void adopt(Module& old) noexcept override {
    auto& other = static_cast<Pacer&>(old);
    if (flow_rule_ == other.flow_rule_ && next_.size() == other.next_.size()) {
      next_.swap(other.next_);
    }
  }

 private:
  // A mark's generation does not count. Numbers beyond the flows share them.
  [[nodiscard]] uint32_t flow_of(Packet& pkt) const noexcept {
    const uint32_t number = flow_rule_.number_of(pkt) & ((1U << kMarkFlowBits) - 1);
    const auto n_flows = static_cast<uint32_t>(next_.size());
    return number < n_flows ? number : number % n_flows;
  }

  const FlowRule flow_rule_;
  std::vector<egress::FineTime> next_;  // by flow. Worker
  LiveValue<PaceSettings> live_;
  Dict values_;
  const bool has_horizon_;  // not while modules are timed: packets come faster than they would
  Rng rng_{1};
};

std::vector<ParamSpec> pace_params() {
  std::vector<ParamSpec> params = joined(flow_rule_params(), live_pace_params());
  params.push_back({.name = "max_flows",
                    .default_value = 1024,
                    .help = "number of flows; higher flow numbers share them",
                    .min = 1,
                    .max = kMaxEgressFlows});
  return params;
}

const Register<Pacer> kPace{{
    .kind = "pace",
    .state = StateOf::kOneOwner,
    .help =
        "Sets when packets may leave, by a rate for each flow; an egress keeps them until then.",
    .params = pace_params(),
    .drops = {&kPaceHorizon},
    .notes = "It holds no packet: put an egress with discipline: calendar behind it. Other "
             "disciplines ignore the times. Bytes are those of the frame. Live command: set "
             "{rate_bps, delay_us, "
             "jitter_us, horizon_us}, some or all.",
}};

}  // namespace
}  // namespace batchplane
