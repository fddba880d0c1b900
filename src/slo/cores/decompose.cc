// SPDX-License-Identifier: BSD-3-Clause
#include "slo/cores/decompose.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "slo/cores/decompose_view.h"

namespace batchplane::slo {
namespace {

constexpr double kLittleGain = 0.05;  // of the busiest worker's load: not worth a move
constexpr uint32_t kMaxBalanceParts = 8;
constexpr uint64_t kMostPatience = 64;  // times master_periods

}  // namespace

std::vector<exec::MoveChange> Decomposer::step(const Model& model, const Snapshot& snapshot) {
  moves_.clear();
  ++n_periods_;
  if (settings_.decompose == Decompose::kOff || model.workers.size() < 2) return {};
  if (n_periods_ % settings_.master_periods != 0) return {};
  const View view(model, snapshot, settings_.percentile, hop_);
  forget_what_is_back(view);
  undo_without_gain(view);
  if (!moves_.empty()) return moves_;
  switch (settings_.decompose) {
    case Decompose::kGreedy:
      cut_inherent(view);
      break;
    case Decompose::kNormGreedy:
      move_violating_tasks(view);
      break;
    default:
      cut_inherent(view);
      if (moves_.empty()) balance(view);
  }
  if (moves_.empty()) bring_back(view);
  return moves_;
}

// Forgets moves that were refused, or undone by somebody else.
void Decomposer::forget_what_is_back(const View& view) {
  std::erase_if(parts_, [&](const auto& entry) {
    const uint32_t m = view.module_named(entry.first);
    const uint32_t home = view.worker_named(entry.second.home);
    const bool is_known = m < view.model.modules.size() && home < view.model.workers.size();
    return !is_known || view.worker_of(m) == home;
  });
}

void Decomposer::move(const View& view, uint32_t module, uint32_t worker, const char* reason) {
  const std::string& name = view.model.modules[module].name;
  moves_.push_back({module, worker, reason});
  const auto known = parts_.find(name);
  const std::string home =
      known == parts_.end() ? view.model.workers[view.worker_of(module)] : known->second.home;
  parts_[name] = {home, n_periods_, 0};
  // A part that has to leave again soon after its return stays away for longer.
  uint64_t& patience = patience_.try_emplace(name, settings_.master_periods).first->second;
  const auto back = returned_.find(name);
  if (back == returned_.end()) return;
  const bool is_soon = n_periods_ - back->second <= 8 * patience;
  patience = is_soon ? std::min(2 * patience, kMostPatience * settings_.master_periods)
                     : uint64_t{settings_.master_periods};
}

// --- The first paper's cut -----------------------------------------------------------------------

// A task whose full batches alone take longer than a flow's SLO: at full load no triggers can keep
// the SLO there, and it is broken now, too.
void Decomposer::cut_inherent(const View& view) {
  for (uint32_t t = 0; t < view.model.tasks.size(); ++t) {
    const double turnaround_ns = view.full_run_ns(view.model.tasks[t].modules);
    const auto suffers = [&](uint32_t f) {
      return turnaround_ns >= view.slo_ns(f) && view.is_late(f);
    };
    if (std::ranges::any_of(view.flows_of[t], suffers)) cut_task(view, t);
  }
}

// Packs flows onto the task, tightest SLO first, as long as all flows there can be served; flows
// without an SLO leave in any case. Each part that only leaving flows need goes to the least loaded
// worker.
void Decomposer::cut_task(const View& view, uint32_t task) {
  std::vector<uint32_t> flows = view.flows_of[task];
  std::ranges::stable_sort(flows, {}, [&](uint32_t f) { return view.slo_ns(f); });
  std::set<uint32_t> resident;
  std::vector<uint32_t> staying;
  std::vector<uint32_t> leaving;
  for (const uint32_t f : flows) {
    std::set<uint32_t> wanted = resident;
    for (const uint32_t m : view.path_in(f, task)) wanted.insert(m);
    const double turnaround_ns = view.full_run_ns(wanted);
    const auto is_served = [&](uint32_t g) {
      double service_ns = 0;
      for (const uint32_t m : view.path_in(g, task)) service_ns += view.run_ns(m, 1);
      return turnaround_ns + service_ns <= view.slo_ns(g);
    };
    const bool fits =
        view.slo_ns(f) < View::kNoSlo && is_served(f) && std::ranges::all_of(staying, is_served);
    (fits ? staying : leaving).push_back(f);
    if (fits) resident = std::move(wanted);
  }
  std::set<uint32_t> heads;
  for (const uint32_t f : leaving) {
    bool was_resident = false;
    for (const uint32_t m : view.path_in(f, task)) {
      const bool leaves = was_resident && !resident.contains(m) && !view.ends_task[m];
      if (leaves && view.is_worth_a_hop(m)) heads.insert(m);
      was_resident = resident.contains(m);
    }
  }
  std::vector<double> loads = view.load;
  for (const uint32_t head : heads) {
    const uint32_t from = view.worker_of(head);
    const uint32_t to = view.least_loaded(from, loads);
    // The small term tells equal loads apart: a worker that has just got a part counts as busier.
    loads[to] += view.load_of_part(head) + 1e-9;
    move(view, head, to, "inherent");
  }
}

// --- Its rule for pipelines that are cut already -------------------------------------------------

// A worker that misses an SLO by half gives the task whose tightest flow has the most time to a
// worker that has room for it and misses no SLO.
void Decomposer::move_violating_tasks(const View& view) {
  constexpr double kCritical = 1.5;
  const auto misses = [&](uint32_t worker) {
    for (uint32_t t = 0; t < view.model.tasks.size(); ++t) {
      if (view.model.tasks[t].worker != worker) continue;
      for (const uint32_t f : view.flows_of[t]) {
        const double delay_ns = static_cast<double>(view.period.flows[f].delay_ns);
        if (delay_ns > kCritical * view.slo_ns(f)) return true;
      }
    }
    return false;
  };
  for (uint32_t w = 0; w < view.model.workers.size(); ++w) {
    if (!misses(w)) continue;
    const exec::ControlTask* laxest = nullptr;
    double laxest_ns = 0;
    uint32_t n_tasks = 0;
    for (uint32_t t = 0; t < view.model.tasks.size(); ++t) {
      const exec::ControlTask& task = view.model.tasks[t];
      if (task.worker != w || task.modules.empty() || task.inputs.empty()) continue;
      ++n_tasks;
      const double slo_ns = view.tightest_slo_ns(t);
      if (laxest == nullptr || slo_ns > laxest_ns) {
        laxest = &task;
        laxest_ns = slo_ns;
      }
    }
    if (n_tasks < 2) continue;
    const double load =
        std::accumulate(laxest->modules.begin(), laxest->modules.end(), 0.0,
                        [&](double sum, uint32_t m) { return sum + view.load_of[m]; });
    const uint32_t to = view.least_loaded(w, view.load);
    if (misses(to) || view.load[to] + load > kFullLoad) continue;
    move(view, laxest->inputs.front(), to, "violated");
    return;
  }
}

// --- By load -------------------------------------------------------------------------------------

// While a worker is overloaded, parts leave it if the move makes the busier of the two workers less
// busy.
void Decomposer::balance(const View& view) {
  std::vector<double> load = view.load;
  for (uint32_t w = 0; w < load.size(); ++w) {
    const auto is_here = [&](const exec::ControlTask& task) { return task.worker == w; };
    if (std::ranges::none_of(view.model.tasks, is_here)) continue;
    const bool is_full = view.load[w] >= kFullLoad || view.has_too_much(w);
    if (!is_full) continue;
    for (uint32_t i = 0; i < kMaxBalanceParts && balance_once(view, w, load); ++i) {
    }
    if (!moves_.empty()) return;
  }
}

bool Decomposer::balance_once(const View& view, uint32_t worker, std::vector<double>& load) {
  struct Choice {
    uint32_t head = ~0U;
    uint32_t to = 0;
    double left = 0;
    double more = 0;
  } best;
  double best_busiest = load[worker] * (1 - kLittleGain);
  std::set<uint32_t> gone;
  for (const exec::MoveChange& moved : moves_) gone.merge(view.part_of(moved.module));
  for (const exec::ControlTask& task : view.model.tasks) {
    if (task.worker != worker) continue;
    for (const uint32_t head : task.modules) {
      if (view.ends_task[head] || gone.contains(head) || is_resting(view, head)) continue;
      const std::set<uint32_t> part = view.part_of(head);
      const auto is_gone = [&](uint32_t m) { return gone.contains(m); };
      if (part.size() == task.modules.size() || std::ranges::any_of(part, is_gone)) continue;
      const double moved = view.load_of_part(head);
      const double left = load[worker] - moved + view.hop_load(head, hop_.send_per_pkt_ns);
      for (uint32_t to = 0; to < load.size(); ++to) {
        const double more = load[to] + moved + view.hop_load(head, hop_.take_per_pkt_ns);
        if (to == worker || std::max(left, more) >= best_busiest) continue;
        if (view.breaks_promises(part, to)) continue;
        best = {head, to, left, more};
        best_busiest = std::max(left, more);
      }
    }
  }
  if (best.head == ~0U) return false;
  load[worker] = best.left;
  load[best.to] = best.more;
  move(view, best.head, best.to, "overload");
  rate_before_ = view.entered_pkts_per_ns();
  on_trial_.push_back(view.model.modules[best.head].name);
  parts_[on_trial_.back()].full_pkts_per_ns = rate_before_;
  return true;
}

// --- And back ------------------------------------------------------------------------------------

// A worker that shares its core, or waits for packets that one worker alone can bring, gains
// nothing from another worker: if throughput is lower than before, parts that left for their load
// go back. If the load itself has fallen, they would soon do so anyway.
void Decomposer::undo_without_gain(const View& view) {
  const bool has_gained = view.entered_pkts_per_ns() >= (1 - kLittleGain) * rate_before_;
  for (const std::string& name : std::exchange(on_trial_, {})) {
    const auto part = parts_.find(name);
    if (has_gained || part == parts_.end()) continue;
    go_back(view, name, part->second, "no gain");
    patience_[name] = kMostPatience * settings_.master_periods;
  }
}

// Whether it left without gain, not long ago.
bool Decomposer::is_resting(const View& view, uint32_t module) const {
  const std::string& name = view.model.modules[module].name;
  const auto back = returned_.find(name);
  const auto patience = patience_.find(name);
  if (back == returned_.end() || patience == patience_.end()) return false;
  return patience->second >= kMostPatience * settings_.master_periods &&
         n_periods_ - back->second < patience->second;
}

void Decomposer::go_back(const View& view, const std::string& name, const Part& part,
                         const char* reason) {
  moves_.push_back({view.module_named(name), view.worker_named(part.home), reason});
  returned_[name] = n_periods_;
}

void Decomposer::bring_back(const View& view) {
  for (const auto& [name, part] : parts_) {
    if (n_periods_ - part.since < 2 * patience_[name] || !may_return(view, name, part)) continue;
    // One at a time: each return changes the loads of the rest.
    return go_back(view, name, part, "return");
  }
}

// Whether its home has room for it, in load and in every SLO there. Within the time of an SLO a
// module runs at most as often, and on as many packets, as arrive; one that is running already may
// take a full run.
bool Decomposer::may_return(const View& view, const std::string& name, const Part& part) const {
  const uint32_t module = view.module_named(name);
  const uint32_t home = view.worker_named(part.home);
  const std::set<uint32_t> coming = view.part_of(module);
  double load = view.load[home];
  for (const uint32_t m : coming) load += view.load_of[m];
  const bool fits = part.full_pkts_per_ns == 0 ||
                    view.entered_pkts_per_ns() <= kReturnLoad * part.full_pkts_per_ns;
  if (load > kReturnLoad || !fits || view.has_too_much(home)) return false;
  std::set<uint32_t> together = coming;
  std::set<uint32_t> flows;
  for (uint32_t t = 0; t < view.model.tasks.size(); ++t) {
    if (view.model.tasks[t].worker != home) continue;
    together.insert(view.model.tasks[t].modules.begin(), view.model.tasks[t].modules.end());
    flows.insert(view.flows_of[t].begin(), view.flows_of[t].end());
  }
  const std::vector<uint32_t>& own = view.flows_of[view.model.modules[module].task];
  flows.insert(own.begin(), own.end());
  return std::ranges::all_of(flows, [&](uint32_t f) {
    const double slo_ns = view.slo_ns(f);
    if (slo_ns == View::kNoSlo) return true;
    double wait_ns = 0;
    double longest_ns = 0;
    for (const uint32_t m : together) {
      const double pkts = view.pkts_per_ns[m] * slo_ns;
      wait_ns += cost_line(view.period.modules[m]).work_ns(std::min(1.0, pkts), pkts);
      if (pkts > 0)
        longest_ns = std::max(
            longest_ns, view.run_ns(m, std::clamp(pkts, 1.0, 1.0 * view.model.batch_limit_pkts)));
    }
    return wait_ns + longest_ns <= kPartDelay * slo_ns && !view.is_late(f);
  });
}

}  // namespace batchplane::slo
