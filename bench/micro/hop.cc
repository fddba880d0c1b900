// SPDX-License-Identifier: BSD-3-Clause
// hop.cc - what the engine takes to pass a batch on to a module that does nothing: chains of 0 to
// 16 of them.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/cost_fit.h"
#include "common/engine_bench.h"
#include "common/environment.h"
#include "common/report.h"

namespace {

constexpr uint32_t kMemoryMb = 256;
constexpr uint32_t kResamples = 1000;
const std::vector<uint32_t> kLengths{0, 4, 8, 16};

batchplane::PipelineSpec chain_of(uint32_t n_nulls, uint32_t batch_pkts) {
  bench::SpecBuilder b;
  b.spec.name = "hop";
  b.spec.engine.batch_pkts = batch_pkts;
  b.module("in", "source", {{"flows", batchplane::List{batchplane::Dict{{"count", 1}}}}});
  std::string previous = "in";
  for (uint32_t i = 0; i < n_nulls; ++i) {
    const std::string name = "null_" + std::to_string(i);
    b.module(name, "null").edge(previous, name);
    previous = name;
  }
  b.module("out", "sink").edge(previous, "out");
  return b.spec;
}

// ns per packet and hop: the slope over the length of the chain.
bench::Interval slope_of(const std::vector<bench::Result>& results) {
  const auto n_trials = static_cast<uint32_t>(results.front().ns_per_pkt.size());
  return bench::bootstrap(n_trials, kResamples, [&](const std::vector<uint32_t>& trials) {
    std::vector<batchplane::CostLaw::Point> points;
    for (size_t i = 0; i < results.size(); ++i) {
      std::vector<double> times;
      for (const uint32_t t : trials) times.push_back(results[i].ns_per_pkt[t]);
      points.push_back({kLengths[i], bench::percentile(std::move(times), 0.1)});
    }
    return std::vector<double>{batchplane::fit_line(points).line.cost_per_pkt_ns};
  })[0];
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("hop", options);
  struct Case {
    uint32_t batch_pkts;
    double limit_ns;
  };
  std::vector<batchplane::CostLaw::Point> of_batches;
  for (const Case& c : {Case{1, 3.0}, Case{32, 0.5}}) {
    const std::string at = " at batch " + std::to_string(c.batch_pkts);
    std::vector<std::unique_ptr<bench::EngineBench>> engines;
    std::vector<bench::Contender> contenders;
    for (const uint32_t length : kLengths) {
      const std::string name = std::to_string(length) + " nulls";
      engines.push_back(std::make_unique<bench::EngineBench>(
          chain_of(length, c.batch_pkts),
          "hop_" + std::to_string(c.batch_pkts) + "_" + std::to_string(length)));
      bench::EngineBench* engine = engines.back().get();
      contenders.push_back({.name = name,
                            .run = [engine](uint32_t n) { return engine->run(n); },
                            .verify = [engine] { return engine->verify(); }});
    }
    const uint32_t batches = options.batches * (c.batch_pkts == 1 ? 4 : 1);
    const auto results = bench::run_interleaved(contenders, options.trials, batches);
    report.rows("chain" + at, results);
    const bench::Interval pkt_ns = slope_of(results);
    report.figure("hop to a null module" + at, "ns per packet", pkt_ns, bench::Target{c.limit_ns});
    of_batches.push_back({c.batch_pkts, c.batch_pkts * pkt_ns.median});
  }
  const batchplane::CostLaw::Line cost = batchplane::fit_line(of_batches).line;
  report.attach("cost", nlohmann::json{{"cost_per_batch_ns", cost.cost_per_batch_ns},
                                       {"cost_per_pkt_ns", cost.cost_per_pkt_ns}}
                            .dump());
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 1000, .batches = 500});
  return bench::guarded([&] { return run(options); });
}
