// SPDX-License-Identifier: BSD-3-Clause
#include "slo/estimate/load.h"

#include <algorithm>
#include <iterator>

#include "exec/ring_size.h"

namespace batchplane::slo {
namespace {
constexpr double kBusyIdle = 0.02;   // idle share of a worker that is always busy
constexpr double kDrainPeriods = 4;  // in which a backlog is to be worked off
constexpr double kLongGaps = 0.1;    // of a period
constexpr double kWorkKept = 0.9;    // of what periods before count for; 10 of them in all

// By task: modules that no buffer stands before, the inputs that bring packets from outside among them.
std::vector<std::vector<uint32_t>> modules_outside(const Model& model) {
  std::vector<bool> is_inside(model.modules.size());
  for (const Segment& segment : segments_of(model)) {
    for (const uint32_t m : segment.members) is_inside[m] = true;
  }
  // What is sampled of a queue is another task's work.
  for (const exec::ControlInput& input : model.inputs) {
    if (input.is_queue) is_inside[input.module] = true;
  }
  std::vector<std::vector<uint32_t>> outside(model.tasks.size());
  for (size_t t = 0; t < model.tasks.size(); ++t) {
    for (const auto& modules : {model.tasks[t].inputs, model.tasks[t].modules}) {
      std::ranges::copy_if(modules, std::back_inserter(outside[t]),
                           [&](uint32_t m) { return !is_inside[m]; });
    }
  }
  return outside;
}

}  // namespace

Load::Load(const Model& model)
    : model_(model),
      is_fed_(model.tasks.size()),
      outside_(modules_outside(model)),
      idle_(model.tasks.size()),
      work_(model.tasks.size()),
      has_long_gaps_(model.tasks.size()),
      visits_(model.tasks.size()),
      left_pkts_(model.tasks.size()),
      spared_ns_(model.tasks.size()),
      poll_limits_pkts_(model.tasks.size(), model.batch_limit_pkts),
      full_ns_(model.tasks.size()) {
  for (size_t t = 0; t < model.tasks.size(); ++t) {
    is_fed_[t] = std::ranges::any_of(
        model.tasks[t].inputs, [&](uint32_t input) { return !model.modules[input].has_buffer; });
  }
}

// Whether packets are lost or queue up outside the inputs. Sets offered_pkts to the number that
// came.
bool Load::count_inputs(const Snapshot& snapshot, const ProgramView& view, double& offered_pkts) {
  bool is_waiting = false;
  offered_pkts = 0;
  ring_pkts_ = exec::largest_ring_pkts(model_, snapshot);
  window_pkts_ = 0;
  waiting_pkts_ = 0;
  std::ranges::fill(left_pkts_, 0.0);
  for (size_t i = 0; i < std::min(model_.inputs.size(), snapshot.inputs.size()); ++i) {
    const exec::ControlInput& about = model_.inputs[i];
    // Packets of queues and schedulers came in elsewhere.
    if (about.is_queue || about.is_scheduler) continue;
    const exec::InputPeriod& input = snapshot.inputs[i];
    offered_pkts += static_cast<double>(input.offered_pkts);
    is_waiting |= input.lost_pkts != 0 || input.backlog_pkts != 0;
    waiting_pkts_ += static_cast<double>(input.backlog_pkts);
    window_pkts_ += about.window_pkts;
    const double polled_pkts = view.program().tasks[about.task].run_pkts;
    left_pkts_[about.task] = std::max(left_pkts_[about.task], input.fill_mean_pkts - polled_pkts);
  }
  // Without counts of its inputs, a task's full runs mean a ring that is never empty.
  for (uint32_t t = 0; snapshot.inputs.empty() && t < model_.tasks.size(); ++t) {
    if (is_fed_[t] && view.is_input_full(snapshot, t)) {
      left_pkts_[t] = std::max(0.0, static_cast<double>(ring_pkts_) - poll_limits_pkts_[t]);
    }
  }
  return is_waiting;
}

// What packets cost outside all segments in a run of the task's worker, in proportion to their number.
double Load::outside_ns(const Snapshot& snapshot, uint32_t t) const {
  double sum_ns = 0;
  double n_runs = 0;
  for (uint32_t other = 0; other < model_.tasks.size(); ++other) {
    if (model_.tasks[other].worker != model_.tasks[t].worker) continue;
    n_runs += static_cast<double>(snapshot.tasks[other].runs);
    for (const uint32_t m : outside_[other]) {
      const exec::ModulePeriod& module = snapshot.modules[m];
      sum_ns += static_cast<double>(module.pkts) * cost_line(module).cost_per_pkt_ns;
    }
  }
  return sum_ns / std::max(1.0, n_runs);
}

// The packets of a run share what it costs once. Until a full run has been seen, that is what laws do
// not say to grow with each packet.
void Load::compare_with_full_runs(const Snapshot& snapshot, const ProgramView& view) {
  for (uint32_t t = 0; t < model_.tasks.size(); ++t) {
    const ProgramTask& task = view.program().tasks[t];
    const double now_ns = task.other_run_ns / task.run_pkts;
    if (view.is_input_full(snapshot, t)) {
      full_ns_[t].follow(now_ns, static_cast<double>(snapshot.tasks[t].runs));
    }
    // A run's costs are those of its worker's runs, on average (`ProgramView::update_task`).
    const double by_pkts_ns = outside_ns(snapshot, t);
    const double shared_ns = std::max(0.0, task.other_run_ns - by_pkts_ns) / task.run_pkts;
    const double full_ns = full_ns_[t].is_known
                               ? full_ns_[t].value
                               : now_ns - shared_ns * (1 - task.run_pkts / poll_limits_pkts_[t]);
    spared_ns_[t] = std::max(0.0, now_ns - full_ns);
  }
}

// Periods of which gaps left little count for little.
void Load::follow_work(const exec::TaskPeriod& task, uint32_t t) {
  const uint64_t idle_gap_ns = task.gap_ns - std::min(task.gap_ns, task.busy_gap_ns);
  const double work_ns = task.work_ns();
  const auto idle_ns = static_cast<double>(task.idle_ns - std::min(task.idle_ns, idle_gap_ns));
  has_long_gaps_[t] = static_cast<double>(task.gap_ns) >=
                      kLongGaps * static_cast<double>(task.busy_ns + task.idle_ns);
  Work& sums = work_[t];
  sums.work_ns = kWorkKept * sums.work_ns + work_ns;
  sums.own_ns = kWorkKept * sums.own_ns + work_ns + idle_ns;
}

// At saturation the busiest worker is only idle while it waits for others: its ring is as full as they can
// keep it.
bool Load::sets_pace(uint32_t t) const {
  return idle_[t] < (is_saturated_ ? least_idle_ : 0) + kBusyIdle;
}

bool Load::update(const Snapshot& snapshot, const ProgramView& view) {
  const auto entered = static_cast<double>(exec::entered_pkts(model_, snapshot));
  if (entered <= 0 || snapshot.period_ns == 0) return false;
  const auto period_ns = static_cast<double>(snapshot.period_ns);
  for (uint32_t t = 0; t < model_.tasks.size(); ++t) {
    poll_limits_pkts_[t] = exec::poll_limit_pkts(model_, snapshot.tasks[t]);
  }
  double offered_pkts = 0;
  const bool is_waiting = count_inputs(snapshot, view, offered_pkts);
  compare_with_full_runs(snapshot, view);
  // Packets drained from a backlog did not arrive in this period.
  const double came_pkts = offered_pkts > 0 ? offered_pkts : entered;
  offered_.follow(came_pkts / period_ns, entered);
  rate_pkts_per_ns_ = entered / period_ns;
  // A worker that takes all packets there are may be always busy and still carry more at a time.
  bool is_full = false;
  least_idle_ = 1;
  for (uint32_t t = 0; t < model_.tasks.size(); ++t) {
    const exec::TaskPeriod& task = snapshot.tasks[t];
    visits_[t] = static_cast<double>(task.in_pkts) / entered;
    const auto idle_ns = static_cast<double>(task.idle_ns);
    const double all_ns = idle_ns + static_cast<double>(task.busy_ns);
    idle_[t] = all_ns > 0 ? idle_ns / all_ns : 1;
    follow_work(task, t);
    is_full |= is_fed_[t] && view.is_input_full(snapshot, t);
    least_idle_ = std::min(least_idle_, idle_[t]);
  }
  is_saturated_ = window_pkts_ != 0 || is_full || (is_waiting && least_idle_ < kBusyIdle);
  // An input that never has room may be offered just the packets that are taken; one that had room
  // before may now be offered more.
  full_periods_ = is_full && !is_waiting ? full_periods_ + 1 : 0;
  drain_pkts_per_ns_ = waiting_pkts_ / (kDrainPeriods * period_ns);
  offered_pkts_per_ns_ = full_periods_ <= kFullPeriods && window_pkts_ == 0 ? offered_.value : 0;
  return true;
}

}  // namespace batchplane::slo
