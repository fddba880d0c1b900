// SPDX-License-Identifier: BSD-3-Clause
// gateway.cc - ns per packet of the gateway pipelines: unbuffered and with hand-set triggers of 32,
// side by side, with the papers' static NAT and rules and with stateful NAT and ClassBench-like
// rules.
#include <string>

#include "common/engine_bench.h"
#include "common/environment.h"
#include "common/gateway_spec.h"
#include "common/report.h"

namespace {

using bench::GatewayShape;
using bench::Target;

constexpr uint32_t kMemoryMb = 4096;
constexpr uint32_t kTriggerPkts = 32;

struct Case {
  const char* label;
  GatewayShape shape;
  double limit_ns = 0;           // unbuffered; 0: reported only
  double buffered_limit_ns = 0;  // with triggers of 32
};

const Case kCases[] = {
    {"gateway(16)", {.next_hops = 16}, 75, 50},
    {"gateway(64)", {.next_hops = 64}, 100, 55},
    {"vrf(2,4)", {.vrfs = 2, .next_hops = 4}, 0, 50},
    {"vrf(4,8)", {.vrfs = 4, .next_hops = 8}, 85, 0},
    {"gateway(16), stateful NAT", {.next_hops = 16, .is_stateful = true}},
    {"gateway(16), 1000 random rules", {.next_hops = 16, .acl_rules = 1000, .is_random_acl = true}},
    {"gateway(64), stateful NAT", {.next_hops = 64, .is_stateful = true}},
};

void run_case(bench::Report& report, const bench::Options& options, const Case& c) {
  GatewayShape buffered_shape = c.shape;
  buffered_shape.trigger_pkts = kTriggerPkts;
  const std::string label = c.label;
  bench::EngineBench plain(bench::gateway_spec(c.shape), "plain");
  bench::EngineBench buffered(bench::gateway_spec(buffered_shape), "buffered");
  const auto results = bench::run_interleaved({{.name = "unbuffered",
                                                .run = [&](uint32_t n) { return plain.run(n); },
                                                .verify = [&] { return plain.verify(); }},
                                               {.name = "trigger 32",
                                                .run = [&](uint32_t n) { return buffered.run(n); },
                                                .verify = [&] { return buffered.verify(); }}},
                                              options.trials, options.batches);
  const auto target = [](double ns) { return ns > 0 ? std::optional(Target{ns}) : std::nullopt; };
  report.rows(label, results);
  report.figure(label, "ns per packet", bench::time_percentile(results[0], 0.1),
                target(c.limit_ns));
  report.figure(label + ", trigger 32", "ns per packet", bench::time_percentile(results[1], 0.1),
                target(c.buffered_limit_ns));
  report.figure(label + ": time unbuffered / with trigger 32", "x",
                bench::paired_ratio(results[0], results[1]));
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("gateway", options);
  for (const Case& c : kCases) {
    if (report.wants(c.label)) run_case(report, options, c);
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 1000, .batches = 200});
  return bench::guarded([&] { return run(options); });
}
