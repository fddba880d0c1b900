// SPDX-License-Identifier: BSD-3-Clause
// live_replace.cc - what it costs a worker under load when 10 000 access rules or 500 000 routes
// are replaced: time in commands, the longest loop, packets lost.
//
// The worker's loop runs on a thread of the benchmark, which times each loop. A probe behind the
// table sees in which loop the new one comes into force: what that loop and those behind it take
// more than those before is the replacement's cost. Loops in which the kernel took the core away
// are told by the thread's count of switches and left out.
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/net.h"
#include "common/engine_bench.h"
#include "common/environment.h"
#include "common/report.h"
#include "common/timed_loop.h"
#include "core/module/register.h"

namespace {

using batchplane::Dict;
using batchplane::Engine;
using batchplane::List;
using batchplane::Module;
using batchplane::TscClock;
using batchplane::Value;
namespace net = batchplane::net;

constexpr uint32_t kMemoryMb = 2048;
constexpr uint32_t kWays = 16;
constexpr int64_t kRules = 10'000;
constexpr uint32_t kRoutes = 500'000;
constexpr uint32_t kMaxPrefixes = 600'000;
constexpr uint32_t kFlowOffset = 32;  // the octet of the destination that tells flows apart
constexpr double kTargetUs = 10;
// For each trial: a swap that the kernel interrupts tells nothing.
constexpr uint32_t kMaxTries = 3;
constexpr std::chrono::milliseconds kAfterwards{5};  // loops behind the swap belong to it

uint64_t now_ns() { return TscClock::instance().now_ns(); }

// Changes with the mark and the gate that flows get. Worker's thread only.
uint64_t way_seen = 0;

class Probe final : public Module {
 public:
  explicit Probe(const batchplane::Args& args) : id_(args.u32("id")) {}
  void process(batchplane::Context& /*ctx*/, batchplane::Batch& batch) noexcept {
    const uint32_t flow = batch[0]->data()[kFlowOffset];
    way_seen = uint64_t{batch[0]->mark()} << 32 | ((flow ^ id_) & 1);
  }

 private:
  const uint32_t id_;
};

const batchplane::Register<Probe> kProbe{
    {.kind = "bench_probe",
     .help = "Notes the way that packets take.",
     .params = {{.name = "id", .type = batchplane::ParamType::kInt, .help = "its number"}}}};

Dict route_of(uint32_t address, uint32_t gate) {
  return {{"prefix", net::format_prefix4({address, 24})}, {"gate", static_cast<int64_t>(gate)}};
}

// Even and odd flows change places from turn to turn, so that no branch is new to the caches; all
// other routes are other prefixes.
Value routes_of(uint32_t turn) {
  List routes;
  for (uint32_t i = 0; i < kWays; ++i) {
    routes.push_back(route_of((20U << 24) + (i << 8), (i + turn) % 2));
  }
  for (uint32_t i = 0; i < kRoutes - kWays; ++i) {
    routes.push_back(route_of((30U << 24) + (i << 8) + (turn << 31), i % kWays));
  }
  return Dict{{"routes", std::move(routes)}};
}

// One rule: what the swap itself costs, the barrier that the kernel makes all cores pass included.
Value small_rules_of(uint32_t turn) {
  return Dict{{"rules",
               List{Dict{{"dst", "20.0.0.0/16"}, {"action", "mark " + std::to_string(turn + 1)}}}}};
}

Value rules_of(uint32_t turn) {
  return Dict{
      {"rules", List{Dict{{"dst", "20.0.0.0/16"}, {"action", "mark " + std::to_string(turn + 3)}}}},
      {"synthetic", Dict{{"style", "random"}, {"count", kRules - 1}, {"seed", turn + 1}}}};
}

batchplane::PipelineSpec spec_of() {
  bench::SpecBuilder b;
  b.spec.name = "live_replace";
  b.module("in", "source",
           {{"flows", List{Dict{{"count", static_cast<int64_t>(kWays)},
                                {"src_ip", "10.0.0.1"},
                                {"dst_ip", "20.0.0.1"},
                                {"dst_ip_step", 256}}}}});
  Dict filter = rules_of(0).as_dict();
  filter["default_action"] = "permit";
  b.module("filter", "acl", std::move(filter));
  Dict lookup{{"routes", List{}}, {"max_prefixes", kMaxPrefixes}};
  List routes;
  for (uint32_t i = 0; i < kWays; ++i) routes.push_back(route_of((20U << 24) + (i << 8), i % 2));
  lookup["routes"] = std::move(routes);
  b.module("lookup", "ipv4_lookup", std::move(lookup));
  b.edge("in", "filter").edge("filter", "lookup");
  for (uint32_t i = 0; i < kWays; ++i) {
    const std::string n = std::to_string(i);
    b.module("probe_" + n, "bench_probe", {{"id", i}}).module("ttl_" + n, "ttl");
    b.module("out_" + n, "sink");
    b.edge("lookup", "probe_" + n, i).edge("probe_" + n, "ttl_" + n).edge("ttl_" + n, "out_" + n);
    b.flow("flow_" + n, {"in", "filter", "lookup:" + n, "out_" + n});
  }
  return b.spec;
}

void measure(bench::Report& report, bench::TimedLoop& loops, Module& module,
             const std::string& what, const std::vector<Value>& tables, uint32_t trials) {
  if (!report.wants(what)) return;
  std::vector<double> seconds;
  std::vector<double> worker_us;
  std::vector<double> delay_us;
  std::vector<double> longest_us;
  std::vector<double> quiet_us;
  std::vector<double> rate;
  uint64_t preempted = 0;
  for (uint32_t turn = 0; turn < kMaxTries * trials && worker_us.size() < trials; ++turn) {
    loops.cut();
    const uint64_t start_ns = now_ns();
    module.command("replace", tables[(turn + 1) % tables.size()]);
    const uint64_t length_ns = now_ns() - start_ns;
    std::this_thread::sleep_for(kAfterwards);
    const bench::Stretch busy = loops.cut();
    std::this_thread::sleep_for(std::chrono::nanoseconds(length_ns) + kAfterwards);
    const bench::Stretch quiet = loops.cut();
    if (busy.swaps != 1) throw std::runtime_error(what + ": the new table is not seen once");
    preempted += busy.preempted + quiet.preempted;
    seconds.push_back(static_cast<double>(length_ns) * 1e-9);
    longest_us.push_back(static_cast<double>(busy.longest_ns) * 1e-3);
    quiet_us.push_back(static_cast<double>(quiet.longest_ns) * 1e-3);
    rate.push_back(busy.mpps() / quiet.mpps());
    if (!busy.has_clean_swap) continue;
    worker_us.push_back((static_cast<double>(busy.control_ns) + busy.swap_extra_ns) * 1e-3);
    delay_us.push_back(busy.swap_loop_ns * 1e-3);
  }
  if (worker_us.empty()) {
    report.note(what +
                ": the kernel took the core away during every swap: no worker time is known");
  } else {
    report.figure(what + ": worker time for it", "us", bench::spread(worker_us),
                  bench::Target{kTargetUs});
    report.figure(what + ": longest extra delay at the swap", "us", bench::spread(delay_us));
  }
  report.figure(what + ": longest loop meanwhile", "us", bench::spread(longest_us));
  report.figure(what + ": longest loop at rest", "us", bench::spread(quiet_us));
  report.figure(what + ": rate meanwhile / at rest", "x", bench::spread(rate));
  report.figure(what + ": until all is in force", "s", bench::spread(seconds));
  report.note(what + ": " + std::to_string(preempted) +
              " long loops in which the kernel took the core away are left out");
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core == 0 ? 1 : 0);
  bench::Report report("live_replace", options);
  bench::EngineBench contender(spec_of(), "live_replace");
  Engine& engine = contender.engine();
  {
    bench::TimedLoop loops(contender, options.core, &way_seen);
    Module& filter = *engine.graph().at("filter").module;
    measure(report, loops, filter, "1 access rule replaced", {small_rules_of(0), small_rules_of(1)},
            options.trials);
    measure(report, loops, filter, "10 000 access rules replaced", {rules_of(0), rules_of(1)},
            options.trials);
    measure(report, loops, *engine.graph().at("lookup").module, "500 000 routes replaced",
            {routes_of(0), routes_of(1)}, options.trials);
  }
  const batchplane::Balance balance = engine.snapshot(false).balance;
  if (!balance.is_exact()) throw std::runtime_error("packets do not add up");
  const auto lost_pkts = static_cast<double>(balance.dropped_pkts);
  report.figure("packets lost during all replacements", "packets",
                {lost_pkts, lost_pkts, lost_pkts}, bench::Target{0});
  report.note(std::to_string(balance.in_pkts) + " packets in all");
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 9, .batches = 1});
  return bench::guarded([&] { return run(options); });
}
