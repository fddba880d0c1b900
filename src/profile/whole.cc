// SPDX-License-Identifier: BSD-3-Clause
#include "profile/whole.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "profile/module_rig.h"

namespace batchplane::profile {
namespace {

constexpr double kQuiet = 0.1;
constexpr uint32_t kLeastRounds = 20;
constexpr uint32_t kMostRounds = 2000;
constexpr uint32_t kLoopsPerRound = 2;
constexpr uint32_t kMostFeeds = 64;

using Profiles = std::map<std::string, const ModuleProfile*>;

// Between two sizes of the table in proportion.
double time_at(const ModuleProfile& profile, double pkts) {
  const auto below = static_cast<size_t>(std::floor(pkts));
  if (below < 1 || below >= profile.table_ns.size()) {
    return pkts >= 1 && !profile.table_ns.empty() && below == profile.table_ns.size()
               ? profile.table_ns.back()
               : profile.law.at(pkts);
  }
  const double share = pkts - static_cast<double>(below);
  return profile.table_ns[below - 1] * (1 - share) + profile.table_ns[below] * share;
}

double time_of(const ModuleProfile& profile, uint64_t batches, uint64_t pkts) {
  if (batches == 0) return 0;
  const auto n = static_cast<double>(batches);
  return n * time_at(profile, static_cast<double>(pkts) / n);
}

}  // namespace

struct WholeMeter::State {
  State(Graph& g, PacketPool& pool)
      : graph(g),
        traffic(g, pool),
        meter(static_cast<uint32_t>(g.flow_names.size())),
        worker({.batch_limit_pkts = g.spec.engine.batch_pkts}, &pool, nullptr) {
    std::vector<Task*> tasks;
    for (const auto& task : g.tasks) {
      if (task == nullptr) continue;
      task->attach(worker.context(), worker.clock(), meter);
      tasks.push_back(task.get());
    }
    worker.set_tasks(tasks, &meter);
    for (const GeneratorSpec& generator : g.spec.generators) ports.push_back(generator.port);
    has_source = std::ranges::any_of(
        g.spec.modules, [](const ModuleSpec& module) { return module.kind == "source"; });
  }
  ~State() { worker.drain(kMostFeeds); }

  void feed() {
    for (const std::string& port : ports) {
      const auto ring = std::dynamic_pointer_cast<RingPort>(graph.env->port(port));
      if (ring == nullptr) continue;
      for (uint32_t i = 0; i < kMostFeeds && ring->ring().free_slots() != 0; ++i) {
        if (!traffic.feed(port)) break;
      }
    }
  }

  // What the laws say that all executions so far took.
  double law_ns(const Profiles& profiles, const LoopCosts& loop) const;
  double scatter_ns(const Task& task, const ExecNode& node, const LoopCosts& loop) const;

  Graph& graph;
  Traffic traffic;
  exec::FlowMeter meter;
  Worker worker;
  std::vector<std::string> ports;
  bool has_source = false;
  uint64_t in_pkts = 0;
  uint64_t loops = 0;
  std::vector<double> ns_per_pkt;
};

double WholeMeter::State::scatter_ns(const Task& task, const ExecNode& node,
                                     const LoopCosts& loop) const {
  if (node.after != exec::After::kScatter) return 0;
  uint64_t branches = 0;
  std::vector<const CoreQueue*> seen;
  for (uint32_t g = 0; g < node.n_gates; ++g) {
    const CoreQueue* queue = node.targets[g];
    if (std::ranges::find(seen, queue) != seen.end()) continue;
    seen.push_back(queue);
    branches += task.executor->totals(task.nodes[queue->rank]).batches;
  }
  const exec::NodeTotals totals = task.executor->totals(node);
  if (branches <= totals.batches) return 0;  // all of a batch went one way
  return loop.scatter_per_branch * static_cast<double>(branches) +
         loop.scatter_per_pkt * static_cast<double>(totals.pkts);
}

double WholeMeter::State::law_ns(const Profiles& profiles, const LoopCosts& loop) const {
  double ns = 0;
  for (const Task* task : worker.tasks()) {
    for (const TaskInput& input : task->inputs) {
      ns += loop.poll_per_batch * static_cast<double>(input.batches);
      ns += loop.poll_per_pkt * static_cast<double>(input.pkts);
      if (input.is_queue) {
        ns += loop.ring_take_per_batch * static_cast<double>(input.batches);
        ns += loop.ring_take_per_pkt * static_cast<double>(input.pkts);
      }
    }
    for (const ExecNode& node : task->nodes) ns += scatter_ns(*task, node, loop);
  }
  for (const Instance& instance : graph.instances) {
    const ModuleProfile& profile = *profiles.at(instance.name);
    for (const Task* task : worker.tasks()) {
      if (instance.node != nullptr && instance.node >= task->nodes.data() &&
          instance.node < task->nodes.data() + task->nodes.size()) {
        const exec::NodeTotals totals = task->executor->totals(*instance.node);
        ns += time_of(profile, totals.batches, totals.pkts);
      }
      for (const TaskInput& input : task->inputs) {
        if (input.is_queue || input.module != instance.module.get()) continue;
        ns += time_of(profile, input.batches, input.pkts);
      }
    }
  }
  return ns;
}

WholeMeter::WholeMeter(Graph& graph, PacketPool& pool)
    : state_(std::make_unique<State>(graph, pool)) {}
WholeMeter::~WholeMeter() = default;

bool WholeMeter::has_traffic() const { return !state_->ports.empty() || state_->has_source; }

void WholeMeter::stir() {
  state_->feed();
  for (uint32_t i = 0; i < kLoopsPerRound; ++i) state_->in_pkts += state_->worker.loop_once();
  state_->loops += kLoopsPerRound;
}

void WholeMeter::pass(double budget_ms) {
  State& s = *state_;
  const TscClock& clock = TscClock::instance();
  const uint64_t end_ns = clock.now_ns() + static_cast<uint64_t>(budget_ms * 1e6);
  for (uint32_t round = 0; round < kMostRounds; ++round) {
    if (round >= kLeastRounds && clock.now_ns() >= end_ns) break;
    s.feed();
    const uint64_t empty_begin = begin_cycles();
    const uint64_t empty = end_cycles() - empty_begin;
    uint64_t pkts = 0;
    const uint64_t begin = begin_cycles();
    for (uint32_t i = 0; i < kLoopsPerRound; ++i) pkts += s.worker.loop_once();
    const uint64_t cycles = end_cycles() - begin;
    if (pkts == 0) continue;
    s.in_pkts += pkts;
    s.loops += kLoopsPerRound;
    const auto taken = static_cast<double>(cycles - std::min(cycles, empty));
    s.ns_per_pkt.push_back(taken / clock.cycles_per_ns() / static_cast<double>(pkts));
  }
}

std::optional<WholeCheck> WholeMeter::result(const std::vector<ModuleProfile>& modules,
                                             const LoopCosts& loop) const {
  const State& s = *state_;
  if (s.ns_per_pkt.empty()) return std::nullopt;
  Profiles profiles;
  for (const ModuleProfile& profile : modules) {
    for (const std::string& member : profile.members) profiles[member] = &profile;
  }
  const bool is_whole = std::ranges::all_of(
      s.graph.instances, [&](const Instance& i) { return profiles.contains(i.name); });
  if (!is_whole) return std::nullopt;
  const auto pkts = static_cast<double>(s.in_pkts);
  return WholeCheck{.measured_ns_per_pkt = percentile(s.ns_per_pkt, kQuiet),
                    .law_ns_per_pkt = s.law_ns(profiles, loop) / pkts,
                    .pkts_per_loop = pkts / static_cast<double>(s.loops)};
}

}  // namespace batchplane::profile
