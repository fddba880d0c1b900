// SPDX-License-Identifier: BSD-3-Clause
// pace.cc - sets each packet's earliest departure, so that a flow's packets leave at its rate: a
// scheduler with `discipline: calendar` behind it releases them then.
//
// in: 1   out: 1   drops: pace_horizon
// state: when the next packet of each flow may leave; rate, delay and horizon, editable live
#include <utility>
#include <vector>

#include "core/module/register.h"
#include "egress/discipline/departures.h"
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
       .default_value = egress::DepartureParams{}.horizon_us,
       .help = "a packet whose departure is farther ahead is dropped",
       .min = 1,
       .max = kMaxUs}};
  return kParams;
}

egress::DepartureRule pace_rule(const Args& args) {
  return egress::departure_rule({.rate_bps = args.u64("rate_bps"),
                                 .delay_us = args.u32("delay_us"),
                                 .jitter_us = args.u32("jitter_us"),
                                 .horizon_us = args.u32("horizon_us")},
                                args.where());
}

class Pacer final : public Module {
 public:
  explicit Pacer(const Args& args)
      : flow_rule_(args),
        departures_(args.u32("max_flows")),
        live_(pace_rule(args), args.env().quiescence),
        values_(values_of(live_pace_params(), args)),
        has_horizon_(!args.env().repeats_packets) {}

  void process(Context& ctx, Batch& batch) noexcept {
    egress::DepartureRule rule = live_.read();
    if (!has_horizon_) rule.horizon_us = 0;
    const uint32_t n = batch.size_pkts;
    uint32_t flows[exec::kMaxBatchPkts];
    for (uint32_t i = 0; i < n; ++i) {
      flows[i] = scheduled_flow(*batch[i]);
      departures_.prefetch(flows[i]);
    }
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *batch[i];
      const uint64_t at_ns = departures_.next_ns(flows[i], pkt.len_bytes(), ctx.now_ns, rule);
      if (at_ns == egress::Departures::kBeyondHorizon) [[unlikely]] {
        ctx.drop(batch, i, kPaceHorizon);
        continue;
      }
      pkt.set_departure_ticks(egress::departure_ticks_of(at_ns));
    }
  }

  // Packets on their way keep their times, and those behind them go on from there.
  Value command(const std::string& verb, const Value& args) override {
    if (verb != "set") return Module::command(verb, args);
    const Args checked = checked_set(live_pace_params(), values_, args);
    live_.set(pace_rule(checked));
    values_ = values_of(live_pace_params(), checked);
    return show();
  }
  [[nodiscard]] Value show() const override { return values_; }
  [[nodiscard]] Dict saved_params() const override { return values_; }

  void adopt(Module& old) noexcept override {
    auto& other = static_cast<Pacer&>(old);
    if (flow_rule_ == other.flow_rule_ && departures_.n_flows() == other.departures_.n_flows()) {
      std::swap(departures_, other.departures_);
    }
  }

  // A mark's generation does not count.
  [[nodiscard]] uint32_t scheduled_flow(Packet& pkt) const noexcept override {
    return departures_.flow_of(flow_rule_.number_of(pkt) & ((1U << kMarkFlowBits) - 1));
  }

 private:
  const FlowRule flow_rule_;
  egress::Departures departures_;  // worker
  LiveValue<egress::DepartureRule> live_;
  Dict values_;
  const bool has_horizon_;  // not while modules are timed: packets come faster than they would
};

std::vector<ParamSpec> pace_params() {
  std::vector<ParamSpec> params = joined(flow_rule_params(), live_pace_params());
  params.push_back({.name = "max_flows",
                    .default_value = egress::Departures::kDefaultFlows,
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
