// SPDX-License-Identifier: BSD-3-Clause
// engine_scenario.cc - the stand-ins.
#include "engine_scenario.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/module/register.h"

namespace batchplane::engine_scenario {

World* world = nullptr;

namespace {

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

}  // namespace

void expect_same_executions(const Scenario& scenario, sim::Simulation& simulation) {
  const std::vector<sim::Execution>& executed = scenario.world_.executed;
  std::vector<sim::Execution> simulated;
  for (const sim::Execution& execution : simulation.recorder().executions) {
    if (execution.module >= scenario.pipeline_.modules.size()) continue;  // a queue before a part
    const std::string& name = scenario.pipeline_.modules[execution.module].name;
    if (scenario.world_.costs_ns.contains(name)) simulated.push_back(execution);
  }
  const size_t n = std::min(simulated.size(), executed.size());
  for (size_t i = 0; i < n; ++i) {
    const sim::Execution& a = executed[i];
    const sim::Execution& b = simulated[i];
    ASSERT_TRUE(a.start_ns == b.start_ns && a.end_ns == b.end_ns && a.module == b.module &&
                a.batch_pkts == b.batch_pkts && a.cause == b.cause)
        << "execution " << i << ": engine ran " << scenario.pipeline_.modules[a.module].name
        << " on " << a.batch_pkts << " at " << a.start_ns << " (cause " << int{a.cause}
        << "), simulator " << scenario.pipeline_.modules[b.module].name << " on " << b.batch_pkts
        << " at " << b.start_ns << " (cause " << int{b.cause} << ")";
  }
  EXPECT_EQ(simulated.size(), executed.size());
}

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

}  // namespace batchplane::engine_scenario
