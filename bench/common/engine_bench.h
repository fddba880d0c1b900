// SPDX-License-Identifier: BSD-3-Clause
// engine_bench.h - a pipeline of the engine as a contender: its worker's loop on the calling
// thread.
#pragma once

#include <memory>
#include <string>

#include "common/trials.h"
#include "core/engine/engine.h"
#include "spec/pipeline_spec.h"

namespace bench {

// Short-hand for building pipelines in code.
class SpecBuilder {
 public:
  SpecBuilder& module(const std::string& name, const std::string& kind,
                      batchplane::Dict params = {}, uint32_t trigger_pkts = 0);
  SpecBuilder& edge(const std::string& from, const std::string& to, uint32_t gate = 0);
  SpecBuilder& flow(const std::string& name, std::vector<std::string> path);
  batchplane::PipelineSpec spec;
};

// One engine whose single worker is driven from the benchmark's thread.
class EngineBench {
 public:
  EngineBench(const batchplane::PipelineSpec& spec, const std::string& pool_name);
  // Packets that the source made in this many loops.
  uint64_t run(uint32_t n_loops);
  batchplane::Engine& engine() { return *engine_; }
  // Empty when everything that came in has left, and nothing was dropped.
  std::string verify();

 private:
  std::unique_ptr<batchplane::Engine> engine_;
};

// The paper's L2/L3 router: EtherType, MAC table, lookup in `fib_size` prefixes, then per next hop
// TTL, MAC rewrite, checksum, sink. Flows in turn, or at random.
batchplane::PipelineSpec l2l3_spec(uint32_t n_next_hops, uint32_t fib_size, bool is_random,
                                   uint32_t batch_pkts = 32);

}  // namespace bench
