// SPDX-License-Identifier: BSD-3-Clause
// two_workers.cc - the L2/L3 router on one worker, and with its second half on another core, behind
// rings of several sizes.
//
// Packets are made in the first worker. --core is that worker's; the second takes the next one.
#include <memory>
#include <string>
#include <vector>

#include "common/engine_bench.h"
#include "common/environment.h"
#include "common/report.h"

namespace {

using batchplane::Dict;

constexpr uint32_t kMemoryMb = 1024;
constexpr uint32_t kRoutes = 500;
constexpr uint32_t kRingsPkts[] = {64, 256, 1024, 4096};

batchplane::PipelineSpec divided(uint32_t ring_pkts, int core) {
  batchplane::PipelineSpec spec = bench::l2l3_spec(1, kRoutes, false);
  spec.workers = {{"front", -1}, {"back", core}};
  batchplane::ModuleSpec queue;
  queue.name = "ring";
  queue.kind = "queue";
  queue.params = Dict{{"size_pkts", static_cast<int64_t>(ring_pkts)}, {"backpressure", true}};
  queue.worker = "back";
  spec.modules.push_back(queue);
  for (batchplane::EdgeSpec& edge : spec.edges) {
    if (edge.from == "lookup") edge.to = "ring";
  }
  spec.edges.push_back({"ring", "0", "ttl_0"});
  spec.flows.front().path = {"in", "lookup:0", "ring", "out_0"};
  return spec;
}

// The first worker runs on the benchmark's thread, the second on its own.
class TwoWorkers {
 public:
  TwoWorkers(uint32_t ring_pkts, int core)
      : bench_(divided(ring_pkts, core), "ring" + std::to_string(ring_pkts)) {}
  // While the ring is full, nothing is polled.
  uint64_t run(uint32_t n_batches) {
    uint64_t pkts = 0;
    for (uint32_t done = 0; done < n_batches;) {
      const uint64_t polled = bench_.run(1);
      pkts += polled;
      done += polled != 0 ? 1 : 0;
    }
    return pkts;
  }
  std::string verify() {
    start();
    std::string wrong = bench_.verify();
    stop();
    return wrong;
  }
  void start() { back().start(); }
  void stop() {
    back().stop();
    back().drain(~0U);
  }

 private:
  batchplane::Worker& back() { return *bench_.engine().workers()[1]; }
  bench::EngineBench bench_;
};

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("two_workers", options);
  bench::EngineBench one(bench::l2l3_spec(1, kRoutes, false), "one");
  std::vector<bench::Contender> contenders{{.name = "one worker",
                                            .run = [&](uint32_t n) { return one.run(n); },
                                            .verify = [&] { return one.verify(); }}};
  std::vector<std::unique_ptr<TwoWorkers>> divided;
  TwoWorkers* running = nullptr;
  for (const uint32_t ring_pkts : kRingsPkts) {
    divided.push_back(std::make_unique<TwoWorkers>(ring_pkts, options.core == 0 ? 1 : 0));
    TwoWorkers& pair = *divided.back();
    contenders.push_back({.name = "ring of " + std::to_string(ring_pkts),
                          .run = [&](uint32_t n) { return pair.run(n); },
                          .verify = [&] { return pair.verify(); },
                          .prepare =
                              [&] {
                                if (running != nullptr) running->stop();
                                running = &pair;
                                pair.start();
                                pair.run(1000);
                              }});
  }
  contenders.front().prepare = [&] {
    if (running != nullptr) running->stop();
    running = nullptr;
  };
  const auto results = bench::run_interleaved(contenders, options.trials, options.batches);
  if (running != nullptr) running->stop();
  report.rows("l2l3, 1 next hop", results);
  for (size_t i = 1; i < results.size(); ++i) {
    const bench::Interval ns = bench::time_percentile(results[i], 0.1);
    report.figure("two workers, " + results[i].name, "Mpps",
                  {1e3 / ns.median, 1e3 / ns.high, 1e3 / ns.low});
    report.figure("two workers, " + results[i].name + ": time against one worker", "x",
                  bench::paired_ratio(results[i], results[0]));
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options =
      bench::parse_options(argc, argv, {.trials = 100, .batches = 40000});
  return bench::guarded([&] { return run(options); });
}
