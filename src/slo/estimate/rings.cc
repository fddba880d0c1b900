// SPDX-License-Identifier: BSD-3-Clause
#include "slo/estimate/rings.h"

#include <algorithm>

namespace batchplane::slo {
namespace {
constexpr double kWasteStep = 0.3;    // step of a waste estimate towards the measured waste
constexpr double kForgotten = 0.999;  // decay of the estimates per period
// Periods until another credit is looked at: the first time at saturation, and at most where flows stay late.
constexpr uint32_t kDwellPeriods = 4;
constexpr uint32_t kMinPatience = 16;  // half of the periods until one is tried again that failed
constexpr double kSameRate = 0.97;     // of a period's rate: it varies by chance
constexpr uint32_t kMaxDwellPeriods = 4096;  // after many changes: looks again all the same
// In front of a packet scheduler, packets wait for their turn on the link; in a stage, for their device.
bool is_ring(const exec::ControlInput& input) {
  return input.is_queue && !input.is_scheduler && !input.is_stage;
}
}  // namespace

Rings::Rings(const Model& model, const Load& load)
    : model_(model),
      load_(load),
      holds_back_(model.tasks.size()),
      is_full_(model.tasks.size()),
      ring_pkts_(model.tasks.size()),
      wait_ns_(model.tasks.size()) {
  for (const exec::ControlInput& input : model.inputs) {
    if (is_ring(input)) has_rings_ = is_fresh_ = true;
    if (input.holds_back) holds_back_[input.task] = true;
  }
}

// Rings in front of an always-busy worker are never empty; if it holds its feeders back, neither
// are the rings in front of them.
void Rings::update(const Program& program) {
  if (!has_rings_) return;
  for (uint32_t t = 0; t < is_full_.size(); ++t) is_full_[t] = load_.sets_pace(t);
  for (const ProgramFlow& flow : program.flows) {
    bool holds_back = false;
    for (uint32_t i = flow.tasks_end; i-- > flow.tasks_begin;) {
      const uint32_t task = program.flow_tasks[i];
      if (holds_back) is_full_[task] = true;
      holds_back = is_full_[task] && holds_back_[task];
    }
  }
  set_credit(in_force());
  if (!load_.is_saturated()) before_.reset();
  if (is_fresh_ || !load_.is_saturated()) return;
  for (double& waste : waste_) waste *= kForgotten;
  waste_[in_force_] += kWasteStep * (load_.least_idle() - waste_[in_force_]);
}

namespace {
uint32_t credit_pkts(const Model& model, const exec::ControlInput& input, uint32_t batches) {
  return std::min(input.size_pkts, batches * model.batch_limit_pkts);
}
}  // namespace

void Rings::set_credit(uint32_t batches) {
  credit_batches_ = batches;
  std::ranges::fill(ring_pkts_, 0.0);
  for (const exec::ControlInput& input : model_.inputs) {
    if (!is_ring(input) || !is_full_[input.task]) continue;
    const uint32_t credit = credit_pkts(model_, input, batches);
    ring_pkts_[input.task] += credit - std::min(credit, load_.poll_limit_pkts(input.task));
  }
}

void Rings::set_rate(double rate_pkts_per_ns) {
  for (uint32_t t = 0; t < wait_ns_.size(); ++t) {
    const double rate = load_.visits()[t] * rate_pkts_per_ns;
    wait_ns_[t] = rate > 0 ? ring_pkts_[t] / rate : 0;
  }
}

std::optional<Rings::Point> Rings::way_back(bool is_kept, bool is_stuck, double pkts_per_ns) {
  if (!before_) return std::nullopt;
  if (!is_stuck && pkts_per_ns >= kSameRate * before_->pkts_per_ns) {
    if (is_kept) before_.reset();
    return std::nullopt;
  }
  dwell_periods_ = std::max(dwell_periods_, kMinPatience);
  return std::exchange(before_, std::nullopt);
}

uint32_t Rings::other_to_look_at(bool is_saturated, bool is_stuck) {
  ++periods_;
  if (!is_saturated) dwell_periods_ = kDwellPeriods;
  const uint32_t dwell = is_stuck ? std::min(kDwellPeriods, dwell_periods_) : dwell_periods_;
  if (!has_rings_ || !is_saturated || periods_ < dwell) return 0;
  const uint32_t other = periods_ % 2 == 0 ? in_force() / 2 : in_force() * 2;
  return other > kMaxCreditBatches ? 0 : other;
}

void Rings::decide(Decision& decision) {
  is_fresh_ = has_rings_ && credit_batches_ != in_force_;
  if (!is_fresh_) return;
  for (const exec::ControlInput& input : model_.inputs) {
    if (!is_ring(input)) continue;
    decision.credits.push_back({input.module, credit_pkts(model_, input, credit_batches_)});
  }
  // Waits longer after each change, because the effect of a credit may differ from the model's
  // prediction.
  periods_ = 0;
  dwell_periods_ = std::min(2 * dwell_periods_, kMaxDwellPeriods);
  in_force_ = credit_batches_;
}

}  // namespace batchplane::slo
