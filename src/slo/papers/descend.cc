// SPDX-License-Identifier: BSD-3-Clause
#include "slo/papers/descend.h"

#include <algorithm>
#include <cmath>

#include "slo/papers/projection.h"

namespace batchplane::slo {
namespace {

constexpr double kNegligible = 1e-9;  // of a length or a sum: below, only rounding is left

// Two buffers in sequence: the first must not fill more slowly than the one behind it.
struct Chain {
  size_t before = 0;
  size_t behind = 0;
};

class Descent {
 public:
  Descent(const Topology& topology, const Settings& settings, PeriodState& state, bool is_original)
      : topology_(topology), settings_(settings), state_(state), is_original_(is_original) {
    column_.assign(state.segments.size(), kNoColumn);
    for (uint32_t s = 0; s < state.segments.size(); ++s) {
      const SegmentPeriod& segment = state.segments[s];
      if (segment.is_frozen || segment.trigger_pkts == 0 || segment.rate_pkts_per_ns <= 0) continue;
      column_[s] = free_.size();
      free_.push_back(s);
    }
    for (const uint32_t s : free_) {
      const SegmentPeriod& segment = state.segments[s];
      const double trigger = segment.trigger_pkts;
      gradient_.push_back(-segment.cost_per_batch_ns * segment.rate_pkts_per_ns /
                          (trigger * trigger));
    }
    find_chains();
  }

  void run() {
    const bool all_frozen =
        !state_.flows.empty() && std::ranges::all_of(state_.flows, &FlowNow::is_frozen);
    if (free_.empty() || all_frozen) return;
    const std::vector<double> direction = find_direction();
    if (direction.empty()) return;
    double step = longest_step(direction);
    if (!is_original_) step = best_step(direction, step);
    if (!(step > 0) || !std::isfinite(step)) return;
    is_original_ ? move_rounding_up(direction, step) : move(direction, step);
  }

 private:
  static constexpr size_t kNoColumn = ~size_t{0};

  [[nodiscard]] const SegmentPeriod& segment(size_t column) const {
    return state_.segments[free_[column]];
  }
  [[nodiscard]] double trigger(size_t column) const { return segment(column).trigger_pkts; }

  void find_chains() {
    for (size_t u = 0; u < free_.size(); ++u) {
      for (const uint32_t behind : topology_.next[free_[u]]) {
        const size_t v = column_[behind];
        if (v == kNoColumn) continue;
        // A segment that merges more branches than this one fills faster anyway.
        const double rate_limit = (1 + settings_.tolerance) * segment(u).rate_pkts_per_ns;
        if (segment(v).rate_pkts_per_ns <= rate_limit) chains_.push_back({u, v});
      }
    }
  }

  [[nodiscard]] Row delay_row(uint32_t flow) const {
    Row row(free_.size(), 0.0);
    for (const uint32_t s : topology_.segments_on[flow]) {
      if (column_[s] != kNoColumn) row[column_[s]] = state_.segments[s].delay_per_pkt_ns;
    }
    return row;
  }

  [[nodiscard]] Row bound_row(size_t column, double sign) const {
    Row row(free_.size(), 0.0);
    row[column] = sign;
    return row;
  }

  // A flow's constraint is active when the flow is tight, or has no room for one more packet in
  // each of its buffers that may grow. Otherwise its last bit of headroom would bound the step of
  // all others.
  [[nodiscard]] bool is_active(const FlowNow& flow, const Row& row) const {
    if (!flow.has_slo() || length_of(row) == 0) return false;
    double next_ns = 0;
    for (size_t i = 0; i < free_.size(); ++i) {
      if (trigger(i) < topology_.model.batch_limit_pkts) next_ns += row[i];
    }
    return flow.is_tight() || flow.headroom_ns() < next_ns;
  }

  // Rows of flows come first; `row_flows_` says whose.
  [[nodiscard]] std::vector<Row> rows_active_before() {
    std::vector<Row> rows;
    row_flows_.clear();
    for (uint32_t f = 0; f < state_.flows.size(); ++f) {
      Row row = delay_row(f);
      if (!state_.flows[f].is_frozen && is_active(state_.flows[f], row)) {
        rows.push_back(std::move(row));
        row_flows_.push_back(f);
      }
    }
    for (const Chain& chain : chains_) {
      const double ratio =
          segment(chain.before).rate_pkts_per_ns / segment(chain.behind).rate_pkts_per_ns;
      const double limit_pkts = ratio * trigger(chain.behind);
      const bool is_near = trigger(chain.before) >= (1 - settings_.tolerance) * limit_pkts;
      if (!is_near && !is_original_) continue;
      Row row(free_.size(), 0.0);
      row[chain.before] = 1;
      row[chain.behind] = -ratio;
      rows.push_back(std::move(row));
    }
    return rows;
  }

  // A bound is active where the direction would leave it; such bounds join the rows, all at once.
  Projection project_within_bounds(std::vector<Row>& rows) const {
    for (;;) {
      Projection projection = project(rows, gradient_);
      const double negligible = kNegligible * length_of(gradient_);
      const size_t before = rows.size();
      for (size_t i = 0; i < free_.size(); ++i) {
        double& change = projection.direction[i];
        const double bound = leaves_bound(i, change);
        if (bound == 0) continue;
        const Row row = bound_row(i, bound);
        if (std::abs(change) > negligible && std::ranges::find(rows, row) == rows.end()) {
          rows.push_back(row);
        } else {
          change = 0;  // rounding
        }
      }
      if (rows.size() == before) return projection;
    }
  }

  // 1 or -1: the change would leave the upper or the lower bound.
  [[nodiscard]] double leaves_bound(size_t column, double change) const {
    if (change > 0 && trigger(column) >= topology_.model.batch_limit_pkts) return 1;
    if (change < 0 && trigger(column) <= segment(column).min_pkts) return -1;
    return 0;
  }

  // Empty at an optimum: there, no constraint that should be given up holds the triggers back.
  [[nodiscard]] std::vector<double> find_direction() {
    std::vector<Row> rows = rows_active_before();
    const double negligible = kNegligible * length_of(gradient_);
    for (uint32_t n_dropped = 0;; ++n_dropped) {
      const Projection projection = project_within_bounds(rows);
      note_prices(rows, projection);
      if (length_of(projection.direction) > 10 * negligible) return projection.direction;
      const std::vector<double>& multipliers = projection.multipliers;
      const auto worst = std::ranges::min_element(multipliers);
      if (worst == multipliers.end() || *worst >= -negligible) return {};
      if (n_dropped == settings_.max_iterations) return {};
      if (n_dropped + 1 < settings_.max_iterations) {
        const auto at = worst - multipliers.begin();
        rows.erase(rows.begin() + at);
        if (at < std::ssize(row_flows_)) row_flows_.erase(row_flows_.begin() + at);
        continue;
      }
      // The last try gives up all of them: otherwise every period could run out of tries here.
      std::vector<Row> kept;
      for (size_t i = 0; i < rows.size(); ++i) {
        if (multipliers[i] >= -negligible) kept.push_back(rows[i]);
      }
      rows = std::move(kept);
      row_flows_.clear();
    }
  }

  // Multipliers belong to rows of length one.
  void note_prices(const std::vector<Row>& rows, const Projection& projection) {
    for (FlowNow& flow : state_.flows) flow.load_per_ns = 0;
    for (size_t i = 0; i < row_flows_.size(); ++i) {
      const double price = projection.multipliers[i] / length_of(rows[i]);
      state_.flows[row_flows_[i]].load_per_ns = std::max(0.0, price);
    }
  }

  // The largest multiple of the direction that all flows, bounds and chains allow.
  [[nodiscard]] double longest_step(const std::vector<double>& direction) const {
    double step = kNoLimit;
    for (uint32_t f = 0; f < state_.flows.size(); ++f) {
      double sum = 0;
      double size = 0;
      const Row row = delay_row(f);
      for (size_t i = 0; i < free_.size(); ++i) {
        sum += row[i] * direction[i];
        size += row[i] * std::abs(direction[i]);
      }
      if (sum <= kNegligible * size) continue;
      step = std::min(step, std::max(0.0, state_.flows[f].headroom_ns()) / sum);
    }
    for (size_t i = 0; i < free_.size(); ++i) {
      const double up = topology_.model.batch_limit_pkts - trigger(i);
      const double down = std::max(0.0, trigger(i) - segment(i).min_pkts);
      if (std::abs(direction[i]) <= kNegligible * length_of(direction)) continue;
      step = std::min(step, direction[i] > 0 ? up / direction[i] : down / -direction[i]);
    }
    for (const auto& [u, v] : chains_) {
      const double gap_ns =
          trigger(v) / segment(v).rate_pkts_per_ns - trigger(u) / segment(u).rate_pkts_per_ns;
      const double speed =
          direction[u] / segment(u).rate_pkts_per_ns - direction[v] / segment(v).rate_pkts_per_ns;
      const double size = std::abs(direction[u]) / segment(u).rate_pkts_per_ns +
                          std::abs(direction[v]) / segment(v).rate_pkts_per_ns;
      if (speed > kNegligible * size && gap_ns >= 0) step = std::min(step, gap_ns / speed);
    }
    return step;
  }

  // Change of load per unit of the direction, after `step`.
  [[nodiscard]] double load_slope(const std::vector<double>& direction, double step) const {
    double slope = 0;
    for (size_t i = 0; i < free_.size(); ++i) {
      const double moved = std::max(1e-3, trigger(i) + step * direction[i]) / trigger(i);
      slope += gradient_[i] * direction[i] / (moved * moved);
    }
    return slope;
  }

  // The load is convex along the direction: returns the step with the least load, at most
  // `longest`.
  [[nodiscard]] double best_step(const std::vector<double>& direction, double longest) const {
    if (!std::isfinite(longest) || load_slope(direction, longest) <= 0) return longest;
    double low = 0;
    double high = longest;
    for (int i = 0; i < 50; ++i) {
      const double middle = (low + high) / 2;
      (load_slope(direction, middle) < 0 ? low : high) = middle;
    }
    return low;
  }

  [[nodiscard]] double wanted(size_t column, const std::vector<double>& direction,
                              double step) const {
    return std::clamp<double>(trigger(column) + step * direction[column], 0,
                              topology_.model.batch_limit_pkts);
  }

  // Delay that a flow may reach.
  [[nodiscard]] double target_ns(uint32_t flow) const {
    return state_.flows[flow].slo_ns - state_.flows[flow].tolerance_ns;
  }

  // Rounds triggers down first, then up by one wherever this takes no flow past its target, given
  // all decisions so far.
  void move(const std::vector<double>& direction, double step) {
    constexpr double kAlmost = 1e-6;  // of a packet: a whole number missed by rounding
    std::vector<double> planned_ns;
    for (const FlowNow& flow : state_.flows) planned_ns.push_back(flow.planned_ns());
    std::vector<double> triggers;
    for (size_t i = 0; i < free_.size(); ++i) {
      triggers.push_back(std::floor(wanted(i, direction, step) + kAlmost));
      plan(i, triggers[i] - trigger(i), planned_ns);
    }
    for (size_t i = 0; i < free_.size(); ++i) {
      if (wanted(i, direction, step) <= triggers[i] + kAlmost) continue;
      const bool fits = std::ranges::all_of(topology_.flows_through[free_[i]], [&](uint32_t f) {
        return planned_ns[f] + segment(i).delay_per_pkt_ns <= target_ns(f);
      });
      if (!fits) continue;
      triggers[i] += 1;
      plan(i, 1, planned_ns);
    }
    for (size_t i = 0; i < free_.size(); ++i) set(i, triggers[i]);
  }

  void plan(size_t column, double change_pkts, std::vector<double>& planned_ns) const {
    for (const uint32_t f : topology_.flows_through[free_[column]]) {
      planned_ns[f] += change_pkts * segment(column).delay_per_pkt_ns;
    }
  }

  void move_rounding_up(const std::vector<double>& direction, double step) {
    for (size_t i = 0; i < free_.size(); ++i) {
      double change = std::trunc(step * direction[i]) + 1;
      for (const uint32_t f : topology_.flows_through[free_[i]]) {
        const FlowNow& flow = state_.flows[f];
        if (flow.is_frozen) continue;
        if (flow.delay_ns + change * segment(i).delay_per_pkt_ns <= target_ns(f)) continue;
        change -= 1;
        break;
      }
      set(i, std::clamp<double>(trigger(i) + change, 0, topology_.model.batch_limit_pkts));
    }
  }

  void set(size_t column, double trigger_pkts) {
    const auto pkts = static_cast<uint32_t>(trigger_pkts);
    if (pkts == segment(column).trigger_pkts) return;
    state_.set_trigger_and_slack(topology_, free_[column], pkts, "descend");
  }

  const Topology& topology_;
  const Settings& settings_;
  PeriodState& state_;
  const bool is_original_;
  std::vector<uint32_t> free_;  // segments that may move, one column each
  std::vector<size_t> column_;  // segment -> column
  std::vector<double> gradient_;
  std::vector<Chain> chains_;
  std::vector<uint32_t> row_flows_;
};

}  // namespace

void descend(const Topology& topology, const Settings& settings, PeriodState& state,
             bool is_original) {
  Descent(topology, settings, state, is_original).run();
}

}  // namespace batchplane::slo
