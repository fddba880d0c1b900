// SPDX-License-Identifier: BSD-3-Clause
// program_dual.cc - the relaxed problem: minimise sum w / q + p q subject to sum k q <= room for
// every flow. Given the flows' prices, each q has a closed form. Prices are found one at a time,
// and by Newton steps on the dual of the group where flows share modules.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "slo/solver/program.h"
#include "slo/solver/set_hash.h"

namespace batchplane::slo {
namespace {
constexpr double kTight = 1e-5;      // of the room: counts as exactly within the budget
constexpr uint32_t kMaxSteps = 60;   // for one price
constexpr uint32_t kMaxSweeps = 60;  // over a group
constexpr double kSteady = 1e-3;     // relative change of prices in a sweep
}  // namespace

double Solver::size_at(uint32_t v, double price) const {
  const double per_pkt = slopes_.delay_slope[v] * price + own_price_[v];
  return per_pkt > 0 ? std::sqrt(weight_[v] / per_pkt) : kNoBudgetNs;
}

// The room that the flow's modules use at its price + price_change, and its derivative.
double Solver::used_ns(const Program& program, uint32_t f, double price_change,
                       double& slope) const {
  double used = 0;
  slope = 0;
  for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
    const uint32_t v = program.flow_modules[i];
    if (is_free_[v] == 0) continue;
    const ProgramModule& module = program.modules[v];
    const double k = slopes_.delay_slope[v];
    const double q = size_at(v, std::max(0.0, module_price_[v] + price_change));
    used += k * std::clamp<double>(q, module.arriving_pkts, module.max_pkts);
    if (q > module.arriving_pkts && q < module.max_pkts) {
      slope -= k * k * q * q * q / (2 * weight_[v]);
    }
  }
  return used;
}

void Solver::add_price(const Program& program, uint32_t f, double change) {
  price_[f] += change;
  for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
    module_price_[program.flow_modules[i]] += change;
  }
}

// The price at which the flow just keeps its budget, with the other prices fixed: the root of a
// convex decreasing function, by Newton within a bracket. Returns the relative change of the price.
double Solver::step_price(const Program& program, uint32_t f) {
  const double old = price_[f];
  double slope = 0;
  double low = 0;  // a price at which too much is used
  double high = 0;
  if (room_ns_[f] == kNoBudgetNs || used_ns(program, f, -old, slope) <= room_ns_[f]) {
    add_price(program, f, -old);
    return old > 0 ? 1 : 0;
  }
  for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
    const uint32_t v = program.flow_modules[i];
    if (is_free_[v] == 0) continue;
    const double a = program.modules[v].arriving_pkts;
    high = std::max(high, weight_[v] / (slopes_.delay_slope[v] * a * a));
  }
  double price = old > 0 && old < high ? old : high / 64;
  for (uint32_t i = 0; i < kMaxSteps; ++i) {
    const double miss_ns = used_ns(program, f, price - old, slope) - room_ns_[f];
    if (std::abs(miss_ns) <= kTight * std::abs(room_ns_[f])) break;
    (miss_ns > 0 ? low : high) = price;
    if (high - low <= 1e-12 * high) break;
    // In 1 / sqrt(price) the function is a straight line while no trigger is at a bound and no
    // other flow has a price, so the step is taken there.
    const double root = 1 / std::sqrt(price);
    const double next_root = root - miss_ns / (-2 * slope * price * std::sqrt(price));
    double next = slope < 0 && next_root > 0 ? 1 / (next_root * next_root) : 0;
    if (!(next > low && next < high)) next = low > 0 ? std::sqrt(low * high) : high / 256;
    price = next;
  }
  add_price(program, f, price - old);
  return std::abs(price - old) / std::max(price, old);
}

double Solver::dual_value(const Program& program, const Group& group) const {
  double value = 0;
  for (uint32_t i = group.begin; i < group.end; ++i) {
    const uint32_t f = group_flows_[i];
    if (room_ns_[f] != kNoBudgetNs) value -= price_[f] * room_ns_[f];
    for (uint32_t j = program.flows[f].modules_begin; j < program.flows[f].modules_end; ++j) {
      const uint32_t v = program.flow_modules[j];
      if (is_free_[v] == 0 || module_flows_[module_flows_begin_[v]] != f) continue;
      const ProgramModule& module = program.modules[v];
      const double per_pkt = slopes_.delay_slope[v] * module_price_[v] + own_price_[v];
      const double q =
          std::clamp<double>(size_at(v, module_price_[v]), module.arriving_pkts, module.max_pkts);
      value += weight_[v] / q + per_pkt * q;
    }
  }
  return value;
}

// Of flows that the same modules may hold, only the one with the least room counts: behind a buffer
// that many flows share, they would otherwise take turns paying for it.
void Solver::set_implied(const Program& program, const Group& group) {
  active_.clear();
  for (uint32_t i = group.begin; i < group.end; ++i) {
    const uint32_t f = group_flows_[i];
    is_implied_[f] = 0;
    if (is_short_[f] != 0 || room_ns_[f] == kNoBudgetNs) continue;
    held_by_[f] = 0;
    for (uint32_t j = program.flows[f].modules_begin; j < program.flows[f].modules_end; ++j) {
      const uint32_t v = program.flow_modules[j];
      if (is_free_[v] != 0) held_by_[f] += mixed_bits(v + 1);
    }
    active_.push_back(f);
  }
  std::ranges::sort(active_, {},
                    [&](uint32_t f) { return std::tuple(held_by_[f], room_ns_[f], f); });
  for (size_t i = 1; i < active_.size(); ++i) {
    const uint32_t f = active_[i];
    if (held_by_[f] != held_by_[active_[i - 1]]) continue;
    is_implied_[f] = 1;
    if (price_[f] > 0) add_price(program, f, -price_[f]);
  }
}

void Solver::solve_group(const Program& program, const Group& group) {
  uint32_t flows = group.end - group.begin;
  if (flows > 1) {
    set_implied(program, group);
    for (uint32_t i = group.begin; i < group.end; ++i) flows -= is_implied_[group_flows_[i]];
  }
  const bool is_single = flows == 1;
  if (!is_single) newton(program, group);  // from the prices of the last problem
  for (uint32_t sweep = 0; sweep < kMaxSweeps; ++sweep) {
    double change = 0;
    for (uint32_t i = group.begin; i < group.end; ++i) {
      const uint32_t f = group_flows_[i];
      if (is_short_[f] != 0 || is_implied_[f] != 0) continue;
      change = std::max(change, step_price(program, f));
    }
    if (is_single || change < kSteady) return;
    newton(program, group);
  }
}

// Sizes follow from prices; the price of a short flow is given.
void Solver::solve_dual(const Program& program) {
  std::ranges::fill(module_price_, 0.0);
  for (uint32_t f = 0; f < program.flows.size(); ++f) {
    if (room_ns_[f] == kNoBudgetNs) price_[f] = 0;
    if (is_short_[f] != 0) price_[f] = penalty_[f] * price_unit_;
    add_price(program, f, 0.0);
    for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
      module_price_[program.flow_modules[i]] += price_[f];
    }
  }
  for (const Group& group : groups_) solve_group(program, group);
  for (uint32_t v = 0; v < size_.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    size_[v] = module.arriving_pkts;
    if (is_free_[v] == 0) continue;
    size_[v] = std::clamp<double>(size_at(v, std::max(0.0, module_price_[v])), module.arriving_pkts,
                                  module.max_pkts);
  }
}

}  // namespace batchplane::slo
