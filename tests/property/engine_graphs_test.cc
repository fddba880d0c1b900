// SPDX-License-Identifier: BSD-3-Clause
// engine_graphs_test.cc - random pipelines of real modules on two workers: every packet accounted
// for after every step, through live edits, an apply and the stop.
//
// BP_SEED=n replays one seed, BP_SEEDS=n sets how many are tried.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "core/module/register.h"
#include "engine_rig.h"
#include "random_graph.h"

namespace batchplane::property {
namespace {

// Keeps some packets, lets them go later, makes some of its own: what neighbour or reassembly do,
// without their rules.
class Hold final : public Module {
 public:
  static constexpr uint32_t kMaxPkts = 40;

  explicit Hold(const Args& /*args*/) { kept_.reserve(kMaxPkts); }
  ~Hold() override {
    for (Packet* pkt : kept_) PacketPool::free_bulk(&pkt, 1);
  }

  void process(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      ++n_seen_;
      if (n_seen_ % 3 == 0 && kept_.size() < kMaxPkts) {
        kept_.push_back(ctx.keep(batch, i));
      } else if (n_seen_ % 7 == 0) {
        if (Packet* made = ctx.originate(60)) ctx.emit(0, made);
      } else if (n_seen_ % 11 == 0) {
        ctx.drop(batch, i, drop_reason());
      }
    }
  }
  [[nodiscard]] uint64_t housekeep_interval_ns() const override { return 3000; }
  void housekeep(Context& ctx, uint64_t /*budget_ns*/) noexcept override {
    uint32_t sent = 0;
    const auto half = static_cast<uint32_t>((kept_.size() + 1) / 2);
    while (sent < half && (sent % 5 == 4 ? ctx.drop_owned(kept_[sent], drop_reason())
                                         : ctx.emit(0, kept_[sent]))) {
      ++sent;
    }
    kept_.erase(kept_.begin(), kept_.begin() + sent);
  }
  void adopt(Module& old) noexcept override { std::swap(kept_, static_cast<Hold&>(old).kept_); }
  [[nodiscard]] uint64_t held_pkts() const override { return kept_.size(); }
  [[nodiscard]] uint32_t max_held_pkts() const override { return kMaxPkts; }
  void give_up_held(const std::function<void(Packet*)>& take) override {
    for (Packet* pkt : kept_) take(pkt);
    kept_.clear();
  }

  static const DropReason& drop_reason() {
    static const DropReason kTired{"test_tired", "the test module let it fall", "none"};
    return kTired;
  }

 private:
  std::vector<Packet*> kept_;
  uint32_t n_seen_ = 0;
};

const Register<Hold> kHold{
    {.kind = "test_hold", .help = "Holds packets.", .drops = {&Hold::drop_reason()}}};

// Who hands packets on: what enters a module there comes out again, but for what it drops or keeps.
bool hands_on(const std::string& kind) {
  return kind != "source" && kind != "drop" && kind != "sink";
}

class Trial {
 public:
  explicit Trial(uint64_t seed)
      : rng_(seed),
        graph_(rng_, kBatches[rng_.below(std::size(kBatches))]),
        spec_(graph_.make()),
        rig_(spec_, 24'000, 256) {}

  void run() {
    for (uint32_t i = 0; i < 60 && !testing::Test::HasFailure(); ++i) step();
    if (testing::Test::HasFailure()) return;
    PipelineSpec next = RandomGraph(rng_, spec_.engine.batch_pkts).make();
    rig_.engine().apply(rig_.build(next));
    spec_ = std::move(next);
    is_first_graph_ = false;
    check();
    for (uint32_t i = 0; i < 40 && !testing::Test::HasFailure(); ++i) step();
    rig_.engine().stop(false);
    check();
    rig_.engine().stop(true);
    EXPECT_EQ(check().balance.held_pkts, 0U);
  }
  [[nodiscard]] const PipelineSpec& spec() const { return spec_; }

 private:
  static constexpr uint32_t kBatches[] = {1, 2, 5, 32, 32, 64, 256};

  void step() {
    edit();
    static constexpr uint64_t kNs[] = {0, 1, 100, 1000, 30'000};
    rig_.now_ns += kNs[rng_.below(5)] + rng_.below(50);
    for (uint32_t w = 0; w < 2; ++w) {
      if (rng_.below(3) != 0) rig_.worker(w).loop_once();
    }
    check();
  }

  void edit() {
    if (rng_.below(10) == 0) rig_.engine().set_idle_hold(rng_.below(2) == 0);
    if (rng_.below(3) != 0) return;
    std::vector<Engine::TriggerEdit> triggers;
    std::vector<Engine::AgeEdit> ages;
    for (uint32_t n = rng_.below(5); n > 0; --n) {
      const ModuleSpec& module = random_module();
      if (module.kind == "source") continue;
      if (rng_.below(2) == 0) ages.push_back({module.name, rng_.below(20'000)});
      triggers.push_back({module.name, rng_.below(spec_.engine.batch_pkts + 1)});
    }
    rig_.engine().set_buffers(triggers, ages);
    const auto n_tasks = static_cast<uint32_t>(rig_.engine().control_model().tasks.size());
    rig_.engine().change_polls({{rng_.below(n_tasks), 1 + rng_.below(spec_.engine.batch_pkts)}});
    if (!spec_.flows.empty()) {
      const auto f = rng_.below(static_cast<uint32_t>(spec_.flows.size()));
      rig_.engine().set_slo(spec_.flows[f].name, rng_.below(20'000));
    }
  }

  const ModuleSpec& random_module() {
    return spec_.modules[rng_.below(static_cast<uint32_t>(spec_.modules.size()))];
  }

  Snapshot check() {
    Snapshot snapshot = rig_.balanced();
    if (++n_checks_ % 8 == 0 || !is_first_graph_) rig_.expect_pool_whole(snapshot);
    if (is_first_graph_) {
      expect_ways_add_up(snapshot);
      expect_drops_add_up(snapshot);
      expect_flows_fit(snapshot);
    }
    return snapshot;
  }

  // Every packet that some module handed on has come to another, or to a gate that leads nowhere.
  void expect_ways_add_up(const Snapshot& snapshot) {
    uint64_t came = sum_of(snapshot.other_drops);
    uint64_t went = snapshot.balance.originated_pkts;
    for (const ModuleSnapshot& module : snapshot.modules) {
      const uint64_t drops = sum_of(module.drops);
      if (module.kind == "source") {
        went += module.pkts;
        continue;
      }
      came += module.pkts + module.held_pkts;
      went +=
          hands_on(module.kind) ? module.pkts - drops - module.kept_pkts : sum_of(module.handed_on);
    }
    EXPECT_EQ(came, went);
  }

  // What the drop gate of a module took is no loss.
  void expect_drops_add_up(const Snapshot& snapshot) {
    uint64_t drops = sum_of(snapshot.other_drops);
    for (const ModuleSnapshot& module : snapshot.modules) {
      drops += sum_of(module.drops);
      if (!has_drop_gate(module.name)) {
        EXPECT_EQ(sum_of(module.handed_on), 0U) << module.name;
      }
    }
    EXPECT_EQ(drops, snapshot.balance.dropped_pkts);
  }

  // No more packets have taken a path than have passed each of its modules, or were made on the
  // way.
  void expect_flows_fit(const Snapshot& snapshot) {
    std::map<std::string, uint64_t> through;
    for (size_t f = 0; f < spec_.flows.size(); ++f) {
      for (const std::string& step : spec_.flows[f].path) {
        through[step.substr(0, step.find(':'))] += snapshot.flows[f].total.pkts;
      }
    }
    for (const ModuleSnapshot& module : snapshot.modules) {
      EXPECT_LE(through[module.name], module.pkts + snapshot.balance.originated_pkts)
          << module.name;
    }
  }

  bool has_drop_gate(const std::string& name) const {
    return std::ranges::any_of(spec_.edges, [&](const EdgeSpec& edge) {
      return edge.from == name && edge.gate == "drop";
    });
  }

  Rng rng_;
  RandomGraph graph_;
  PipelineSpec spec_;
  EngineRig rig_;
  bool is_first_graph_ = true;
  uint32_t n_checks_ = 0;
};

void print(const PipelineSpec& spec) {
  std::printf("batch_pkts %u\n", spec.engine.batch_pkts);
  for (const ModuleSpec& module : spec.modules) {
    std::printf("%s: %s, trigger %u, age limit %lu, worker %s\n", module.name.c_str(),
                module.kind.c_str(), module.trigger_pkts, module.age_limit_ns,
                module.worker.c_str());
  }
  for (const EdgeSpec& edge : spec.edges) {
    std::printf("%s:%s -> %s\n", edge.from.c_str(), edge.gate.c_str(), edge.to.c_str());
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeeds = 15;
#else
constexpr uint64_t kSeeds = 300;
#endif

uint64_t setting(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

TEST(EngineGraphs, EveryPacketIsAccountedForAtEveryStep) {
  const bool is_replay = std::getenv("BP_SEED") != nullptr;
  const uint64_t first = setting("BP_SEED", 1);
  const uint64_t n = is_replay ? 1 : setting("BP_SEEDS", kSeeds);
  for (uint64_t seed = first; seed < first + n; ++seed) {
    Trial trial(seed);
    if (is_replay) print(trial.spec());
    trial.run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "replay with BP_SEED=" << seed;
  }
}

}  // namespace
}  // namespace batchplane::property
