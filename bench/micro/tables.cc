// SPDX-License-Identifier: BSD-3-Clause
// tables.cc - route changes while packets are looked up: single ones a second, time until visible,
// all at once.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net.h"
#include "common/engine_bench.h"
#include "common/environment.h"
#include "common/report.h"

namespace {

using batchplane::Dict;
using batchplane::Engine;
using batchplane::List;
using batchplane::Module;
using batchplane::TscClock;
namespace net = batchplane::net;

constexpr uint32_t kMemoryMb = 2048;
constexpr uint32_t kWays = 16;
constexpr uint32_t kBulkRoutes = 500'000;
constexpr uint32_t kBulkTrials = 3;
constexpr uint32_t kMaxPrefixes = 600'000;

uint64_t now_ns() { return TscClock::instance().now_ns(); }

uint64_t sent_by(Engine& engine, const std::string& name) {
  for (const auto& module : engine.snapshot(false).modules) {
    if (module.name == name) return module.pkts;
  }
  throw std::runtime_error("there is no module " + name);
}

Dict route_of(uint32_t address, uint8_t length, uint32_t gate) {
  return {{"prefix", net::format_prefix4({address, length})}, {"gate", static_cast<int64_t>(gate)}};
}

// Once the call has returned, no packet may go the old way: flow 0 is moved to another branch, and
// the one that it used before must stand still.
std::string moves_at_once(Engine& engine, Module& lookup) {
  const uint32_t address = *net::parse_ipv4("20.0.0.1");
  lookup.command("add", route_of(address, 32, 1));
  const uint64_t before = sent_by(engine, "out_0");
  const uint64_t until_ns = now_ns() + 5'000'000;
  while (now_ns() < until_ns) {
  }
  const uint64_t after = sent_by(engine, "out_0");
  lookup.command("delete", Dict{{"prefix", "20.0.0.1/32"}});
  // What was on its way at the time of the first snapshot is none: the worker takes that between
  // runs.
  return after == before ? "" : "packets still went the old way after a route was changed";
}

// Each call returns when the change can be seen by the worker and no longer the old table.
void measure_single(bench::Report& report, Module& lookup, uint32_t n) {
  std::vector<double> ms;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t address = (120U << 24) + ((i / 2) << 8);
    const uint64_t start_ns = now_ns();
    if (i % 2 == 0) {
      lookup.command("add", route_of(address, 24, i / 2 % kWays));
    } else {
      lookup.command("delete", Dict{{"prefix", net::format_prefix4({address, 24})}});
    }
    ms.push_back(static_cast<double>(now_ns() - start_ns) * 1e-6);
  }
  const auto figures = bench::bootstrap(n, 500, [&](const std::vector<uint32_t>& trials) {
    std::vector<double> sample;
    double sum_ms = 0;
    for (const uint32_t t : trials) {
      sample.push_back(ms[t]);
      sum_ms += ms[t];
    }
    return std::vector<double>{1000.0 * n / sum_ms, bench::percentile(sample, 0.5),
                               bench::percentile(std::move(sample), 0.99)};
  });
  report.figure("single route changes", "per second", figures[0], bench::Target{1000, false});
  report.figure("single route change, until visible, median", "ms", figures[1]);
  report.figure("single route change, until visible, 99th percentile", "ms", figures[2],
                bench::Target{10});
}

// Two tables in turn, so that each replacement changes all that can be changed.
List table_of(uint32_t turn) {
  List routes;
  for (uint32_t i = 0; i < kWays; ++i) routes.push_back(route_of((20U << 24) + (i << 8), 24, i));
  for (uint32_t i = 0; i < kBulkRoutes - kWays; ++i) {
    routes.push_back(route_of((30U << 24) + (i << 8) + (turn << 31), 24, i % kWays));
  }
  return routes;
}

void measure_bulk(bench::Report& report, Engine& engine, Module& lookup) {
  std::vector<double> seconds;
  std::vector<double> mpps;
  for (uint32_t turn = 0; turn < kBulkTrials; ++turn) {
    const batchplane::Value args = Dict{{"routes", table_of(turn % 2)}};
    const uint64_t before_pkts = engine.snapshot(false).balance.in_pkts;
    const uint64_t start_ns = now_ns();
    lookup.command("replace", args);
    const uint64_t ns = now_ns() - start_ns;
    const uint64_t pkts = engine.snapshot(false).balance.in_pkts - before_pkts;
    seconds.push_back(static_cast<double>(ns) * 1e-9);
    mpps.push_back(static_cast<double>(pkts) * 1e3 / static_cast<double>(ns));
  }
  const auto spread = [](const std::vector<double>& values) {
    return bench::Interval{bench::median_of(values), bench::percentile(values, 0),
                           bench::percentile(values, 1)};
  };
  report.figure("500 000 routes replaced in one step", "s", spread(seconds), bench::Target{10});
  report.figure("rate of the worker meanwhile", "Mpps", spread(mpps));
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core == 0 ? 1 : 0);
  bench::Report report("tables", options);
  batchplane::PipelineSpec spec = bench::l2l3_spec(kWays, 500, false);
  spec.workers.push_back({"w0", options.core});
  for (auto& module : spec.modules) {
    if (module.kind == "ipv4_lookup") module.params["max_prefixes"] = kMaxPrefixes;
  }
  bench::EngineBench l2l3(spec, "tables");
  Engine& engine = l2l3.engine();
  engine.start();
  Module& lookup = *engine.graph().at("lookup").module;
  const std::string wrong = moves_at_once(engine, lookup);
  if (!wrong.empty()) throw std::runtime_error(wrong);
  measure_single(report, lookup, options.batches);
  measure_bulk(report, engine, lookup);
  engine.stop(true);
  const batchplane::Balance balance = engine.snapshot(false).balance;
  if (!balance.is_exact()) throw std::runtime_error("packets do not add up");
  const auto lost_pkts = static_cast<double>(balance.dropped_pkts);
  report.figure("packets lost during all changes", "packets", {lost_pkts, lost_pkts, lost_pkts},
                bench::Target{0});
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 3, .batches = 2000});
  return bench::guarded([&] { return run(options); });
}
