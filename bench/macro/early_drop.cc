// SPDX-License-Identifier: BSD-3-Clause
// early_drop.cc - a flood through the gateway of 16 next hops into a link that carries a small part of it:
// dropped at the scheduler, or at the first module.
#include <string>

#include "common/engine_bench.h"
#include "common/environment.h"
#include "common/gateway_spec.h"
#include "common/report.h"

namespace {

using batchplane::Dict;

constexpr uint32_t kMemoryMb = 2048;
constexpr int64_t kLinkBps = 100'000'000;  // 0.2 Mpps of 60 bytes

batchplane::PipelineSpec flooded(bool is_early) {
  batchplane::PipelineSpec spec = bench::gateway_spec({.next_hops = 16});
  std::erase_if(spec.modules, [](const auto& module) { return module.kind == "sink"; });
  for (batchplane::EdgeSpec& edge : spec.edges) {
    if (edge.to.starts_with("out_")) edge.to = "link";
  }
  spec.modules.push_back({"link", "egress", Dict{{"rate_bps", kLinkBps}}});
  spec.modules.push_back({"out", "sink", {}});
  spec.edges.push_back({"link", "0", "out"});
  for (batchplane::FlowSpec& flow : spec.flows) {
    flow.path.back() = "link";
    flow.path.emplace_back("out");
  }
  if (is_early) {
    spec.modules.push_back({"early", "early_drop", Dict{{"scheduler", "link"}}});
    spec.edges.front().to = "early";
    spec.edges.push_back({"early", "0", "type_check"});
  }
  return spec;
}

// Nothing is lost but what the scheduler has no room for, and the link is full.
std::string verify(bench::EngineBench& flood) {
  flood.run(10'000);
  const batchplane::Balance all = flood.engine().snapshot(false).balance;
  if (!all.is_exact()) return "packets do not add up";
  if (all.sent_pkts == 0) return "the link stands still";
  return all.dropped_pkts > all.in_pkts / 2 ? "" : "this is no flood";
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("early_drop", options);
  bench::EngineBench late(flooded(false), "late");
  bench::EngineBench early(flooded(true), "early");
  const auto results = bench::run_interleaved({{.name = "at the scheduler",
                                                .run = [&](uint32_t n) { return late.run(n); },
                                                .verify = [&] { return verify(late); }},
                                               {.name = "at the first module",
                                                .run = [&](uint32_t n) { return early.run(n); },
                                                .verify = [&] { return verify(early); }}},
                                              options.trials, options.batches);
  report.rows("gateway(16), flooded", results);
  report.figure("time at the scheduler / at the first module", "x",
                bench::paired_ratio(results[0], results[1]));
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 300, .batches = 500});
  return bench::guarded([&] { return run(options); });
}
