// SPDX-License-Identifier: BSD-3-Clause
// program_dual.cc - the relaxed problem: minimise sum w / q + p q subject to sum k q <= room for
// every flow. Given the flows' prices, each q has a closed form. Prices are found one at a time,
// and by Newton steps on the dual of the group where flows share modules.
#include <algorithm>
#include <cmath>

#include "slo/solver/program.h"

namespace batchplane::slo {
namespace {
constexpr double kTight = 1e-5;      // of the room: counts as exactly within the budget
constexpr uint32_t kMaxSteps = 60;   // for one price
constexpr uint32_t kMaxSweeps = 60;  // over a group
constexpr double kSteady = 1e-3;     // relative change of prices in a sweep
}  // namespace

// Where the module is at a price. It is asked several times at one price, by each of its flows.
const Solver::Held& Solver::held_at(uint32_t v, double price) {
  Held& held = held_[v];
  if (held.price == price) return held;
  const double k = held.slope;
  const double per_pkt = k * price + held.own_price;
  const double q = per_pkt > 0 ? std::sqrt(held.weight / per_pkt) : kNoBudgetNs;
  held.price = price;
  held.size = std::clamp(q, held.least, held.most);
  held.used_ns = k * held.size;
  const bool is_inside = q > held.least && q < held.most;
  held.entry = is_inside ? k * k * q * q * q / (2 * held.weight) : 0;
  return held;
}

// The room that the flow's modules use at its price + price_change, and its derivative.
double Solver::used_ns(uint32_t f, double price_change, double& slope) {
  double used = 0;
  slope = 0;
  for (const uint32_t v : free_path(f)) {
    const Held& held = held_at(v, std::max(0.0, module_price_[v] + price_change));
    used += held.used_ns;
    slope -= held.entry;
  }
  return used;
}

void Solver::add_price(uint32_t f, double change) {
  if (change == 0) return;
  point_.price[f] += change;
  for (const uint32_t v : free_path(f)) module_price_[v] += change;
}

// The price at which the flow just keeps its budget, with the other prices fixed: the root of a
// convex decreasing function, by Newton within a bracket. Returns the relative change of the price.
double Solver::step_price(uint32_t f) {
  const double old = point_.price[f];
  double slope = 0;
  double low = 0;  // a price at which too much is used
  double high = 0;
  const auto fits = [&](double miss_ns) {
    return std::abs(miss_ns) <= kTight * std::abs(room_ns_[f]);
  };
  // After a Newton step the prices of most flows are right. Where too much is used at the old price, even more is at
  // none, which need not be asked for.
  const double old_miss_ns = old > 0 ? used_ns(f, 0, slope) - room_ns_[f] : 0;
  if (old > 0 && fits(old_miss_ns)) return 0;
  if (room_ns_[f] == kNoBudgetNs ||
      (!(old_miss_ns > 0) && used_ns(f, -old, slope) <= room_ns_[f])) {
    add_price(f, -old);
    return old > 0 ? 1 : 0;
  }
  for (const uint32_t v : free_path(f)) {
    const Held& held = held_[v];
    high = std::max(high, held.weight / (held.slope * held.least * held.least));
  }
  double price = old > 0 && old < high ? old : high / 64;
  for (uint32_t i = 0; i < kMaxSteps; ++i) {
    const double miss_ns = used_ns(f, price - old, slope) - room_ns_[f];
    if (fits(miss_ns)) break;
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
  add_price(f, price - old);
  return std::abs(price - old) / std::max(price, old);
}

double Solver::dual_value(const Group& group) {
  double value = 0;
  for (uint32_t i = group.begin; i < group.end; ++i) {
    const uint32_t f = group_flows_[i];
    if (room_ns_[f] != kNoBudgetNs) value -= point_.price[f] * room_ns_[f];
    for (uint32_t j = first_modules_begin_[f]; j < first_modules_begin_[f + 1]; ++j) {
      const uint32_t v = first_modules_[j];
      if (is_free_[v] == 0) continue;
      const Held& held = held_at(v, module_price_[v]);
      const double per_pkt = held.slope * held.price + held.own_price;
      value += held.weight / held.size + per_pkt * held.size;
    }
  }
  return value;
}

void Solver::solve_group(const Group& group) {
  const bool is_single = group.end - group.begin == 1;
  if (!is_single) newton(group);  // from the prices of the last problem
  for (uint32_t sweep = 0; sweep < kMaxSweeps; ++sweep) {
    double change = 0;
    for (uint32_t i = group.begin; i < group.end; ++i) {
      const uint32_t f = group_flows_[i];
      if (is_short_[f] != 0) continue;
      change = std::max(change, step_price(f));
    }
    if (is_single || change < kSteady) return;
    newton(group);
  }
}

// Between most problems of a step no module begins or ends to be free.
void Solver::set_free_paths(const Program& program) {
  if (was_free_ == is_free_) return;
  was_free_ = is_free_;
  free_modules_.clear();
  for (size_t f = 0; f < program.flows.size(); ++f) {
    free_paths_begin_[f] = static_cast<uint32_t>(free_modules_.size());
    for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
      const uint32_t v = program.flow_modules[i];
      if (is_free_[v] != 0) free_modules_.push_back(v);
    }
  }
  free_paths_begin_[program.flows.size()] = static_cast<uint32_t>(free_modules_.size());
}

// Sizes follow from prices; the price of a short flow is given.
void Solver::solve_dual(const Program& program) {
  constexpr double kNoPrice = -1;
  for (uint32_t v = 0; v < point_.size.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    module_price_[v] = 0;
    held_[v] = {.slope = slopes_.delay_slope[v],
                .weight = weight_[v],
                .own_price = own_price_[v],
                .least = module.arriving_pkts,
                .most = static_cast<double>(module.max_pkts),
                .price = kNoPrice};
  }
  set_free_paths(program);
  for (uint32_t f = 0; f < program.flows.size(); ++f) {
    if (room_ns_[f] == kNoBudgetNs) point_.price[f] = 0;
    if (is_short_[f] != 0) point_.price[f] = penalty_[f] * price_unit_;
    if (point_.price[f] == 0) continue;
    for (const uint32_t v : free_path(f)) module_price_[v] += point_.price[f];
  }
  for (const Group& group : groups_) solve_group(group);
  for (uint32_t v = 0; v < point_.size.size(); ++v) {
    const bool is_free = is_free_[v] != 0;
    point_.size[v] = is_free ? held_at(v, std::max(0.0, module_price_[v])).size : held_[v].least;
  }
}

}  // namespace batchplane::slo
