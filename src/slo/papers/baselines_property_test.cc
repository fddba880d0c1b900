// SPDX-License-Identifier: BSD-3-Clause
// baselines_property_test.cc - for any period: triggers stay in 0..B, every module is named at most
// once, and only modules that a buffer may help.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "slo/controllers.h"
#include "slo/model/plant_test_util.h"

namespace batchplane::slo {
namespace baselines_property_test {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  uint64_t below(uint64_t n) { return random_() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }

  // Any graph with edges to higher numbers, in one task or two, with flows along its edges.
  Model model() {
    Model model;
    constexpr uint32_t kLimits[] = {1, 4, 32, 256};
    model.batch_limit_pkts = kLimits[below(4)];
    const auto n = static_cast<uint32_t>(3 + below(18));
    const auto second_task = static_cast<uint32_t>(1 + below(2 * n));
    for (uint32_t m = 0; m < n; ++m) {
      model.modules.push_back({.name = std::to_string(m),
                               .task = m >= second_task ? 1U : 0U,
                               .has_buffer = m > 0 && m != second_task});
    }
    for (uint32_t m = 1; m < n; ++m) {
      const uint64_t n_into = 1 + below(3);
      for (uint64_t k = 0; k < n_into; ++k) {
        model.edges.push_back(
            {static_cast<uint32_t>(below(m)), static_cast<uint32_t>(below(4)), m});
      }
    }
    model.tasks.resize(2);
    mark_controlled(model);
    for (uint64_t f = below(6); f > 0; --f) model.flows.push_back({"f", path(model)});
    return model;
  }

  Snapshot snapshot(const Model& model) {
    Snapshot snapshot = empty_period(model);
    snapshot.period_ns = one_in(20) ? 0 : 1 + below(1'000'000'000);
    for (exec::ModulePeriod& module : snapshot.modules) {
      module.batches = count();
      module.pkts = count();
      module.arrived_batches = count();
      module.arrived_pkts = count();
      module.cost = {cost_ns(), cost_ns()};
      module.trigger_pkts = static_cast<uint32_t>(one_in(50)  ? below(100'000)
                                                  : one_in(2) ? 0
                                                              : below(model.batch_limit_pkts + 1));
      module.age_limit_ns = count();
    }
    for (exec::FlowPeriod& flow : snapshot.flows) {
      flow = flow_period(one_in(4) ? 0 : 1 + below(1'000'000), 0, count());
      flow.delay_ns = one_in(10) ? std::numeric_limits<uint64_t>::max() : below(1'500'000);
      flow.late_pkts = count();
    }
    for (exec::TaskPeriod& task : snapshot.tasks) {
      task.busy_ns = count();
      task.idle_ns = count();
      task.run_p99_ns = count();
    }
    return snapshot;
  }

 private:
  uint64_t count() { return one_in(5) ? 0 : one_in(50) ? random_() : below(100'000); }
  double cost_ns() {
    constexpr double kOdd[] = {0, -1, 1e300, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()};
    return one_in(10) ? kOdd[below(5)] : static_cast<double>(below(5000));
  }
  std::vector<uint32_t> path(const Model& model) {
    std::vector<uint32_t> path = {0};
    for (;;) {
      std::vector<uint32_t> next;
      for (const exec::ControlEdge& edge : model.edges) {
        if (edge.from == path.back()) next.push_back(edge.to);
      }
      if (next.empty()) return path;
      path.push_back(next[below(next.size())]);
    }
  }

  std::mt19937_64 random_;
};

class Baselines : public testing::TestWithParam<const char*> {};

TEST_P(Baselines, DecideWithinBoundsWhateverTheySee) {
  Draw draw(42);
  uint64_t n_changes = 0;
  for (int graph = 0; graph < 400; ++graph) {
    const Model model = draw.model();
    Settings settings;
    settings.percentile = std::vector<double>{0, 0.5, 0.95, 1}[draw.below(4)];
    settings.tolerance = std::vector<double>{0, 0.05, 0.2}[draw.below(3)];
    settings.pull_pkts = static_cast<uint32_t>(draw.below(6));
    settings.max_iterations = static_cast<uint32_t>(draw.below(4));
    const auto controller = make_controller(GetParam(), model, settings);
    for (int period = 0; period < 15; ++period) {
      const Decision decision = controller->step(draw.snapshot(model));
      std::set<uint32_t> named;
      for (const exec::BufferChange& change : decision.changes) {
        ASSERT_LT(change.module, model.modules.size());
        EXPECT_TRUE(model.modules[change.module].is_controlled);
        EXPECT_TRUE(named.insert(change.module).second);
        EXPECT_LE(change.trigger_pkts, model.batch_limit_pkts);
        EXPECT_STRNE(change.reason, "");
      }
      n_changes += decision.changes.size();
      EXPECT_EQ(decision.flows.size(), model.flows.size());
      for (const exec::FlowVerdict& verdict : decision.flows) {
        EXPECT_TRUE(std::isfinite(verdict.slack_ns) && std::isfinite(verdict.fill_ns));
      }
      (void)controller->explain();
    }
  }
  EXPECT_GT(n_changes, 1000U);  // the random periods do cause changes
}

// Only snapshots decide: two controllers that see the same do the same.
TEST_P(Baselines, AreFunctionsOfWhatTheySaw) {
  Draw draw(7);
  for (int graph = 0; graph < 50; ++graph) {
    const Model model = draw.model();
    const auto one = make_controller(GetParam(), model, {});
    const auto other = make_controller(GetParam(), model, {});
    for (int period = 0; period < 10; ++period) {
      const Snapshot snapshot = draw.snapshot(model);
      const Decision a = one->step(snapshot);
      const Decision b = other->step(snapshot);
      ASSERT_EQ(a.changes.size(), b.changes.size());
      for (size_t i = 0; i < a.changes.size(); ++i) {
        EXPECT_EQ(a.changes[i].module, b.changes[i].module);
        EXPECT_EQ(a.changes[i].trigger_pkts, b.changes[i].trigger_pkts);
        EXPECT_EQ(a.changes[i].age_limit_ns, b.changes[i].age_limit_ns);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Baselines,
                         testing::Values("onoff", "feasdir", "full", "full+age", "full(original)"));

}  // namespace baselines_property_test
}  // namespace batchplane::slo
