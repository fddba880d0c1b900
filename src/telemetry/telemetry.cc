// SPDX-License-Identifier: BSD-3-Clause
// telemetry.cc - workers, modules, buffers and drops as plain values.
#include "telemetry/telemetry.h"

#include <algorithm>
#include <cmath>

namespace batchplane::telemetry {
namespace {

using exec::Balance;
using exec::ModuleSnapshot;
using exec::WorkerSnapshot;
using exec::WorkerStats;

// Minimum coefficient of variation of the sampled batch sizes at which both costs are reported.
constexpr double kMinSpread = 0.05;
constexpr uint64_t kMinSamples = 16;

Value optional_value(bool is_known, double number) { return is_known ? Value(number) : Value(); }

uint64_t dropped_by(const ModuleSnapshot& module) {
  uint64_t sum = 0;
  for (const uint64_t pkts : module.drops) sum += pkts;
  return sum;
}

Value worker_value(const WorkerSnapshot& worker) {
  const WorkerStats& stats = worker.stats;
  const uint64_t loop_ns = stats.busy_ns + stats.idle_ns;
  return Dict{
      {"name", worker.name},
      {"core", worker.core < 0 ? Value() : Value(worker.core)},
      {"loops", stats.loops},
      {"runs", worker.runs},
      {"clock_reads", worker.clock_reads},
      {"originated_pkts", worker.originated_pkts},
      {"busy_ratio",
       loop_ns == 0 ? 0.0 : static_cast<double>(stats.busy_ns) / static_cast<double>(loop_ns)},
      {"gaps", Dict{{"count", stats.gaps}, {"max_ns", stats.gap_max_ns}, {"sum_ns", stats.gap_ns}}},
      {"regimes_ns",
       Dict{{"busy", stats.busy_ns}, {"idle", stats.idle_ns}, {"control", stats.control_ns}}}};
}

Value module_value(const ModuleSnapshot& module, double cycles_per_ns) {
  const CostSamples& cost = module.cost;
  const std::optional<CostLaw::Line> law = sampled_cost(cost, cycles_per_ns);
  const double sampled_ns = static_cast<double>(cost.cycles) / cycles_per_ns;
  return Dict{
      {"name", module.name},
      {"kind", module.kind},
      {"worker", module.worker},
      {"batches", module.batches},
      {"pkts", module.pkts},
      {"batch_mean_pkts",
       optional_value(module.batches != 0,
                      static_cast<double>(module.pkts) / static_cast<double>(module.batches))},
      {"ns_per_pkt", optional_value(cost.pkts != 0, sampled_ns / static_cast<double>(cost.pkts))},
      {"cost_per_batch_ns", optional_value(law.has_value(), law ? law->cost_per_batch_ns : 0)},
      {"cost_per_pkt_ns", optional_value(law.has_value(), law ? law->cost_per_pkt_ns : 0)},
      {"sampled", Dict{{"batches", cost.batches}, {"pkts", cost.pkts}, {"ns", sampled_ns}}},
      {"kept_pkts", module.kept_pkts},
      {"dropped_pkts", dropped_by(module)}};
}

// Empty where tasks run to completion.
Dict unit_value(const exec::UnitSnapshot& unit) {
  if (!unit.is_unit) return {};
  return Dict{{"weight", unit.weight},
              {"queue_pkts", unit.queue_pkts == 0 ? Value() : Value(unit.queue_pkts)},
              {"max_held_pkts", unit.max_held_pkts},
              {"pace_ns", unit.pace_ns == 0 ? Value() : Value(unit.pace_ns)},
              {"turns", unit.turns},
              {"charged", unit.charged},
              {"share", unit.share},
              {"congested", unit.congested}};
}

Value buffer_value(const ModuleSnapshot& module) {
  Dict causes;
  for (uint32_t c = 0; c < exec::kCauses; ++c) {
    const exec::CauseCount& count = module.causes[c];
    causes[exec::kCauseNames[c]] =
        Dict{{"firings", count.firings}, {"pkts", count.pkts}, {"wait_ns", count.wait_ns}};
  }
  Dict told = unit_value(module.unit);
  told.merge(Dict{{"module", module.name},
                  {"trigger_pkts", module.trigger_pkts},
                  {"age_limit_ns", module.age_limit_ns},
                  {"held_pkts", module.held_pkts},
                  {"arrived_batches", module.arrived_batches},
                  {"arrived_pkts", module.arrived_pkts},
                  {"late_releases", module.late_releases},
                  {"causes", std::move(causes)}});
  return told;
}

Value input_value(const exec::InputSnapshot& input) {
  const exec::InputCounts& counts = input.counts;
  return Dict{{"module", input.module},
              {"offered_pkts", counts.offered_pkts()},
              {"taken_pkts", counts.taken_pkts},
              {"lost_pkts", counts.arrivals.lost_pkts},
              {"waiting_pkts", counts.ring.waiting_pkts},
              {"backlog_pkts", counts.arrivals.backlog_pkts},
              {"ring_pkts", counts.ring.ring_pkts},
              {"poll_pkts", input.poll_pkts},
              {"fill_mean_pkts", counts.ring.fill.mean_pkts()},
              {"fill_max_pkts", counts.ring.fill.max_pkts()}};
}

}  // namespace

std::optional<CostLaw::Line> sampled_cost(const CostSamples& samples, double cycles_per_ns) {
  if (samples.batches < kMinSamples) return std::nullopt;
  const CostSums sums(samples, 1 / cycles_per_ns);
  if (sums.variation() < kMinSpread) return std::nullopt;
  return fit_line(sums, {}, 0);
}

Value balance_value(const Balance& balance) {
  const uint64_t in = balance.in_pkts + balance.originated_pkts + balance.ahead_pkts;
  const uint64_t known = balance.sent_pkts + balance.dropped_pkts + balance.held_pkts;
  return Dict{{"in_pkts", balance.in_pkts},
              {"originated_pkts", balance.originated_pkts},
              {"sent_pkts", balance.sent_pkts},
              {"dropped_pkts", balance.dropped_pkts},
              {"held_pkts", balance.held_pkts},
              {"ahead_pkts", balance.ahead_pkts},
              {"in_flight_pkts", static_cast<int64_t>(in - known)},
              {"is_exact", balance.is_exact()}};
}

Value runtime_value(const Snapshot& snapshot, double cycles_per_ns) {
  List workers;
  for (const WorkerSnapshot& worker : snapshot.workers) workers.push_back(worker_value(worker));
  List modules;
  for (const ModuleSnapshot& module : snapshot.modules) {
    modules.push_back(module_value(module, cycles_per_ns));
  }
  List inputs;
  for (const exec::InputSnapshot& input : snapshot.inputs) inputs.push_back(input_value(input));
  return Dict{{"now_ns", snapshot.now_ns},
              {"epoch_ns", snapshot.now_ns - std::min(snapshot.now_ns, snapshot.previous_ns)},
              {"workers", std::move(workers)},
              {"balance", balance_value(snapshot.balance)},
              {"inputs", std::move(inputs)},
              {"modules", std::move(modules)}};
}

Value buffers_value(const Snapshot& snapshot, uint32_t worst_firings_per_run) {
  List buffers;
  for (const ModuleSnapshot& module : snapshot.modules) {
    if (module.has_buffer || module.unit.is_unit) buffers.push_back(buffer_value(module));
  }
  return Dict{{"buffers", std::move(buffers)}, {"worst_firings_per_run", worst_firings_per_run}};
}

Value drops_value(const Snapshot& snapshot, const std::vector<exec::DropReasonInfo>& reasons) {
  List drops;
  const auto add = [&](const std::string& module, size_t r, uint64_t pkts, uint64_t handed_on) {
    if (pkts + handed_on == 0) return;
    drops.emplace_back(Dict{{"module", module},
                            {"reason", reasons[r].name},
                            {"pkts", pkts},
                            {"handed_on_pkts", handed_on},
                            {"meaning", reasons[r].meaning},
                            {"remedy", reasons[r].remedy}});
  };
  for (const ModuleSnapshot& module : snapshot.modules) {
    for (size_t r = 0; r < module.drops.size() && r < reasons.size(); ++r) {
      add(module.name, r, module.drops[r], module.handed_on[r]);
    }
  }
  // Unconnected gates, and modules that an apply has removed.
  for (size_t r = 0; r < snapshot.other_drops.size() && r < reasons.size(); ++r) {
    add("(elsewhere)", r, snapshot.other_drops[r], 0);
  }
  return drops;
}

}  // namespace batchplane::telemetry
