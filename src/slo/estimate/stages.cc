// SPDX-License-Identifier: BSD-3-Clause
#include "slo/estimate/stages.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {
constexpr double kJobNs = 90;  // worker's time for a batch to go over and come back (bench_offload)
constexpr double kMostBusy = 0.8;  // of a device's time: room for what comes before the next step
constexpr double kOverloaded = 0.95;  // the same, where age limits cut batches
constexpr double kStays = 1.25;       // times the batch that a device needs: no reason to change it
// Of cycles, in batches of one packet from each stage: in a longer one fixed costs are 5 % of the time or less.
constexpr double kLongest = 20;
constexpr double kShortest = 1e-3;  // of the longest one
constexpr double kNearlyOne = 1.01;
// Of a batch on a device that nobody has measured, before its batches have shown it.
const BatchLaw kUnknownLaw{.batch_ns = 1'000, .pkt_ns = 300};

// 1, 2, 3, 4, 6, 8, 12, 16, 24...: finer steps change a device's share by less than its load does.
std::vector<uint8_t> steps_up_to(uint32_t most) {
  std::vector<uint8_t> steps(most + 1, 0);
  for (uint32_t n = 1; n <= most; n *= 2) {
    steps[n] = 1;
    if (n > 1 && n + n / 2 <= most) steps[n + n / 2] = 1;
  }
  steps[most] = 1;
  return steps;
}

bool is_unknown(const BatchLaw& law) { return law == BatchLaw{}; }

}  // namespace

Stages::Stages(const Model& model) : model_(model) {
  for (uint32_t i = 0; i < model.inputs.size(); ++i) {
    if (!model.inputs[i].is_stage) continue;
    Stage& stage = stages_.emplace_back();
    stage.input = i;
    stage.steps = {{0, 0}, steps_up_to(std::max(1U, max_pkts(stage)))};
  }
}

uint32_t Stages::module(uint32_t s) const { return model_.inputs[stages_[s].input].module; }

uint32_t Stages::trigger_pkts(uint32_t s) const {
  const Stage& stage = stages_[s];
  const bool is_held = is_decided(s) && stage.seen.is_idle_hold;
  return is_held && stage.seen.batch_pkts > stage.need_pkts ? stage.seen.batch_pkts : 0;
}

// Where nothing waits for a batch while the device is free, batches are what comes while it is not, and age
// limits see to SLOs: a smaller batch would only queue at the device.
uint32_t Stages::batch_pkts(uint32_t s, uint32_t trigger_pkts) const {
  const Stage& stage = stages_[s];
  return stage.seen.is_idle_hold ? std::max(trigger_pkts, stage.need_pkts) : max_pkts(stage);
}

void Stages::measure(const Snapshot& snapshot, Stage& stage) const {
  const exec::InputPeriod& input = snapshot.inputs[stage.input];
  const exec::StageTotals& seen = input.stage.totals;
  if (stage.own_limit_ns == 0) stage.own_limit_ns = input.stage.age_limit_ns;
  stage.seen = input.stage;
  if (is_unknown(stage.seen.law)) stage.seen.law = kUnknownLaw;
  const auto offered = static_cast<double>(input.offered_pkts);
  stage.rate.follow(offered / std::max(1.0, static_cast<double>(snapshot.period_ns)), offered);
  if (seen.sent_pkts > 0) {
    stage.pkt_bytes = static_cast<double>(seen.bytes) / static_cast<double>(seen.sent_pkts);
  }
  if (seen.jobs == 0) return;
  const auto jobs = static_cast<double>(seen.jobs);
  const double run_ns = static_cast<double>(seen.run_ns) / jobs;
  stage.job_pkts = std::max(1.0, static_cast<double>(seen.pkts) / jobs);
  stage.scale.follow(run_ns / stage.seen.law.time_ns(stage.job_pkts, stage.pkt_bytes), jobs);
  stage.wait_ns.follow(std::max(0.0, static_cast<double>(seen.job_ns) / jobs - run_ns), jobs);
}

// Of the device's time, if the stage sends a batch once in a cycle.
double Stages::device_share(const Stage& stage, double cycle_ns) const {
  const double most_pkts = std::max(1U, max_pkts(stage));
  const double pkts = std::clamp(stage.rate.value * cycle_ns, 1.0, most_pkts);
  return stage.rate.value * stage.times() * stage.seen.law.busy_ns(pkts, stage.pkt_bytes) / pkts;
}

// The stages that share a thread of the device with this one; at random, where there are more than threads.
std::vector<const Stages::Stage*> Stages::beside(const Stage& stage) const {
  std::vector<const Stage*> all;
  for (const Stage& other : stages_) {
    if (other.seen.device == stage.seen.device) all.push_back(&other);
  }
  if (all.size() <= stage.seen.device_threads) all.assign(1, &stage);
  return all;
}

// The shortest cycle in which the device is busy for no more than this, with a batch of each of these stages,
// to 1 %. Their batches then fill in the same time, as they would if each sent what came while the device was
// busy. If there is none, one beyond which batches hardly save anything.
double Stages::shortest_cycle_ns(const std::vector<const Stage*>& stages, double most_busy) const {
  double high_ns = 0;
  for (const Stage* stage : stages) {
    high_ns += kLongest * stage->times() * stage->seen.law.busy_ns(1, stage->pkt_bytes);
  }
  double low_ns = kShortest * high_ns;
  const double threads = stages.size() == 1 ? 1 : stages.front()->seen.device_threads;
  while (high_ns > kNearlyOne * low_ns) {
    const double middle_ns = std::sqrt(low_ns * high_ns);
    double busy = 0;
    for (const Stage* stage : stages) busy += device_share(*stage, middle_ns) / threads;
    (busy <= most_busy ? high_ns : low_ns) = middle_ns;
  }
  return high_ns;
}

void Stages::find_need(Stage& stage) const {
  const std::vector<const Stage*> all = beside(stage);
  const double most_pkts = max_pkts(stage);
  const double pkts =
      std::clamp(stage.rate.value * shortest_cycle_ns(all, kMostBusy), 1.0, most_pkts);
  if (stage.need_pkts < pkts || stage.need_pkts > kStays * pkts) {
    stage.need_pkts = static_cast<uint32_t>(std::ceil(pkts));
  }
  stage.least_limit_ns = shortest_cycle_ns(all, kOverloaded);
}

void Stages::set(const Snapshot& snapshot, Stage& stage, ProgramModule& module) const {
  const exec::ControlInput& about = model_.inputs[stage.input];
  const auto taken = static_cast<double>(snapshot.inputs[stage.input].taken_pkts);
  const auto in_pkts = static_cast<double>(snapshot.tasks[about.task].in_pkts);
  module = {.cost_per_batch_ns = kJobNs, .task = about.task};
  module.share = in_pkts > 0 ? std::min(1.0, taken / in_pkts) : 0;
  // Batches are what came while the device was busy, unless they are waited for.
  const bool is_held = is_decided(stage) && stage.seen.is_idle_hold;
  module.least_pkts = module.arriving_pkts = is_held ? stage.need_pkts : stage.job_pkts;
  module.max_pkts = taken > 0 && is_held ? about.max_job_pkts : 0;
  module.stair = &stage.steps;
  if (stage.seen.device == nullptr) {  // the worker's time is in its runs
    module.cost_per_batch_ns = 0;
    return;
  }
  const double at = stage.job_pkts;
  const auto time_ns = [&](double n) {
    return stage.times() * stage.seen.law.time_ns(n, stage.pkt_bytes);
  };
  module.away_pkt_ns = std::max(0.0, (time_ns(2 * at) - time_ns(at / 2)) / (1.5 * at));
  module.away_batch_ns = std::max(0.0, time_ns(at) - at * module.away_pkt_ns) + stage.wait_ns.value;
}

void Stages::update(const Snapshot& snapshot, uint32_t first, Program& program) {
  if (snapshot.inputs.size() != model_.inputs.size()) return;
  for (Stage& stage : stages_) measure(snapshot, stage);
  for (uint32_t s = 0; s < stages_.size(); ++s) {
    if (is_decided(s)) find_need(stages_[s]);
    set(snapshot, stages_[s], program.modules[first + s]);
  }
}

}  // namespace batchplane::slo
