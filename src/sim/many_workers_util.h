// SPDX-License-Identifier: BSD-3-Clause
// many_workers_util.h - pipelines of many workers for tests and benchmarks: a star around one
// worker, and workers that share nothing.
#pragma once

#include <string>

#include "sim/sim_test_util.h"

namespace batchplane::sim {

inline std::string worker_name(uint32_t worker) {
  std::string name = "w";
  return name += std::to_string(worker);
}

inline void name_workers(Spec& spec, uint32_t n_workers) {
  for (uint32_t w = 0; w < n_workers; ++w) {
    spec.pipeline.workers.push_back({worker_name(w), -1});
  }
  spec.loop.poll_per_batch_ns = 20;
  spec.loop.ring_take_per_pkt_ns = 3;
  spec.loop.clock_read_ns = 10;
}

// in -> split on the first worker; each other worker has a queue and a short chain behind it.
inline SpecMaker make_star(uint32_t n_workers, bool holds_back, double work_ns = 30) {
  SpecMaker maker;
  maker.module("split", "l2_table", 20, 5).edge("in", "split");
  Spec& spec = maker.spec();
  name_workers(spec, n_workers);
  for (uint32_t w = 1; w < n_workers; ++w) {
    const std::string n = std::to_string(w - 1);
    maker.module("queue_" + n, "queue", 0, 1);
    spec.pipeline.modules.back().params = {{"size_pkts", Value(256)},
                                           {"backpressure", Value(holds_back)}};
    spec.pipeline.modules.back().worker = worker_name(w);
    maker.module("check_" + n, "cost", 40, 10).module("work_" + n, "cost", 60, work_ns);
    maker.module("out_" + n, "sink", 0, 2);
    maker.edge("split", "queue_" + n, n);
    maker.chain({"queue_" + n, "check_" + n, "work_" + n, "out_" + n});
    maker.flow("flow_" + n, {"in", "split", "queue_" + n, "check_" + n, "work_" + n, "out_" + n},
               {{"split", n}});
  }
  return maker;
}

// A source, a port and a short chain for each worker.
inline SpecMaker make_row(uint32_t n_workers) {
  SpecMaker maker;
  Spec& spec = maker.spec();
  name_workers(spec, n_workers);
  const SourceSpec first = maker.source();
  for (uint32_t w = 0; w < n_workers; ++w) {
    std::string n = "_";
    n += std::to_string(w);
    std::string in = "in";
    if (w != 0) {
      in += n;
      spec.pipeline.ports.push_back({"p" + n, "ring", {{"size_pkts", Value(64)}}});
      spec.pipeline.generators.push_back({"load" + n, "p" + n, -1, {}});
      maker.module(in, "port_in", 0, 0);
      spec.pipeline.modules.back().params = {{"port", Value("p" + n)}};
      spec.pipeline.modules.back().worker = worker_name(w);
      spec.sources.push_back(first);
      spec.sources.back().name += n;
      spec.sources.back().port += n;
      spec.sources.back().seed += w;
      spec.routes.emplace_back();
    }
    maker.module("check" + n, "cost", 40, 10).module("work" + n, "cost", 60, 30);
    maker.module("out" + n, "sink", 0, 2);
    maker.chain({in, "check" + n, "work" + n, "out" + n});
    spec.pipeline.flows.push_back({"flow" + n, {in, "check" + n, "work" + n, "out" + n}, 0});
    spec.sources.back().flows.push_back({"flow" + n, 1, 0, 64});
    spec.routes.back().emplace_back();
  }
  return maker;
}

}  // namespace batchplane::sim
