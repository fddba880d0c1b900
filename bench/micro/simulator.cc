// SPDX-License-Identifier: BSD-3-Clause
// simulator.cc - how fast virtual time runs: simulated packets per second, and virtual seconds per
// second.
#include <deque>
#include <string>
#include <vector>

#include "common/environment.h"
#include "common/report.h"
#include "sim/many_workers_util.h"
#include "sim/sim_test_util.h"
#include "sim/simulation.h"

namespace {

using batchplane::sim::Simulation;
using batchplane::sim::Spec;
using batchplane::sim::SpecMaker;

constexpr uint32_t kMemoryMb = 64;  // EAL asks for some
constexpr uint32_t kResamples = 1000;

// Saturated: as many packets as the simulated worker can take.
Spec gateway(uint32_t trigger_pkts) {
  SpecMaker maker = batchplane::sim::make_gateway(16, trigger_pkts);
  maker.source().is_saturating = true;
  return maker.spec();
}

// A splitter at random over 16 leaves of 4000 ns a batch, saturated.
Spec robot_control(uint32_t trigger_pkts) {
  SpecMaker maker = batchplane::sim::make_tree(16, 4000, 5, trigger_pkts, 50);
  maker.spec().pipeline.modules[1].kind = "split";
  maker.spec().pipeline.modules[1].params = {{"mode", batchplane::Value("random")}};
  maker.source().is_saturating = true;
  return maker.spec();
}

Spec light_load() {
  SpecMaker maker = batchplane::sim::make_gateway(16, 32);
  for (auto& module : maker.spec().pipeline.modules) module.age_limit_ns = 100'000;
  maker.spec().pipeline.engine.is_idle_hold = true;
  maker.source().arrivals = batchplane::exec::ArrivalKind::kPoisson;
  maker.source().rate_pps = 100'000;
  return maker.spec();
}

Spec star(uint32_t n_workers, double rate_pps) {
  SpecMaker maker = batchplane::sim::make_star(n_workers, false);
  maker.source().is_saturating = rate_pps == 0;
  maker.source().rate_pps = rate_pps;
  maker.source().arrivals = batchplane::exec::ArrivalKind::kPoisson;
  return maker.spec();
}

Spec row(uint32_t n_workers) {
  SpecMaker maker = batchplane::sim::make_row(n_workers);
  for (auto& source : maker.spec().sources) source.is_saturating = true;
  return maker.spec();
}

// One simulation that goes on from trial to trial.
class Runner {
 public:
  Runner(std::string name, const Spec& spec, uint64_t slice_ns)
      : name_(std::move(name)), sim_(spec), slice_ns_(slice_ns) {}

  // Advances by one slice of virtual time per 1000 "batches"; returns the packets, or virtual
  // microseconds.
  bench::Contender contender(bool counts_time) {
    return {.name = name_,
            .run =
                [this, counts_time](uint32_t n) {
                  const uint64_t before = sent();
                  const uint64_t length_ns = slice_ns_ * n / 1000;
                  sim_.run_until(sim_.now_ns() + length_ns);
                  return counts_time ? length_ns / 1000 : sent() - before;
                },
            .verify = [this] { return verify(); }};
  }

 private:
  uint64_t sent() { return sim_.snapshot(false).balance.sent_pkts; }
  std::string verify() {
    sim_.run_until(sim_.now_ns() + slice_ns_);
    const auto now = sim_.snapshot(false);
    if (!now.balance.is_exact()) return name_ + ": packets do not add up";
    return now.balance.sent_pkts == 0 ? name_ + ": nothing was sent" : "";
  }

  std::string name_;
  Simulation sim_;
  uint64_t slice_ns_;
};

// What the 10th percentile of time stands for, as a rate: units / (ns per unit) and its interval.
bench::Interval rate_of(const bench::Result& result, double scale) {
  const auto n_trials = static_cast<uint32_t>(result.ns_per_pkt.size());
  return bench::bootstrap(n_trials, kResamples, [&](const std::vector<uint32_t>& trials) {
    std::vector<double> ns;
    for (const uint32_t t : trials) ns.push_back(result.ns_per_pkt[t]);
    return std::vector<double>{scale / bench::percentile(std::move(ns), 0.1)};
  })[0];
}

constexpr auto at_least(double limit) { return bench::Target{limit, false}; }

void run_one_worker(const bench::Options& options, bench::Report& report) {
  Runner full("gateway(16), triggers of 32", gateway(32), 20'000'000);
  Runner unbuffered("gateway(16), unbuffered", gateway(0), 20'000'000);
  Runner robot("robot_control(16), triggers of 32", robot_control(32), 80'000'000);
  Runner robot_null("robot_control(16), unbuffered", robot_control(0), 80'000'000);
  Runner light("gateway(16) at 100 kpps", light_load(), 200'000'000);
  const auto results = bench::run_interleaved(
      {full.contender(false), unbuffered.contender(false), robot.contender(true),
       robot_null.contender(true), light.contender(true)},
      options.trials, options.batches);
  report.rows("simulator: ns per packet, or per virtual microsecond", results);
  report.figure(results[0].name, "M packets/s", rate_of(results[0], 1000), at_least(30));
  report.figure(results[1].name, "M packets/s", rate_of(results[1], 1000), at_least(15));
  report.figure(results[2].name, "x real time", rate_of(results[2], 1000), at_least(5));
  report.figure(results[3].name, "x real time", rate_of(results[3], 1000), at_least(5));
  report.figure(results[4].name, "x real time", rate_of(results[4], 1000), at_least(50));
}

void run_many_workers(const bench::Options& options, bench::Report& report) {
  std::deque<Runner> runners;
  std::vector<bench::Contender> contenders;
  const auto add = [&](const std::string& name, const Spec& spec, uint64_t slice_ns) {
    runners.emplace_back(name, spec, slice_ns);
    contenders.push_back(runners.back().contender(false));
  };
  for (const uint32_t n : {3, 16, 64}) {
    const std::string of = " of " + std::to_string(n) + " workers";
    add("star" + of + ", saturated", star(n, 0), 2'000'000);
    add("star" + of + " at 100 kpps", star(n, 1e5), 100'000'000);
    add("row" + of + ", saturated", row(n), 20'000'000 / n);
  }
  const auto results = bench::run_interleaved(contenders, options.trials, options.batches);
  report.rows("simulator, many workers: ns per packet", results);
  for (const bench::Result& result : results) {
    report.figure(result.name, "M packets/s", rate_of(result, 1000), at_least(2));
  }
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("simulator", options);
  if (report.wants("one worker")) run_one_worker(options, report);
  if (report.wants("many workers")) run_many_workers(options, report);
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 60, .batches = 1000});
  return bench::guarded([&] { return run(options); });
}
