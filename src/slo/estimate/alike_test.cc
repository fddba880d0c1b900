// SPDX-License-Identifier: BSD-3-Clause
// alike_test.cc - which modules and flows are alike, by small programs.
#include "slo/estimate/alike.h"

#include <gtest/gtest.h>

namespace batchplane::slo {
namespace alike_test {

constexpr uint64_t kSloNs = 20'000;

struct Bed {
  Program program;
  Snapshot snapshot;

  explicit Bed(uint32_t branches) {
    program.tasks.push_back({.is_saturated = true, .run_pkts = 32});
    for (uint32_t v = 0; v < branches; ++v) {
      ProgramModule module;
      module.cost_per_batch_ns = 50;
      module.cost_per_pkt_ns = 10;
      module.share = 1.0 / branches;
      module.arriving_pkts = 2;
      module.max_pkts = 32;
      program.modules.push_back(module);
      add_flow({v});
    }
  }
  void add_flow(const std::vector<uint32_t>& modules, uint64_t slo_ns = kSloNs) {
    ProgramFlow flow;
    flow.modules_begin = static_cast<uint32_t>(program.flow_modules.size());
    program.flow_modules.insert(program.flow_modules.end(), modules.begin(), modules.end());
    flow.modules_end = static_cast<uint32_t>(program.flow_modules.size());
    flow.tasks_begin = static_cast<uint32_t>(program.flow_tasks.size());
    program.flow_tasks.push_back(0);
    flow.tasks_end = static_cast<uint32_t>(program.flow_tasks.size());
    program.flows.push_back(flow);
    snapshot.flows.push_back({.slo_ns = slo_ns});
  }
  // Classes of flows; sets those of modules.
  std::vector<uint32_t> flows() {
    Alike alike(program);
    alike.find(snapshot, program);
    return alike.flows();
  }
  [[nodiscard]] std::vector<uint32_t> modules() const {
    std::vector<uint32_t> classes;
    for (const ProgramModule& module : program.modules) classes.push_back(module.alike);
    return classes;
  }
};

using Classes = std::vector<uint32_t>;

TEST(Alike, BranchesThatDifferByNoise) {
  Bed bed(4);
  bed.program.modules[1].cost_per_batch_ns *= 1.03;
  bed.program.modules[2].share *= 0.97;
  EXPECT_EQ(bed.flows(), Classes({0, 0, 0, 0}));
  EXPECT_EQ(bed.modules(), Classes({0, 0, 0, 0}));
}

// The first branch after a poll takes a fifth more; its buffer fills as fast as the others, which is what turns
// need.
TEST(Alike, BranchesThatCostMoreButFillAlike) {
  Bed bed(3);
  bed.program.modules[1].cost_per_batch_ns *= 1.2;
  bed.program.modules[1].cost_per_pkt_ns *= 1.2;
  EXPECT_EQ(bed.flows(), Classes({0, 0, 0}));
  bed.program.modules[1].cost_per_pkt_ns *= 1.5;
  EXPECT_EQ(bed.flows(), Classes({0, 1, 0}));
}

TEST(Alike, BranchesThatDiffer) {
  Bed bed(6);
  bed.program.modules[1].cost_per_batch_ns *= 2;
  bed.program.modules[2].share *= 0.8;
  bed.program.modules[3].max_pkts = 0;
  bed.program.modules[4].arriving_pkts = 3;
  bed.snapshot.flows[5].slo_ns = 2 * kSloNs;
  EXPECT_EQ(bed.flows(), Classes({0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(bed.modules(), Classes({0, 1, 2, 3, 4, 5}));
}

// Two stages of the same work: buffers on one path do not take turns with each other.
TEST(Alike, ModulesOnOnePathAreNot) {
  Bed bed(4);
  bed.program.flows.clear();
  bed.program.flow_modules.clear();
  bed.program.flow_tasks.clear();
  bed.snapshot.flows.clear();
  bed.add_flow({0, 1});
  bed.add_flow({2, 3});
  EXPECT_EQ(bed.flows(), Classes({0, 0}));
  EXPECT_EQ(bed.modules(), Classes({0, 1, 0, 1}));
}

// Of the flows through a module the one with the shortest SLO sets its trigger.
TEST(Alike, AModuleWithAFlowInMoreOfAHurryIsNot) {
  Bed bed(3);
  bed.add_flow({1}, kSloNs / 2);
  EXPECT_EQ(bed.flows(), Classes({0, 1, 0, 3}));
  EXPECT_EQ(bed.modules(), Classes({0, 1, 0}));
}

}  // namespace alike_test
}  // namespace batchplane::slo
