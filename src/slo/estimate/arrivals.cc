// SPDX-License-Identifier: BSD-3-Clause
#include "slo/estimate/arrivals.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "exec/depth.h"

namespace batchplane::slo {
namespace {
constexpr double kMoved = 0.1;  // relative change of an arriving batch
}  // namespace

double Arrivals::Part::of(double batch, double branch_share) {
  if (batch != batch_pkts || branch_share != share) {
    *this = {batch, branch_share, branch_batch_pkts(batch, branch_share)};
  }
  return part_pkts;
}

Arrivals::Arrivals(uint32_t n_segments, const std::vector<Edge>& edges, uint32_t poll_pkts,
                   Program& program)
    : n_segments_(n_segments), poll_pkts_(poll_pkts), modules_(program.modules.size()) {
  for (const auto& [from, to] : edges) modules_[to].before.push_back({.module = from});
  for (size_t v = 0; v < modules_.size(); ++v) {
    const std::vector<Before>& before = modules_[v].before;
    if (before.size() != 1 || is_stage(before[0].module)) continue;
    program.modules[v].before = before[0].module;
  }
  const auto n = static_cast<uint32_t>(modules_.size());
  exec::Depths depths = exec::depths_of(n, edges);
  for (const uint32_t v : depths.in_cycle) depths.depth[v] = n;  // last, in any order
  upstream_first_.resize(n);
  std::iota(upstream_first_.begin(), upstream_first_.end(), 0U);
  std::ranges::stable_sort(upstream_first_, {}, [&](uint32_t v) { return depths.depth[v]; });
}

// Packets of a module's batch that go on together.
double Arrivals::polled_pkts(uint32_t v, double batch_pkts) const {
  return is_stage(v) ? std::min(batch_pkts, poll_pkts_) : batch_pkts;
}

// Whether other buffers of its task come before it.
bool Arrivals::is_nested(uint32_t v) const {
  return std::ranges::any_of(modules_[v].before,
                             [this](const Before& from) { return !is_stage(from.module); });
}

void Arrivals::measure(const Program& program, const std::vector<double>& executed_pkts) {
  for (size_t v = 0; v < modules_.size(); ++v) {
    Arriving& at = modules_[v];
    at.measured = program.modules[v];
    at.now_pkts = 0;
    for (Before& from : at.before) {
      const double share = program.modules[from.module].share;
      from.part = share > 0 ? std::min(1.0, at.measured.share / share) : 0;
      if (from.part <= 0) continue;
      from.executed_pkts = std::max(1.0, polled_pkts(from.module, executed_pkts[from.module]));
      at.now_pkts += share * from.part * from.executed.of(from.executed_pkts, from.part);
    }
  }
}

bool Arrivals::has_nested() const {
  return std::ranges::any_of(upstream_first_, [this](uint32_t v) { return is_nested(v); });
}

void Arrivals::allow_nested(bool is_allowed, Program& program) {
  for (uint32_t v = 0; v < modules_.size(); ++v) {
    if (!is_nested(v)) continue;
    uint32_t& max_pkts = program.modules[v].max_pkts;
    if (!is_allowed) modules_[v].measured.max_pkts = std::exchange(max_pkts, 0);
    if (is_allowed) max_pkts = modules_[v].measured.max_pkts;
  }
  is_folded_ = !is_allowed;
  if (is_allowed) unfold(program);
}

std::optional<Triggers> Arrivals::cheapest_outer(Program& program) {
  Triggers full(modules_.size(), 0);
  Triggers cheapest(modules_.size(), 0);
  for (uint32_t v = 0; v < modules_.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    if (module.stair != nullptr && !is_stage(v)) return std::nullopt;
    if (is_nested(v) || !is_holding(module, module.max_pkts)) continue;
    full[v] = module.max_pkts;
    if (holding_pays(program, module, module.max_pkts)) cheapest[v] = module.max_pkts;
  }
  predict(full, program);
  return cheapest;
}

void Arrivals::unfold(Program& program) const {
  for (size_t v = 0; v < modules_.size(); ++v) {
    program.modules[v].cost_per_batch_ns = modules_[v].measured.cost_per_batch_ns;
    program.modules[v].cost_per_pkt_ns = modules_[v].measured.cost_per_pkt_ns;
  }
}

// The larger a collected batch, the fewer batches come out behind it: their cost is saved where
// packets are collected, and nowhere else. So the cost of batches behind moves into the collector's
// cost per batch, exact at both ends: with nothing collected, and with the given trigger.
void Arrivals::fold_nested(const Triggers& triggers_pkts, Program& program) {
  unfold(program);
  for (uint32_t v = 0; v < modules_.size(); ++v) {
    if (program.modules[v].share <= 0 || !is_nested(v)) continue;
    double pkts = 0;
    for (const Before& from : modules_[v].before) pkts += program.modules[from.module].share;
    for (Before& from : modules_[v].before) {
      const double weight = program.modules[from.module].share / pkts;
      if (is_nested(from.module) || is_stage(from.module) || !(weight > 0)) continue;
      fold_into(v, from, weight, triggers_pkts[from.module], program);
    }
  }
}

void Arrivals::fold_into(uint32_t v, Before& from, double weight, double trigger_pkts,
                         Program& program) {
  const ProgramModule& measured = modules_[v].measured;
  ProgramModule& module = program.modules[v];
  ProgramModule& before = program.modules[from.module];
  const double part = from.part;
  const double alone = before.arriving_pkts;
  const double collected = trigger_pkts > 0 ? trigger_pkts : before.max_pkts;
  if (collected <= alone) return;
  const double scale = measured.arriving_pkts / from.executed.of(from.executed_pkts, part);
  const double least = std::max(1.0, scale * from.alone.of(alone, part));
  const double most = std::max(least, scale * from.collected.of(collected, part));
  const double saved_ns = measured.cost_per_batch_ns * weight * (1 / least - 1 / most);
  // The saving per packet here, as a cost per batch of the collector.
  const double folded_ns = saved_ns * module.share / before.share / (1 / alone - 1 / collected);
  before.cost_per_batch_ns += folded_ns;
  module.cost_per_batch_ns -= weight * measured.cost_per_batch_ns;
  module.cost_per_pkt_ns +=
      weight * measured.cost_per_batch_ns / least - folded_ns / alone * before.share / module.share;
}

// Arriving batches grow like those of flows in random order.
bool Arrivals::predict(const Triggers& triggers_pkts, Program& program) {
  bool any = false;
  for (const uint32_t v : upstream_first_) {
    Arriving& at = modules_[v];
    ProgramModule& module = program.modules[v];
    if (module.share <= 0 || at.now_pkts <= 0) continue;
    double then_pkts = 0;
    for (Before& from : at.before) {
      if (from.part <= 0) continue;
      const ProgramModule& before = program.modules[from.module];
      const bool is_held = triggers_pkts[from.module] > 0;
      const double batch = is_held ? triggers_pkts[from.module] : before.arriving_pkts;
      Part& part = is_held ? from.collected : from.alone;
      then_pkts += before.share * from.part * part.of(polled_pkts(from.module, batch), from.part);
    }
    const double predicted =
        std::clamp(at.measured.arriving_pkts * then_pkts / at.now_pkts, 1.0, poll_pkts_);
    any |= std::abs(predicted - module.arriving_pkts) > kMoved * module.arriving_pkts;
    module.arriving_pkts = predicted;
    mark_worth(module);
  }
  if (is_folded_) fold_nested(triggers_pkts, program);
  return any;
}

}  // namespace batchplane::slo
