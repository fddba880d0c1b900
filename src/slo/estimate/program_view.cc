// SPDX-License-Identifier: BSD-3-Clause
#include "slo/estimate/program_view.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {
constexpr double kFullPolls = 0.95;  // of what a poll may take: the input counts as never empty
constexpr double kChanceSigmas = 3;  // for one count
constexpr double kMinScale =
    0.5;  // of measured over modelled spread: beyond, other things are to blame
constexpr double kMaxScale = 3;
constexpr double kMaxAged = 0.2;   // share of releases: with more, runs are not those of triggers
constexpr double kAgedKept = 0.9;  // per period, of the share of releases by age
constexpr double kStairs = 0.15;   // of a batch's cost: beyond this the cost is not a line
// Releases by age may miss their first packet's SLO this many times as often.
constexpr double kOftener = 10;

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::vector<uint32_t> head_of_modules(const Model& model, const std::vector<Segment>& segments,
                                      const Stages& stages) {
  std::vector<uint32_t> head_of = segment_of_heads(model, segments);
  auto head = static_cast<uint32_t>(segments.size());
  for (uint32_t s = 0; s < stages.size(); ++s) head_of[stages.module(s)] = head++;
  return head_of;
}

}  // namespace

ProgramView::ProgramView(const Model& model, const Settings& settings)
    : model_(model),
      segments_(segments_of(model)),
      stages_(model),
      head_of_(head_of_modules(model, segments_, stages_)),
      next_(successors_of(model)),
      heads_(segments_.size() + stages_.size()),
      tasks_(model.tasks.size()),
      current_(heads_.size(), 0),
      executed_pkts_(heads_.size(), 1),
      min_service_ns_(model.flows.size(), 0),
      egress_(model.flows.size()),
      is_scheduler_(model.tasks.size(), false),
      program_{.modules = std::vector<ProgramModule>(heads_.size()),
               .tasks = std::vector<ProgramTask>(model.tasks.size())},
      arrivals_(static_cast<uint32_t>(segments_.size()), edges(), model.batch_limit_pkts,
                program_) {
  for (const exec::ControlInput& input : model.inputs) {
    if (input.is_scheduler) is_scheduler_[input.task] = true;
  }
  program_.sigmas = sigmas_of(settings.percentile);
  age_sigmas_ = std::min(kSigmasAt99, sigmas_of(1 - kOftener * (1 - settings.percentile)));
  program_.fill_share = settings.percentile >= 0.9 ? 1 : std::max(0.5, settings.percentile);
  const auto n_heads = static_cast<double>(std::max<size_t>(1, heads_.size()));
  chance_sigmas_ = std::sqrt(kChanceSigmas * kChanceSigmas + 2 * std::log(n_heads));
  program_.hold_ns = settings.hold_ns_per_pkt;
  program_.release_ns = settings.hold_ns_per_batch;
  program_.counts_firings = true;
  // Where only a share of the fill counts, that share already covers mixing.
  program_.mixes_fills = program_.sigmas > 0 && settings.percentile < 1 && program_.fill_share == 1;
  for (uint32_t h = 0; h < segments_.size(); ++h) {
    program_.modules[h].task = model.modules[segments_[h].head].task;
    program_.modules[h].sure_pkts = 1;
  }
  lay_out_flows();
}

// A flow's controlled modules and tasks in the order of its path, each once.
void ProgramView::lay_out_flows() {
  for (const exec::ControlFlow& flow : model_.flows) {
    ProgramFlow row;
    std::vector<uint32_t>& modules = program_.flow_modules;
    std::vector<uint32_t>& tasks = program_.flow_tasks;
    row.modules_begin = static_cast<uint32_t>(modules.size());
    row.tasks_begin = static_cast<uint32_t>(tasks.size());
    for (const uint32_t m : flow.path) {
      const uint32_t head = head_of_[m];
      if (head != kNoSegment &&
          std::find(modules.begin() + row.modules_begin, modules.end(), head) == modules.end()) {
        modules.push_back(head);
      }
      // Packets wait there for the link, not for the work of a task.
      const uint32_t task = model_.modules[m].task;
      if (is_scheduler_[task]) continue;
      if (std::find(tasks.begin() + row.tasks_begin, tasks.end(), task) == tasks.end()) {
        tasks.push_back(task);
      }
    }
    row.modules_end = static_cast<uint32_t>(modules.size());
    row.tasks_end = static_cast<uint32_t>(tasks.size());
    program_.flows.push_back(row);
  }
  share_paths(program_);
}

// From heads to those next behind them.
std::vector<Arrivals::Edge> ProgramView::edges() const {
  std::vector<Arrivals::Edge> edges;
  const std::vector<std::vector<uint32_t>> next = next_segments(model_, segments_);
  for (uint32_t h = 0; h < segments_.size(); ++h) {
    for (const uint32_t after : next[h]) edges.emplace_back(h, after);
  }
  for (auto h = static_cast<uint32_t>(segments_.size()); h < heads_.size(); ++h) {
    for (const uint32_t to : next_[module(h)]) {
      const uint32_t after = head_of_[to];
      if (after != kNoSegment && !is_stage(after)) edges.emplace_back(h, after);
    }
  }
  return edges;
}

// A_v and M_v: members behind the head run once per batch. Behind a split they run as often as a
// batch has packets for them, on their share of the packets.
void ProgramView::aggregate(const Snapshot& snapshot, uint32_t head) {
  const std::vector<uint32_t>& members = segments_[head].members;
  ProgramModule& sum = program_.modules[head];
  sum.cost_per_batch_ns = 0;
  sum.cost_per_pkt_ns = 0;
  heads_[head].heaviest_ns = 0;
  // Members come in the order of a walk from the head, so each part is known before it is used.
  std::vector<std::pair<double, double>>& parts = parts_;
  parts.assign(members.size(), {0, 0});
  parts[0] = {1, 1};
  for (size_t i = 0; i < members.size(); ++i) {
    const uint32_t m = members[i];
    const auto [batches, pkts] = parts[i];
    const CostLaw::Line& cost = cost_line(snapshot.modules[m]);
    sum.cost_per_batch_ns += batches * cost.cost_per_batch_ns;
    sum.cost_per_pkt_ns += pkts * cost.cost_per_pkt_ns;
    const double work_ns = cost.work_ns(batches, pkts * executed_pkts_[head]);
    if (work_ns > heads_[head].heaviest_ns) {
      heads_[head].heaviest = m;
      heads_[head].heaviest_ns = work_ns;
    }
    double out_pkts = 0;
    for (const uint32_t to : next_[m]) out_pkts += static_cast<double>(snapshot.modules[to].pkts);
    for (const uint32_t to : next_[m]) {
      const auto at = std::find(members.begin() + 1, members.end(), to);
      if (at == members.end()) continue;
      const auto to_pkts = static_cast<double>(snapshot.modules[to].pkts);
      const bool is_split = next_[m].size() > 1;
      const double share = is_split ? ratio(to_pkts, out_pkts) : 1;
      const double batch = std::max(1.0, executed_pkts_[head]);
      auto& part = parts[static_cast<size_t>(at - members.begin())];
      part.first += batches * (share >= 1 ? 1 : batch * share / branch_batch_pkts(batch, share));
      part.second += pkts * share;
    }
  }
}

std::pair<uint32_t, double> ProgramView::heaviest(uint32_t h) const {
  const Head& head = heads_[h];
  const ProgramModule& costs = program_.modules[h];
  const double all_ns = costs.cost_per_batch_ns + costs.cost_per_pkt_ns * executed_pkts_[h];
  if (head.heaviest_ns <= 0 || all_ns <= 0) return {module(h), 1};
  return {head.heaviest, std::min(1.0, head.heaviest_ns / all_ns)};
}

// Members that see the head's whole batches cost what their tables say; members behind a split cost
// what their lines say.
void ProgramView::set_stair(const Snapshot& snapshot, uint32_t h) {
  const std::vector<uint32_t>& members = segments_[h].members;
  ProgramModule& module = program_.modules[h];
  Stair& stair = heads_[h].stair;
  module.stair = nullptr;
  heads_[h].extra_ns = 0;
  if (std::ranges::none_of(members,
                           [&](uint32_t m) { return snapshot.modules[m].cost.is_table(); })) {
    return;
  }
  stair.extra_ns.assign(model_.batch_limit_pkts + 1, 0);
  for (size_t i = 0; i < members.size(); ++i) {
    const CostLaw& law = snapshot.modules[members[i]].cost;
    if (!law.is_table() || parts_[i].first < 1 || parts_[i].second < 1) continue;
    // A profile lists every size, so points are read by index, without a search.
    const std::span<const CostLaw::Point> points = law.points();
    for (uint32_t n = 1; n <= model_.batch_limit_pkts; ++n) {
      const bool is_listed = n <= points.size() && points[n - 1].size_pkts == n;
      stair.extra_ns[n] += (is_listed ? points[n - 1].ns : law.ns(n)) - law.line().ns(n);
    }
  }
  double worst = 0;
  for (uint32_t n = 1; n <= model_.batch_limit_pkts; ++n) {
    const double line_ns = module.cost_per_batch_ns + module.cost_per_pkt_ns * n;
    worst = std::max(worst, ratio(std::abs(stair.extra_ns[n]), line_ns));
  }
  if (worst < kStairs) return;
  stair.extra_ns[0] = stair.extra_ns[1];
  module.stair = &stair;
  heads_[h].extra_ns = stair.extra_at(executed_pkts_[h]);
}

void ProgramView::Head::count(const Releases& in_period) {
  releases = in_period;
  const double was_aged = aged.value;
  if (releases.all > 0) aged.follow(releases.by_age / releases.all, releases.by_age);
  // What left by age once, as a flow sent less, may do so again.
  aged.value = std::max(aged.value, kAgedKept * was_aged);
}

void ProgramView::update_head(const Snapshot& snapshot, uint32_t h) {
  const exec::ModulePeriod& period = snapshot.modules[segments_[h].head];
  const uint32_t task = program_.modules[h].task;
  Head& head = heads_[h];
  const double limit = model_.batch_limit_pkts;
  const auto arrived = static_cast<double>(period.arrived_pkts);
  head.batches = static_cast<double>(period.batches);
  head.pkts = static_cast<double>(period.pkts);
  executed_pkts_[h] = head.batches > 0 ? head.pkts / head.batches : 1;
  const auto in_pkts = static_cast<double>(snapshot.tasks[task].in_pkts);
  head.share.follow(ratio(arrived, in_pkts), arrived, chance_sigmas_);
  if (period.arrived_batches > 0) {
    const auto n = static_cast<double>(period.arrived_batches);
    head.arriving.follow(std::clamp(arrived / n, 1.0, limit), n, chance_sigmas_);
  }
  current_[h] = std::min(period.trigger_pkts, model_.batch_limit_pkts);
  const auto& aged = period.causes[static_cast<uint32_t>(exec::Cause::kAge)];
  Releases releases{.by_age = static_cast<double>(aged.firings)};
  for (const exec::CauseCount& cause : period.causes) {
    releases.all += static_cast<double>(cause.firings);
  }
  head.count(releases);
  aggregate(snapshot, h);
  set_stair(snapshot, h);
  ProgramModule& module = program_.modules[h];
  module.share = arrived > 0 ? head.share.value : 0;
  module.arriving_pkts = head.arriving.is_known ? head.arriving.value : 1;
  module.max_pkts = arrived > 0 ? model_.batch_limit_pkts : 0;
  module.aged_share = head.aged.value;
  mark_worth(module);
}

double ProgramView::work_ns(uint32_t h) const {
  const ProgramModule& module = program_.modules[h];
  return heads_[h].batches * (module.cost_per_batch_ns + heads_[h].extra_ns) +
         heads_[h].pkts * module.cost_per_pkt_ns;
}

// Variance of the work of all runs in the period. Each firing counts by itself; a head without a
// buffer counts together with the firing of the buffer before it.
double ProgramView::variance_of_runs(uint32_t t) const {
  const auto rides_along = [&](uint32_t h) {
    const uint32_t before = program_.modules[h].before;
    return before != kNoModule && current_[h] <= 0 && current_[before] > 0;
  };
  double variance = 0;
  std::vector<double> following_ns(heads_.size(), 0);  // work that its firings caused elsewhere
  for (uint32_t h = 0; h < heads_.size(); ++h) {
    if (rides_along(h)) following_ns[program_.modules[h].before] += work_ns(h);
  }
  for (uint32_t h = 0; h < heads_.size(); ++h) {
    if (program_.modules[h].task != t || heads_[h].batches <= 0 || rides_along(h)) continue;
    const double firings_ns = work_ns(h) + following_ns[h];
    const ProgramModule& module = program_.modules[h];
    variance +=
        firings_ns * firings_ns / heads_[h].batches *
        irregularity_of(program_, module, executed_pkts_[h], 1, is_holding(module, current_[h]));
  }
  return variance;
}

// Counts the time in a task's period that its segments explain, and the task's releases.
void ProgramView::count_task(const Snapshot& snapshot, uint32_t t) {
  Task& task = tasks_[t];
  task.explained_ns = 0;
  task.releases = {};
  task.n_runs = static_cast<double>(is_scheduler_[t] ? 0 : snapshot.tasks[t].runs);
  for (uint32_t h = 0; h < heads_.size(); ++h) {
    const ProgramModule& module = program_.modules[h];
    if (module.task != t || heads_[h].batches <= 0) continue;
    task.releases.all += heads_[h].releases.all;
    task.releases.by_age += heads_[h].releases.by_age;
    task.explained_ns += work_ns(h);
    if (is_holding(module, current_[h])) {
      task.explained_ns +=
          heads_[h].batches * program_.release_ns + heads_[h].pkts * program_.hold_ns;
    }
  }
}

void ProgramView::update_task(const Snapshot& snapshot, uint32_t t) {
  const exec::TaskPeriod& period = snapshot.tasks[t];
  Task& task = tasks_[t];
  ProgramTask& out = program_.tasks[t];
  const auto in_pkts = static_cast<double>(period.in_pkts);
  const double runs = task.n_runs;
  out = {.run_pkts = 1};
  if (in_pkts <= 0 || runs <= 0) return;
  task.rate.follow(ratio(in_pkts, static_cast<double>(snapshot.period_ns)), in_pkts);
  task.run_pkts.follow(std::max(1.0, in_pkts / runs), runs);
  out.rate_pkts_per_ns = task.rate.value;
  out.run_pkts = task.run_pkts.value;
  // Time per run of the worker that segments do not explain: inputs, modules before the first
  // buffers, polls. Packets also wait for the worker's other tasks, but that time is not this
  // task's load.
  double all_runs = 0;
  double all_explained_ns = 0;
  for (uint32_t other = 0; other < tasks_.size(); ++other) {
    if (model_.tasks[other].worker != model_.tasks[t].worker) continue;
    all_runs += tasks_[other].n_runs;
    all_explained_ns += tasks_[other].explained_ns;
  }
  out.other_run_ns = std::max(0.0, (period.work_ns() - all_explained_ns) / all_runs);
  out.beside_run_ns =
      (all_explained_ns - task.explained_ns + out.other_run_ns * (all_runs - runs)) / runs;
  compare_spread(period, t);
}

// Releases by age come in clumps that better limits would avoid, so a period with many of them can
// only lower the scale.
void ProgramView::compare_spread(const exec::TaskPeriod& period, uint32_t t) {
  Task& task = tasks_[t];
  ProgramTask& out = program_.tasks[t];
  const double run_ns = out.other_run_ns + out.beside_run_ns + task.explained_ns / task.n_runs;
  const double spread_ns = kSigmasAt99 * std::sqrt(variance_of_runs(t) / task.n_runs);
  if (period.run_p99_ns > 0 && spread_ns > 0) {
    const double measured_ns = static_cast<double>(period.run_p99_ns) - run_ns;
    const double ratio = measured_ns / spread_ns;
    const double scale = std::clamp(ratio, kMinScale, kMaxScale);
    const bool is_clumped = task.releases.by_age > kMaxAged * task.releases.all;
    // Without releases runs may all be alike; with releases they are not, whatever was seen before.
    if (task.releases.all <= 0) {
      task.scale = {};
      task.bare_scale.follow(std::clamp(ratio, 0.0, kMaxScale), 16);
    } else if (!is_clumped || (task.scale.is_known && scale < task.scale.value)) {
      task.scale.follow(scale, 16);
    }
  }
  out.spread_scale = task.scale.is_known ? task.scale.value : 1;
  out.bare_scale = task.bare_scale.is_known ? task.bare_scale.value : 1;
}

bool ProgramView::is_input_full(const Snapshot& snapshot, uint32_t t) const {
  const exec::TaskPeriod& period = snapshot.tasks[t];
  const uint32_t limit_pkts = poll_limit_pkts(model_, period);
  const bool are_runs_full = exec::are_polls_full(model_, period, kFullPolls);
  const bool is_known = snapshot.inputs.size() == model_.inputs.size();
  if (!are_runs_full || limit_pkts >= model_.batch_limit_pkts || !is_known) return are_runs_full;
  // A few packets at a time may be all that come.
  for (size_t i = 0; i < model_.inputs.size(); ++i) {
    const exec::InputPeriod& input = snapshot.inputs[i];
    if (model_.inputs[i].task != t) continue;
    if (input.lost_pkts + input.backlog_pkts + input.waiting_pkts >= limit_pkts) return true;
  }
  return false;
}

void ProgramView::update_flows(const Snapshot& snapshot) {
  for (size_t f = 0; f < model_.flows.size(); ++f) {
    double min_ns = 0;
    for (const uint32_t m : model_.flows[f].path) {
      min_ns += cost_line(snapshot.modules[m]).ns(1);
    }
    min_service_ns_[f] = min_ns;
    program_.flows[f].least_turnaround_ns = 0;
    update_egress(snapshot, static_cast<uint32_t>(f));
  }
}

// Fill and egress delay are paid only once (egress/bound/bound.h). The scheduler's delay in the
// period is part of the measured delay.
void ProgramView::update_egress(const Snapshot& snapshot, uint32_t f) {
  const exec::EgressPromise& promise = snapshot.flows[f].egress;
  Egress& egress = egress_[f];
  egress = {};
  if (!promise.is_on_way) return;
  if (f >= model_.legs.of_flow.size()) return;
  for (const uint32_t l : model_.legs.of_flow[f]) {
    if (!is_scheduler_[model_.legs.all[l].task]) continue;
    egress.took_ns += ratio(static_cast<double>(snapshot.legs[l].delay_sum_ns),
                            static_cast<double>(snapshot.legs[l].pkts));
  }
  // A bound beyond the flow's SLO counts as none.
  const bool is_of_use = promise.bound_ns < snapshot.flows[f].slo_ns;
  egress.most_ns = is_of_use ? static_cast<double>(promise.bound_ns) : egress.took_ns;
}

void ProgramView::update_stages(const Snapshot& snapshot) {
  const auto first = static_cast<uint32_t>(segments_.size());
  stages_.update(snapshot, first, program_);
  for (uint32_t h = first; h < heads_.size(); ++h) {
    ProgramModule& module = program_.modules[h];
    const exec::StageTotals& jobs = stages_.totals(stage_of(h));
    heads_[h].count({.all = static_cast<double>(jobs.sent_jobs),
                     .by_age = static_cast<double>(jobs.aged_jobs)});
    heads_[h].batches = static_cast<double>(jobs.sent_jobs);
    heads_[h].pkts = static_cast<double>(jobs.sent_pkts);
    module.aged_share = heads_[h].aged.value;
    current_[h] = stages_.trigger_pkts(stage_of(h));
    executed_pkts_[h] = stages_.executed_pkts(stage_of(h));
  }
}

void ProgramView::update(const Snapshot& snapshot) {
  for (uint32_t h = 0; h < segments_.size(); ++h) update_head(snapshot, h);
  update_stages(snapshot);
  arrivals_.measure(program_, executed_pkts_);
  for (uint32_t t = 0; t < tasks_.size(); ++t) count_task(snapshot, t);
  for (uint32_t t = 0; t < tasks_.size(); ++t) update_task(snapshot, t);
  update_flows(snapshot);
}

}  // namespace batchplane::slo
