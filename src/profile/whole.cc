// SPDX-License-Identifier: BSD-3-Clause
#include "profile/whole.h"

#include <algorithm>

#include "base/clock.h"
#include "base/percentile.h"
#include "profile/module_rig.h"
#include "profile/whole_counts.h"

namespace batchplane::profile {
namespace {

constexpr double kStretchNs = 1e6;  // long enough for every branch to run
constexpr double kFast = 0.1;
constexpr double kMaxOfFast = 1.1;
constexpr double kPaces[] = {1e6, 4e6, 8e6};  // pps
// Polls that release a buffer take many times as long as others. So only polls far beyond nearly
// all others are blamed on the machine.
constexpr double kTail = 0.99;
constexpr double kMaxOfTail = 2;
// Weight of the full-load error with packets from the other core, where the rate is at stake; every
// other point weighs 1.
constexpr double kFullWeight = 12;
constexpr size_t kMaxPolls = 1U << 18;
constexpr uint32_t kMinWholeRounds = 20;
constexpr uint32_t kMaxWholeRounds = 2000;
constexpr uint32_t kLoopsPerRound = 2;     // the ring holds this many batches
constexpr uint32_t kFarLoopsPerRound = 8;  // the ring is refilled meanwhile; clock reads weigh less
constexpr uint32_t kSmallPollPkts = 4;     // as at low load
constexpr uint32_t kMaxDrains = 64;
constexpr uint64_t kMaxStartNs = 50'000'000;  // for a thread to start or to get its core
constexpr uint64_t kNoAgeNs = 1ULL << 60;
constexpr uint32_t kSettlingLoops = 64;  // until buffers and rings are in their steady state

struct Timed {
  double ns = 0;
  double pkts = 0;
  double loops = 0;
  [[nodiscard]] double per_pkt() const { return ns / pkts; }
  void add(const Timed& other) {
    ns += other.ns;
    pkts += other.pkts;
    loops += other.loops;
  }
};

// Sums the stretches in which the machine ran at full speed, since the modules' cost laws are
// measured at full speed, too. Another user of the core's units or caches slows it by half for a
// while and leaves no gap in the times.
Timed undisturbed(const std::vector<Timed>& all) {
  std::vector<Timed> stretches(1);
  for (const Timed& timed : all) {
    stretches.back().add(timed);
    if (stretches.back().ns >= kStretchNs) stretches.emplace_back();
  }
  if (stretches.size() > 1) stretches.pop_back();  // too short to be of use
  std::vector<double> per_pkt;
  for (const Timed& stretch : stretches) per_pkt.push_back(stretch.per_pkt());
  const double most = kMaxOfFast * percentile(per_pkt, kFast);
  Timed sum;
  for (const Timed& stretch : stretches) {
    if (stretch.per_pkt() <= most) sum.add(stretch);
  }
  return sum;
}

struct Way {
  bool is_far = false;
  uint32_t trigger_pkts = 0;
  double rate_pps = 0;     // 0: as fast as the ring takes packets
  uint32_t poll_pkts = 0;  // at most; 0: a batch
  WholeCounts counts;
  std::vector<Timed> timed;
};

}  // namespace

struct WholeMeter::State {
  State(Graph& g, PacketPool& pool, PacketPool& far_pool, int generator_core)
      : graph(g),
        traffic(g, pool),
        far(g, far_pool, generator_core),
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
        g.instances, [](const Instance& instance) { return instance.info->feed == Feed::kItself; });
    const bool can_buffer = set_triggers(0) != 0;
    const uint32_t most = g.spec.engine.batch_pkts;
    for (const uint32_t trigger_pkts : {0U, most}) {
      if (trigger_pkts != 0 && !can_buffer) continue;
      ways.push_back({.trigger_pkts = trigger_pkts});
      ways.push_back({.trigger_pkts = trigger_pkts, .poll_pkts = std::min(kSmallPollPkts, most)});
      if (!far.is_possible()) continue;
      ways.push_back({.is_far = true, .trigger_pkts = trigger_pkts});
      for (const double rate_pps : kPaces) {
        ways.push_back({.is_far = true, .trigger_pkts = trigger_pkts, .rate_pps = rate_pps});
      }
    }
  }
  ~State() { worker.drain(kMaxDrains); }

  void feed() {
    for (const std::string& port : ports) {
      const auto ring = std::dynamic_pointer_cast<RingPort>(graph.env->port(port));
      if (ring == nullptr) continue;
      for (uint32_t i = 0; i < kMaxDrains && ring->ring().free_slots() != 0; ++i) {
        if (!traffic.feed(port)) break;
      }
    }
  }

  // Sets the trigger of every buffer behind a splitter, except in front of terminals. Returns the
  // number of these buffers.
  uint32_t set_triggers(uint32_t trigger_pkts) {
    uint32_t n = 0;
    for (Task* task : worker.tasks()) {
      for (const ExecNode& node : task->nodes) {
        if (node.after != exec::After::kScatter || node.n_gates < 2) continue;
        for (uint32_t g = 0; g < node.n_gates; ++g) {
          ExecNode& target = task->nodes[node.targets[g]->rank];
          if (target.after == exec::After::kEnd) continue;
          task->executor->set_trigger(target, trigger_pkts, exec::stagger(trigger_pkts, n++));
          // Packets from this core carry timestamps of the generator's own clock.
          task->executor->set_age_limit(target, kNoAgeNs);
        }
      }
    }
    return n;
  }

  // The same way without buffers; `way` itself when it has none.
  [[nodiscard]] const Way& bypassed(const Way& way) const {
    return *std::ranges::find_if(ways, [&](const Way& other) {
      return other.is_far == way.is_far && other.rate_pps == way.rate_pps &&
             other.poll_pkts == way.poll_pkts;
    });
  }

  // By instance; empty for inputs.
  [[nodiscard]] std::vector<CostSamples> samples() const {
    std::vector<CostSamples> all;
    for (const Instance& instance : graph.instances) {
      all.push_back(instance.node == nullptr ? CostSamples{} : instance.node->cost);
    }
    return all;
  }
  void add_samples(const std::vector<CostSamples>& before) {
    const std::vector<CostSamples> after = samples();
    sampled.resize(after.size());
    for (size_t i = 0; i < after.size(); ++i) {
      sampled[i] += after[i].since(before[i]);
    }
  }
  [[nodiscard]] double sampled_per_batch_ns(WholeCheck& check, const std::set<std::string>& behind,
                                            const ProfileOfModule& profiles) const;
  void measure(Way& way, double budget_ms);
  bool measure_round(Way& way);
  void pace(Way& way, double budget_ms);

  Graph& graph;
  Traffic traffic;
  FarFeed far;
  exec::FlowMeter meter;
  Worker worker;
  std::vector<std::string> ports;
  bool has_source = false;
  std::vector<Way> ways;
  std::vector<CostSamples> sampled;  // by instance, of packets of this core
};

// False when the round is of no use.
bool WholeMeter::State::measure_round(Way& way) {
  const uint64_t empty_begin = begin_cycles();
  const uint64_t empty = end_cycles() - empty_begin;
  uint64_t pkts = 0;
  const uint64_t begin = begin_cycles();
  uint32_t n_loops = way.is_far ? kFarLoopsPerRound : kLoopsPerRound;
  if (way.poll_pkts != 0) n_loops *= graph.spec.engine.batch_pkts / way.poll_pkts;
  for (uint32_t i = 0; i < n_loops; ++i) pkts += worker.loop_once();
  const uint64_t cycles = end_cycles() - begin;
  // A loop that waited for the generator tells nothing about the worker.
  const uint64_t full = uint64_t{n_loops} * graph.spec.engine.batch_pkts;
  if (pkts == 0 || (way.is_far && pkts < full) || cycles <= empty) return false;
  const auto taken = static_cast<double>(cycles - empty);
  way.timed.push_back({taken / TscClock::instance().cycles_per_ns(), static_cast<double>(pkts),
                       static_cast<double>(n_loops)});
  return true;
}

void WholeMeter::State::measure(Way& way, double budget_ms) {
  const TscClock& clock = TscClock::instance();
  (void)set_triggers(way.trigger_pkts);
  const uint32_t batch_pkts = graph.spec.engine.batch_pkts;
  const auto limit_polls = [&](uint32_t pkts) {
    for (Task* task : worker.tasks()) task->poll_pkts = pkts;
  };
  if (way.poll_pkts != 0) limit_polls(way.poll_pkts);
  if (way.is_far) far.start(0);
  const uint64_t give_up_ns = clock.now_ns() + kMaxStartNs;
  for (uint32_t found = 0; found < kSettlingLoops && clock.now_ns() < give_up_ns;) {
    if (!way.is_far) feed();
    found += worker.loop_once() != 0 ? 1 : 0;
  }
  const WholeCounts before = counts_of(graph, worker);
  const std::vector<CostSamples> samples_before = samples();
  const uint64_t end_ns = clock.now_ns() + static_cast<uint64_t>(budget_ms * 1e6);
  const uint64_t last_ns = end_ns + kMaxStartNs;
  for (uint32_t round = 0; round < kMaxWholeRounds;) {
    const uint64_t now_ns = clock.now_ns();
    if (now_ns >= last_ns || (round >= kMinWholeRounds && now_ns >= end_ns)) break;
    if (!way.is_far) feed();
    round += measure_round(way) ? 1 : 0;
  }
  way.counts.add(before, counts_of(graph, worker));
  if (!way.is_far) add_samples(samples_before);
  if (way.is_far) far.stop();
  limit_polls(batch_pkts);
  worker.drain(kMaxDrains);
  (void)set_triggers(0);
}

// ns per batch by which the sampled module times exceed the cost laws. The engine uses such samples
// to estimate costs.
double WholeMeter::State::sampled_per_batch_ns(WholeCheck& check,
                                               const std::set<std::string>& behind,
                                               const ProfileOfModule& profiles) const {
  double more_ns = 0;
  double batches = 0;
  for (size_t i = 0; i < sampled.size(); ++i) {
    const auto n = static_cast<double>(sampled[i].batches);
    if (n <= 0) continue;
    const std::string& name = graph.instances[i].name;
    const Factors& factors = check.factors[behind.contains(name) ? kBehind : kBefore];
    const CostLaw law = profiles.at(name)->law.scaled(factors.batch, factors.pkt);
    more_ns += static_cast<double>(sampled[i].cycles) / TscClock::instance().cycles_per_ns();
    more_ns -= law.line().work_ns(n, static_cast<double>(sampled[i].pkts));
    batches += n;
  }
  if (batches <= 0) return 0;
  return at_least_0(more_ns / batches, kLeastNoiseNs,
                    "a sampled batch of a module, beyond what it costs by its law", check.doubts);
}

WholeMeter::WholeMeter(Graph& graph, PacketPool& pool, PacketPool& far_pool, int generator_core)
    : state_(std::make_unique<State>(graph, pool, far_pool, generator_core)) {}
WholeMeter::~WholeMeter() = default;

bool WholeMeter::has_traffic() const { return !state_->ports.empty() || state_->has_source; }

void WholeMeter::stir() {
  state_->feed();
  for (uint32_t i = 0; i < kLoopsPerRound; ++i) (void)state_->worker.loop_once();
}

// Runs the generator below full load: bursts of every size, and small polls that wait for each
// cache line from the other core.
void WholeMeter::State::pace(Way& way, double budget_ms) {
  const TscClock& clock = TscClock::instance();
  std::vector<double> ns;
  std::vector<uint32_t> polled;
  (void)set_triggers(way.trigger_pkts);
  worker.set_idle_hold(true);  // releases of an idle loop would be counted, but not timed
  far.start(way.rate_pps);
  const WholeCounts before = counts_of(graph, worker);
  const uint64_t end_ns = clock.now_ns() + static_cast<uint64_t>(budget_ms * 1e6);
  while (clock.now_ns() < end_ns && ns.size() < kMaxPolls) {
    const uint64_t empty_begin = begin_cycles();
    const uint64_t empty = end_cycles() - empty_begin;
    const uint64_t begin = begin_cycles();
    const uint32_t n = worker.loop_once();
    const uint64_t cycles = end_cycles() - begin;
    // Interrupted while timing the clock itself: nothing was measured.
    if (n == 0 || cycles <= empty) continue;
    ns.push_back(static_cast<double>(cycles - empty) / clock.cycles_per_ns());
    polled.push_back(n);
  }
  far.stop();
  way.counts.add(before, counts_of(graph, worker));
  worker.set_idle_hold(false);
  worker.drain(kMaxDrains);
  (void)set_triggers(0);
  if (ns.empty()) return;
  const double max_ns = kMaxOfTail * percentile(ns, kTail);
  for (size_t i = 0; i < ns.size(); ++i) {
    if (ns[i] > max_ns) continue;
    way.timed.push_back({ns[i], static_cast<double>(polled[i]), 1});
  }
}

void WholeMeter::pass(double budget_ms) {
  State& s = *state_;
  const double share_ms = budget_ms / static_cast<double>(s.ways.size());
  if (s.far.is_possible()) s.far.time_line();
  for (Way& way : s.ways) {
    if (way.rate_pps > 0) {
      s.pace(way, share_ms);
    } else {
      s.measure(way, share_ms);
    }
  }
}

std::optional<WholeCheck> WholeMeter::result(const std::vector<ModuleProfile>& modules,
                                             const EngineCosts& loop) const {
  const State& s = *state_;
  ProfileOfModule profiles;
  for (const ModuleProfile& profile : modules) {
    for (const std::string& member : profile.members) profiles[member] = &profile;
  }
  const bool is_whole = std::ranges::all_of(
      s.graph.instances, [&](const Instance& i) { return profiles.contains(i.name); });
  if (!is_whole) return std::nullopt;
  const std::set<std::string> behind = behind_splitters(s.graph.spec);
  WholeCheck check;
  for (const Way& way : s.ways) {
    const double pkts = way.counts.polls.pkts;
    if (way.timed.empty() || pkts <= 0) continue;
    // Counts cover the whole time and become shares of its packets; packets per loop cover only the
    // undisturbed time.
    const Timed kept = undisturbed(way.timed);
    const double measured_ns = kept.per_pkt();
    WholePoint point{.is_far = way.is_far,
                     .trigger_pkts = way.trigger_pkts,
                     .measured_ns_per_pkt = measured_ns,
                     .pkts_per_loop = kept.pkts / kept.loops,
                     .weight = way.is_far && way.rate_pps == 0 ? kFullWeight : 1};
    const auto parts = parts_of(way.counts, scattered(way.counts, s.bypassed(way).counts), s.graph,
                                behind, profiles, loop);
    for (int stretch = 0; stretch < kStretches; ++stretch) {
      point.parts[stretch] = {parts[stretch].cost_per_batch_ns / pkts,
                              parts[stretch].cost_per_pkt_ns / pkts};
    }
    check.points.push_back(point);
  }
  if (check.points.empty()) return std::nullopt;
  reject_impossible(check);
  fit_whole(check);
  check.sampled_per_batch_ns = s.sampled_per_batch_ns(check, behind, profiles);
  check.generator = s.far.costs(check.doubts);
  return check;
}

}  // namespace batchplane::profile
