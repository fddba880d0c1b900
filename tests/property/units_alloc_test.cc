// SPDX-License-Identifier: BSD-3-Clause
// units_alloc_test.cc - turns of scheduled units allocate nothing, whatever fills their queues.
#include <gtest/gtest.h>

#include "alloc_count.h"
#include "base/rng.h"
#include "engine_rig.h"

namespace batchplane::property {
namespace {

PipelineSpec two_stages(exec::Backpressure backpressure) {
  PipelineSpec spec;
  spec.engine.sample_one_run_in = 4;
  spec.engine.execution.mode = exec::Execution::kWeightedFair;
  spec.engine.execution.by = exec::ScheduleBy::kCount;
  spec.engine.execution.backpressure = backpressure;
  spec.engine.execution.input_weight = 40;
  spec.modules = {{"in", "source", {{"limit_pkts", 0}}},
                  {"s", "split", {{"gates", 6}, {"mode", "random"}}},
                  {"m", "merge", {}},
                  {"out", "sink", {}}};
  spec.edges = {{"in", "0", "s"}, {"m", "0", "out"}};
  for (uint32_t i = 0; i < 6; ++i) {
    const std::string name = "a" + std::to_string(i);
    spec.modules.push_back({name, "counter", {}, i * 5, 2000});
    spec.edges.push_back({"s", std::to_string(i), name});
    spec.edges.push_back({name, "0", "m"});
  }
  return spec;
}

TEST(Units, TurnsAllocateNothing) {
  for (const auto backpressure :
       {exec::Backpressure::kOff, exec::Backpressure::kOn, exec::Backpressure::kEarlyDrop}) {
    EngineRig rig(two_stages(backpressure));
    rig.loop(200);
    Rng rng(3);
    const uint64_t before = allocations_here();
    for (uint32_t i = 0; i < 5000; ++i) {
      rig.now_ns += rng.below(1500);
      rig.worker().loop_once();
    }
    EXPECT_EQ(allocations_here(), before);
    EXPECT_GT(rig.balanced().balance.sent_pkts, 3'000U);
  }
}

}  // namespace
}  // namespace batchplane::property
