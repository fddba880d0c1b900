// SPDX-License-Identifier: BSD-3-Clause
// fork_test_util.h - a splitter with two branches, for tests of the control loop.
#pragma once

#include "spec/pipeline_spec.h"

namespace batchplane::app {

inline constexpr uint64_t kLoopNs = 5'000;  // 16 packets to each branch

inline PipelineSpec fork(uint64_t slo_ns) {
  PipelineSpec spec;
  spec.engine.is_idle_hold = true;
  spec.engine.sample_one_run_in = 1'000'000'000;  // sampled cycles are real time
  spec.modules = {{"in", "source", {}},
                  {"s", "split", {{"gates", 2}}},
                  {"a0", "counter", {}},
                  {"a1", "counter", {}},
                  {"out", "sink", {}}};
  spec.edges = {
      {"in", "0", "s"}, {"s", "0", "a0"}, {"s", "1", "a1"}, {"a0", "0", "out"}, {"a1", "0", "out"}};
  spec.flows = {{"f0", {"in", "s", "a0", "out"}, slo_ns}, {"f1", {"in", "s", "a1", "out"}, slo_ns}};
  return spec;
}

}  // namespace batchplane::app
