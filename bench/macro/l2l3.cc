// SPDX-License-Identifier: BSD-3-Clause
// l2l3.cc - ns per packet of the L2/L3 router: ours, the hand-inlined reference, rte_graph; 1, 16,
// 64 next hops.
#include <string>

#include "common/engine_bench.h"
#include "common/environment.h"
#include "common/report.h"
#include "reference/graph_peer.h"
#include "reference/reference.h"

namespace {

using bench::Interval;
using bench::Target;

constexpr uint32_t kMemoryMb = 3072;
constexpr uint32_t kRoutes = 500;

struct Case {
  uint32_t next_hops;
  bool is_random;
  double limit_ns;  // 0: reported only
};
constexpr Case kCases[] = {
    {1, false, 20}, {16, false, 25}, {64, false, 30}, {16, true, 0}, {64, true, 0}};

// How many times as long the other takes.
Interval inverse(const Interval& ratio) {
  return {1 / ratio.median, 1 / ratio.high, 1 / ratio.low};
}

void run_case(bench::Report& report, const bench::Options& options, const Case& c,
              const std::string& label) {
  const std::string key = std::to_string(c.next_hops) + (c.is_random ? "r" : "");
  bench::EngineBench ours(bench::l2l3_spec(c.next_hops, kRoutes, c.is_random), "ours" + key);
  bench::Reference reference(c.next_hops, kRoutes, c.is_random, "ref" + key);
  bench::GraphPeer peer(c.next_hops, kRoutes, c.is_random, "rteg" + key);
  const auto results = bench::run_interleaved({{.name = "batchplane",
                                                .run = [&](uint32_t n) { return ours.run(n); },
                                                .verify = [&] { return ours.verify(); }},
                                               {.name = "reference",
                                                .run = [&](uint32_t n) { return reference.run(n); },
                                                .verify = [&] { return reference.verify(); }},
                                               {.name = "rte_graph",
                                                .run = [&](uint32_t n) { return peer.run(n); },
                                                .verify = [&] { return peer.verify(); }}},
                                              options.trials, options.batches);
  const std::string title = "l2l3, next hops: " + label;
  report.rows(title, results);
  report.figure(title, "ns per packet", bench::time_percentile(results[0], 0.1),
                c.limit_ns > 0 ? std::optional(Target{c.limit_ns}) : std::nullopt);
  report.figure(title + ": time against the hand-inlined reference", "x",
                bench::paired_ratio(results[0], results[1]), Target{1.5});
  // As fast at least everywhere, and well ahead at the largest fan-out.
  const double least = c.next_hops == 64 && !c.is_random ? 1.3 : 1.0;
  report.figure(title + ": speed against rte_graph", "x",
                inverse(bench::paired_ratio(results[0], results[2])), Target{least, false});
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("l2l3", options);
  for (const Case& c : kCases) {
    const std::string label = std::to_string(c.next_hops) + (c.is_random ? " random" : "");
    if (report.wants(label)) run_case(report, options, c, label);
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 3000, .batches = 400});
  return bench::guarded([&] { return run(options); });
}
