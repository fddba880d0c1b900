// SPDX-License-Identifier: BSD-3-Clause
// engine_simulator_test.cc - engine and simulator, given the same graph, the same arrivals and the
// same costs, execute the same batches of the same modules for the same reasons at the same time.
//
// The engine runs for real: its tasks, loops and buffers on packets with bytes. Its modules are
// stand-ins that turn the virtual clock by what they are said to cost.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "core/module/register.h"
#include "engine_rig.h"
#include "sim/simulation.h"

namespace batchplane::property {
namespace {

struct Arrival {
  uint64_t time_ns;
  uint32_t flow;
};

// What the stand-ins share: the clock, the costs, the arrivals, and what was executed.
struct World {
  uint64_t* now_ns = nullptr;
  std::map<std::string, std::pair<uint64_t, uint64_t>> costs_ns;  // per batch, per packet
  std::map<std::string, std::vector<uint16_t>> gates;             // per traffic flow
  std::vector<Arrival> arrivals;
  std::map<std::string, uint32_t> index;
  std::vector<sim::Execution> executed;
  uint64_t seen_ns = 0;  // until when arrivals are counted as waiting
};
World* world = nullptr;

class StandIn : public Module {
 public:
  explicit StandIn(const Args& args) : own_name_(args.string("self")) {}

 protected:
  void execute(Context& ctx, uint32_t n_pkts) noexcept {
    const auto [per_batch, per_pkt] = world->costs_ns[own_name_];
    const uint64_t start_ns = *world->now_ns;
    *world->now_ns += per_batch + per_pkt * n_pkts;
    world->executed.push_back(
        {start_ns, *world->now_ns, world->index[own_name_], n_pkts, ctx.cause});
    ctx.cause = exec::kNoCause;
  }
  std::string own_name_;
};

class StandInInput final : public Module {
 public:
  explicit StandInInput(const Args& /*args*/) {}
  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    uint32_t n = 0;
    polled_ns_ = ctx.now_ns;
    for (; n < max && at_ < world->arrivals.size(); ++n, ++at_) {
      const Arrival& arrival = world->arrivals[at_];
      if (arrival.time_ns > ctx.now_ns || !ctx.pool->alloc_bulk(&pkts[n], 1)) break;
      pkts[n]->reset(60);
      pkts[n]->meta() = PacketMeta{};
      pkts[n]->meta().entry_ns = arrival.time_ns;
      pkts[n]->set_mark(arrival.flow);
    }
    return n;
  }
  [[nodiscard]] exec::RingCounts ring_counts() const noexcept override {
    uint64_t waiting = 0;
    for (size_t i = at_; i < world->arrivals.size(); ++i) {
      waiting += world->arrivals[i].time_ns <= std::max(world->seen_ns, polled_ns_);
    }
    return {waiting, 0, {}};
  }

 private:
  size_t at_ = 0;
  uint64_t polled_ns_ = 0;
};

class StandInPass final : public StandIn {
 public:
  using StandIn::StandIn;
  void process(Context& ctx, Batch& batch) noexcept { execute(ctx, batch.size_pkts); }
};

class StandInRoute final : public StandIn {
 public:
  using StandIn::StandIn;
  void classify(Context& ctx, Batch& batch) noexcept {
    execute(ctx, batch.size_pkts);
    const std::vector<uint16_t>& gates = world->gates[own_name_];
    for (uint32_t i = 0; i < batch.size_pkts; ++i) ctx.gates[i] = gates[batch[i]->mark()];
  }
};

class StandInEnd final : public StandIn {
 public:
  using StandIn::StandIn;
  void consume(Context& ctx, Batch& batch) noexcept {
    execute(ctx, batch.size_pkts);
    ctx.free(batch.pkts, batch.size_pkts);
  }
};

const std::vector<ParamSpec> kSelf = {{.name = "self", .type = ParamType::kString, .help = "name"}};
const Register<StandInInput> kInput{{.kind = "stand_in_input", .help = "Recorded arrivals."}};
const Register<StandInPass> kPass{
    {.kind = "stand_in_pass", .help = "Takes time.", .params = kSelf}};
const Register<StandInRoute> kRoute{
    {.kind = "stand_in_route", .help = "Takes time, sorts.", .params = kSelf}};
const Register<StandInEnd> kEnd{
    {.kind = "stand_in_end", .help = "Takes time, ends.", .params = kSelf, .is_egress = true}};

// A random acyclic graph behind one input, as a pipeline for both.
class Scenario {
 public:
  Scenario(uint64_t seed, bool is_scheduled) : rng_(seed) {
    pipeline_.engine.batch_pkts = kBatches[rng_.below(5)];
    pipeline_.engine.is_idle_hold = rng_.below(2) == 0;
    pipeline_.engine.sample_one_run_in = 1;  // every run tells why it came
    pipeline_.engine.stranding_limit_ns = 1'000'000;
    if (is_scheduled) schedule_randomly();
    add("in", "input");
    const uint32_t n = 2 + rng_.below(12);
    std::string last = "in";
    for (uint32_t i = 0; i < n; ++i) add_inner(i);
    close();
    make_arrivals();
  }

  PipelineSpec pipeline_;
  World world_;
  uint64_t empty_poll_ns_ = 20;
  uint32_t n_flows_ = 6;
  Rng rng_;

  [[nodiscard]] sim::Spec simulated() const {
    sim::Spec spec;
    spec.pipeline = pipeline_;
    spec.loop.empty_poll_ns = static_cast<double>(empty_poll_ns_);
    for (ModuleSpec& module : spec.pipeline.modules) {
      if (module.kind == "queue") {
        spec.costs[module.name] = {};
        continue;
      }
      if (module.kind == "stand_in_input") module.params = {{"port", Value("p")}};
      const auto cost = world_.costs_ns.find(module.name);
      if (cost == world_.costs_ns.end()) continue;
      spec.costs[module.name] = {static_cast<double>(cost->second.first),
                                 static_cast<double>(cost->second.second)};
    }
    sim::SourceSpec source;
    source.name = "load";
    source.port = "p";
    source.ring_pkts = 1U << 20;
    spec.routes.emplace_back();
    for (uint32_t f = 0; f < n_flows_; ++f) {
      source.flows.push_back({std::to_string(f), 1, 0, 64});
      sim::FlowRoute route;
      for (const auto& [module, gates] : world_.gates) route[module] = std::to_string(gates[f]);
      spec.routes.back().push_back(route);
    }
    for (const Arrival& arrival : world_.arrivals) {
      source.trace.time_ns.push_back(arrival.time_ns);
      source.trace.flow.push_back(arrival.flow);
      source.trace.size_bytes.push_back(64);
    }
    spec.sources.push_back(std::move(source));
    return spec;
  }

 private:
  void schedule_randomly() {
    exec::Scheduling& how = pipeline_.engine.execution;
    how.mode = exec::Execution::kWeightedFair;
    how.by = rng_.below(2) == 0 ? exec::ScheduleBy::kCycles : exec::ScheduleBy::kCount;
    constexpr exec::Backpressure kKinds[] = {exec::Backpressure::kOff, exec::Backpressure::kOn,
                                             exec::Backpressure::kEarlyDrop};
    how.backpressure = kKinds[rng_.below(3)];
    how.queue_pkts = rng_.below(300);  // raised to two batches
    how.high_watermark_percent = 40 + rng_.below(61);
    how.low_watermark_percent = rng_.below(how.high_watermark_percent);
    how.queueing_time_threshold_ns = rng_.below(2) * rng_.below(60'000);
    how.input_weight = 1 + rng_.below(20);
  }

  static constexpr uint32_t kBatches[] = {1, 4, 32, 32, 128};
  struct Gate {
    std::string module;
    std::string gate;
  };

  void add(const std::string& name, const std::string& what) {
    ModuleSpec module;
    module.name = name;
    module.kind = what == "queue" ? "queue" : "stand_in_" + what;
    if (what != "input" && what != "queue") {
      module.params = {{"self", Value(name)}};
      world_.costs_ns[name] = {rng_.below(300), rng_.below(30)};
      if (rng_.below(2) == 0) module.trigger_pkts = rng_.below(pipeline_.engine.batch_pkts + 1);
      if (rng_.below(2) == 0) module.age_limit_ns = 1 + rng_.below(30'000);
      if (pipeline_.engine.execution.is_weighted_fair() && rng_.below(3) == 0) {
        module.weight = 1 + rng_.below(exec::kMaxWeight);
        module.queue_pkts = 1 + rng_.below(400);
      }
    }
    if (what == "queue") {
      module.params = {{"size_pkts", Value(8 << rng_.below(8))}};  // small ones lose packets
    }
    pipeline_.modules.push_back(module);
    if (what == "input" || what == "pass" || what == "queue") open_.push_back({name, "0"});
  }

  // Behind one gate that leads nowhere yet, or, where it joins, behind several.
  void connect_to(const std::string& name) {
    const uint32_t n_joined = rng_.below(4) == 0 ? 2 : 1;
    for (uint32_t j = 0; j < n_joined && !open_.empty(); ++j) {
      const uint32_t at = rng_.below(static_cast<uint32_t>(open_.size()));
      pipeline_.edges.push_back({open_[at].module, open_[at].gate, name});
      open_.erase(open_.begin() + at);
    }
  }

  void add_inner(uint32_t i) {
    if (open_.empty()) return;
    const std::string name = "m" + std::string(i < 10 ? "0" : "") + std::to_string(i);
    const uint32_t what = rng_.below(6);
    std::vector<Gate> before = open_;
    if (what == 0 && i > 1) {
      connect_to(name);
      add(name, "queue");
    } else if (what <= 2) {
      connect_to(name);
      add(name, "pass");
    } else {
      connect_to(name);
      add(name, "route");
      const uint32_t n_gates = 2 + rng_.below(rng_.below(8) == 0 ? 80 : 5);
      for (uint32_t g = 0; g < n_gates; ++g) open_.push_back({name, std::to_string(g)});
      std::vector<uint16_t>& gates = world_.gates[name];
      for (uint32_t f = 0; f < n_flows_; ++f) {
        gates.push_back(static_cast<uint16_t>(rng_.below(n_gates)));
      }
    }
  }

  void close() {
    for (uint32_t i = 0; !open_.empty(); ++i) {
      const std::string name = "z" + std::string(i < 10 ? "0" : "") + std::to_string(i);
      connect_to(name);
      add(name, "end");
    }
    std::ranges::sort(pipeline_.modules, {}, &ModuleSpec::name);
    for (const ModuleSpec& module : pipeline_.modules) {
      const auto i = static_cast<uint32_t>(world_.index.size());
      world_.index[module.name] = i;
    }
  }

  void make_arrivals() {
    uint64_t now_ns = 1000;
    for (uint32_t i = 0; i < 3000; ++i) {
      static constexpr uint32_t kGapsNs[] = {0, 0, 50, 300, 2000};
      now_ns += rng_.below(kGapsNs[rng_.below(5)] + 1);
      if (rng_.below(500) == 0) now_ns += 100'000 + rng_.below(2'000'000);  // all is quiet
      world_.arrivals.push_back({now_ns, rng_.below(n_flows_)});
    }
  }

  std::vector<Gate> open_;
};

void set_work_estimates(Engine& engine, const World& costs) {
  for (const auto& task : engine.graph().tasks) {
    if (task == nullptr) continue;
    for (size_t i = task->nodes.size(); i-- > 0;) {
      const auto it = costs.costs_ns.find(task->node_names[i]);
      const auto [per_batch, per_pkt] =
          it == costs.costs_ns.end() ? std::pair<uint64_t, uint64_t>{0, 0} : it->second;
      task->executor->set_work_estimate(
          task->nodes[i], {static_cast<double>(per_batch), static_cast<double>(per_pkt)});
    }
  }
}

// Weights and paces of units, the input's weight.
void add_unit_changes(Scenario& scenario, const exec::ControlModel& model,
                      exec::Decision& decision) {
  for (exec::BufferChange& change : decision.changes) {
    if (!model.modules[change.module].is_unit) continue;
    if (scenario.rng_.below(2) == 0) change.weight = 1 + scenario.rng_.below(exec::kMaxWeight);
    if (scenario.rng_.below(2) == 0) change.pace_ns = scenario.rng_.below(20'000);
  }
  if (scenario.rng_.below(2) != 0) return;
  decision.changes.push_back({.module = scenario.world_.index["in"],
                              .trigger_pkts = exec::kKeepTrigger,
                              .age_limit_ns = exec::kKeepAge,
                              .reason = "test",
                              .weight = 1 + scenario.rng_.below(100)});
}

// What the last period has seen come to each input. The recorded arrivals have no ring to be full.
void expect_same_demand(Engine& engine, sim::Simulation& simulation) {
  const exec::PeriodSnapshot& a = engine.period(0.95);
  const exec::PeriodSnapshot b = simulation.period();
  const exec::ControlModel& model = simulation.model();
  ASSERT_EQ(a.inputs.size(), b.inputs.size());
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    size_t j = 0;
    while (engine.control_model().inputs.at(j).module != model.inputs[i].module) ++j;
    const exec::InputPeriod& mine = a.inputs[j];
    const exec::InputPeriod& theirs = b.inputs[i];
    const std::string& name = model.modules[model.inputs[i].module].name;
    SCOPED_TRACE(name);
    EXPECT_EQ(mine.offered_pkts, theirs.offered_pkts);
    EXPECT_EQ(mine.taken_pkts, theirs.taken_pkts);
    EXPECT_EQ(mine.lost_pkts, theirs.lost_pkts);
    EXPECT_EQ(mine.waiting_pkts, theirs.waiting_pkts);
    if (name == "in") continue;
    EXPECT_EQ(mine.ring_pkts, theirs.ring_pkts);
    EXPECT_EQ(mine.fill_max_pkts, theirs.fill_max_pkts);
    EXPECT_EQ(mine.fill_mean_pkts, theirs.fill_mean_pkts);
  }
}

// Both from zero to `end_ns`, with the same edits of triggers and limits on the way.
void expect_same(uint64_t seed, bool is_scheduled) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Scenario scenario(seed, is_scheduled);
  World& mine = scenario.world_;
  world = &mine;
  sim::Simulation simulation(scenario.simulated());
  simulation.recorder().limit(0, 1U << 22);
  simulation.update_recording();
  EngineRig rig(scenario.pipeline_, 8192, 256);
  rig.now_ns = 0;
  mine.now_ns = &rig.now_ns;
  set_work_estimates(rig.engine(), mine);

  const uint64_t end_ns = mine.arrivals.back().time_ns + 3'000'000;
  uint64_t until_ns = 0;
  while (until_ns < end_ns) {
    until_ns += 1 + scenario.rng_.below(400'000);
    simulation.run_until(until_ns);
    while (rig.now_ns < until_ns) {
      if (rig.worker().loop_once() == 0) rig.now_ns += scenario.empty_poll_ns_;
    }
    mine.seen_ns = until_ns;
    // Taking a period reads the clock, and units are charged up to there: only at the end then.
    if (!is_scheduled || until_ns >= end_ns) expect_same_demand(rig.engine(), simulation);
    std::vector<Engine::TriggerEdit> triggers;
    std::vector<Engine::AgeEdit> ages;
    exec::Decision decision;
    for (const ModuleSpec& module : scenario.pipeline_.modules) {
      if (module.params.count("self") == 0 || scenario.rng_.below(3) != 0) continue;
      const uint32_t trigger = scenario.rng_.below(scenario.pipeline_.engine.batch_pkts + 1);
      const uint64_t age_ns = 1 + scenario.rng_.below(30'000);
      triggers.push_back({module.name, trigger});
      ages.push_back({module.name, age_ns});
      decision.changes.push_back({mine.index[module.name], trigger, age_ns, "test"});
    }
    if (is_scheduled) add_unit_changes(scenario, simulation.model(), decision);
    simulation.apply(decision);
    is_scheduled ? rig.engine().change_buffers(decision.changes)
                 : rig.engine().set_buffers(triggers, ages);
    set_work_estimates(rig.engine(), mine);
  }

  std::vector<sim::Execution> simulated;
  for (const sim::Execution& execution : simulation.recorder().executions) {
    const std::string& name = scenario.pipeline_.modules[execution.module].name;
    if (mine.costs_ns.contains(name)) simulated.push_back(execution);
  }
  ASSERT_GT(simulated.size(), 100U);
  const size_t n = std::min(simulated.size(), mine.executed.size());
  for (size_t i = 0; i < n; ++i) {
    const sim::Execution& a = mine.executed[i];
    const sim::Execution& b = simulated[i];
    ASSERT_TRUE(a.start_ns == b.start_ns && a.end_ns == b.end_ns && a.module == b.module &&
                a.batch_pkts == b.batch_pkts && a.cause == b.cause)
        << "execution " << i << ": engine ran " << scenario.pipeline_.modules[a.module].name
        << " on " << a.batch_pkts << " at " << a.start_ns << " (cause " << int{a.cause}
        << "), simulator " << scenario.pipeline_.modules[b.module].name << " on " << b.batch_pkts
        << " at " << b.start_ns << " (cause " << int{b.cause} << ")";
  }
  EXPECT_EQ(simulated.size(), mine.executed.size());
  const exec::Snapshot a = rig.engine().snapshot(false);
  const exec::Snapshot b = simulation.snapshot(false);
  EXPECT_TRUE(a.balance.is_exact() && b.balance.is_exact());
  EXPECT_EQ(a.balance.sent_pkts, b.balance.sent_pkts);
  EXPECT_EQ(a.balance.dropped_pkts, b.balance.dropped_pkts);
  EXPECT_EQ(a.flows.back().total.delay_sum_ns, b.flows.back().total.delay_sum_ns);
  EXPECT_EQ(a.flows.back().total.delay_max_ns, b.flows.back().total.delay_max_ns);
}

TEST(EngineAndSimulator, ExecuteTheSameBatchesAtTheSameTime) {
  // A release by age through modules that cost nothing: what left, then a long rest.
  expect_same(2799, false);
  const uint64_t n_seeds = std::getenv("BATCHPLANE_LONG") != nullptr ? 3000 : 150;
  for (uint64_t seed = 1; seed <= n_seeds && !HasFatalFailure(); ++seed) expect_same(seed, false);
}

TEST(EngineAndSimulator, AgreeUnderExplicitScheduling) {
  const uint64_t n_seeds = std::getenv("BATCHPLANE_LONG") != nullptr ? 3000 : 150;
  for (uint64_t seed = 1; seed <= n_seeds && !HasFatalFailure(); ++seed) expect_same(seed, true);
}

}  // namespace
}  // namespace batchplane::property
