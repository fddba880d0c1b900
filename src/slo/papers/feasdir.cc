// SPDX-License-Identifier: BSD-3-Clause
// feasdir.cc - the method of feasible directions.
#include <algorithm>
#include <cmath>

#include "slo/papers/baseline.h"
#include "slo/papers/controllers.h"

namespace batchplane::slo {
namespace {

// A task whose input is hardly ever empty: time that a trigger saves becomes throughput, and all
// buffers fill sooner.
constexpr double kSaturatedShare = 0.95;

class FeasDir final : public Baseline {
 public:
  using Baseline::Baseline;

 private:
  MeasureOptions next_options() override { return {.absorb = Absorb::kUnbuffered}; }

  void decide(const Snapshot& snapshot, PeriodState& state) override {
    const size_t n = state.segments.size();
    for (size_t tried = 0; tried < n; ++tried) {
      const auto s = static_cast<uint32_t>(turn_++ % n);
      if (state.segments[s].is_frozen || state.segments[s].rate_pkts_per_ns <= 0) continue;
      decide_one(snapshot, state, s);
      return;
    }
  }

  void decide_one(const Snapshot& snapshot, PeriodState& state, uint32_t s) {
    const SegmentPeriod& segment = state.segments[s];
    const bool is_almost_full =
        segment.arriving_pkts >= settings().push_ratio * topology().model.batch_limit_pkts;
    if (segment.trigger_pkts == 0) {
      if (!is_almost_full) insert(state, s);
    } else if (is_almost_full) {
      state.set_trigger(s, 0, "push");
    } else if (segment.trigger_pkts <= segment.min_pkts && worst_excess(state, s) > 0) {
      state.set_trigger_and_slack(topology(), s, 0, "recover");
    } else {
      follow_gradient(snapshot, state, s);
    }
  }

  void insert(PeriodState& state, uint32_t s) {
    const SegmentPeriod& segment = state.segments[s];
    const uint32_t target_pkts = std::min(segment.min_pkts, max_pkts(state, s));
    if (target_pkts <= segment.arriving_pkts) return;
    if (target_pkts * segment.delay_per_pkt_ns >= state.headroom_ns(topology(), s)) return;
    state.set_trigger_and_slack(topology(), s, target_pkts, "pull");
  }

  // How far the worst flow through a segment exceeds the tolerance, as a share of its SLO; 0 when
  // none does.
  [[nodiscard]] double worst_excess(const PeriodState& state, uint32_t s) const {
    double worst = 0;
    for (const uint32_t f : topology().flows_through[s]) {
      const FlowNow& flow = state.flows[f];
      if (!flow.has_slo()) continue;
      worst = std::max(worst, flow.delay_ns / flow.slo_ns - 1 - settings().tolerance);
    }
    return worst;
  }

  // A buffer must not fill more slowly than the next buffers in use behind it.
  [[nodiscard]] uint32_t max_pkts(const PeriodState& state, uint32_t s) const {
    double most = topology().model.batch_limit_pkts;
    std::vector<uint32_t> ahead = topology().next[s];
    for (size_t i = 0; i < ahead.size(); ++i) {
      const SegmentPeriod& behind = state.segments[ahead[i]];
      if (behind.trigger_pkts == 0) {
        for (const uint32_t next : topology().next[ahead[i]]) {
          if (std::ranges::find(ahead, next) == ahead.end()) ahead.push_back(next);
        }
      } else if (behind.rate_pkts_per_ns > 0) {
        most = std::min(most, behind.trigger_pkts * state.segments[s].rate_pkts_per_ns /
                                  behind.rate_pkts_per_ns);
      }
    }
    return static_cast<uint32_t>(most);
  }

  [[nodiscard]] bool is_saturated(const Snapshot& snapshot, uint32_t s) const {
    const uint32_t task = topology().model.modules[topology().segments[s].head].task;
    const auto busy_ns = static_cast<double>(snapshot.tasks[task].busy_ns);
    const auto idle_ns = static_cast<double>(snapshot.tasks[task].idle_ns);
    return busy_ns > 0 && busy_ns >= kSaturatedShare * (busy_ns + idle_ns);
  }

  // What one more packet in this trigger adds to a flow's delay: fill and service on the flow's own
  // path. At saturation a larger trigger also shortens the time per packet, and with it the fill of
  // every buffer on the path: all rates rise by the same factor.
  [[nodiscard]] double delay_gradient_ns(const Snapshot& snapshot, const PeriodState& state,
                                         uint32_t s, uint32_t flow) const {
    const SegmentPeriod& segment = state.segments[s];
    const std::vector<uint32_t>& path = topology().segments_on[flow];
    double gradient_ns = std::ranges::find(path, s) != path.end() ? segment.delay_per_pkt_ns : 0.0;
    if (!is_saturated(snapshot, s)) return gradient_ns;
    const double load_gradient = segment.cost_per_batch_ns * segment.rate_pkts_per_ns /
                                 (static_cast<double>(segment.trigger_pkts) * segment.trigger_pkts);
    for (const uint32_t other : path) {
      if (!is_same_task(s, other) || state.segments[other].rate_pkts_per_ns <= 0) continue;
      gradient_ns -= load_gradient * state.segments[other].trigger_pkts /
                     state.segments[other].rate_pkts_per_ns;
    }
    return gradient_ns;
  }

  [[nodiscard]] bool is_same_task(uint32_t a, uint32_t b) const {
    const std::vector<exec::ControlModule>& modules = topology().model.modules;
    return modules[topology().segments[a].head].task == modules[topology().segments[b].head].task;
  }

  // Late flows decide how far to move, and which way; the other flows limit the move.
  void follow_gradient(const Snapshot& snapshot, PeriodState& state, uint32_t s) {
    const SegmentPeriod& segment = state.segments[s];
    const double trigger = segment.trigger_pkts;
    double up = std::max(0.0, max_pkts(state, s) - trigger);
    double down = std::max(0.0, trigger - segment.min_pkts);
    double wanted_up = 0;
    double wanted_down = 0;
    for (uint32_t f = 0; f < state.flows.size(); ++f) {
      const FlowNow& flow = state.flows[f];
      if (!flow.has_slo()) continue;
      const double gradient_ns = delay_gradient_ns(snapshot, state, s, f);
      if (gradient_ns == 0) continue;
      const double pkts = flow.slack_ns < 0
                              ? -flow.slack_ns / std::abs(gradient_ns)
                              : std::max(0.0, flow.headroom_ns()) / std::abs(gradient_ns);
      if (flow.slack_ns < 0) {
        double& wanted = gradient_ns > 0 ? wanted_down : wanted_up;
        wanted = std::max(wanted, pkts);
      } else {
        double& allowed = gradient_ns > 0 ? up : down;
        allowed = std::min(allowed, pkts);
      }
    }
    // Late flows disagree: leave it to another module.
    if (wanted_down > 0 && wanted_up > 0) return;
    if (wanted_down > 0) {
      move(state, s, trigger - std::ceil(std::min(wanted_down, down)), "recover");
    } else {
      move(state, s, trigger + std::floor(wanted_up > 0 ? std::min(wanted_up, up) : up),
           wanted_up > 0 ? "recover" : "descend");
    }
  }

  void move(PeriodState& state, uint32_t s, double trigger_pkts, const char* reason) {
    const auto pkts = static_cast<uint32_t>(std::clamp<double>(
        trigger_pkts, state.segments[s].min_pkts > 0 ? 1 : 0, topology().model.batch_limit_pkts));
    if (pkts != state.segments[s].trigger_pkts) {
      state.set_trigger_and_slack(topology(), s, pkts, reason);
    }
  }

  size_t turn_ = 0;
};

}  // namespace

std::unique_ptr<Controller> make_feasdir(const Model& model, const Settings& settings) {
  return std::make_unique<FeasDir>("feasdir", model, settings);
}

}  // namespace batchplane::slo
