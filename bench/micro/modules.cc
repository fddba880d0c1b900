// SPDX-License-Identifier: BSD-3-Clause
// modules.cc - ns per batch of every module by batch size, its cost law, and the table of all of
// them, by the profiler's rig.
//
// Everything that the module takes is counted, the call of its function included; the engine's hop
// is not.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>

#include "cases/cases.h"
#include "common/environment.h"
#include "common/report.h"
#include "modules/cost_table.h"
#include "modules/route/fib.h"

namespace {

using batchplane::CostLaw;
using batchplane::profile::ModuleProfile;
using bench::Interval;
namespace cases = batchplane::cases;

constexpr uint32_t kDensePkts = 32;
constexpr uint32_t kMemoryMb = 8192;
// Over all modules, so that a slow spell of the machine, which lasts for seconds, does not take all
// rounds of one.
constexpr uint32_t kPasses = 8;

std::vector<uint32_t> batch_sizes() {
  std::vector<uint32_t> sizes;
  for (uint32_t n = 1; n <= kDensePkts; ++n) sizes.push_back(n);
  for (uint32_t n = 2 * kDensePkts; n <= batchplane::exec::kMaxBatchPkts; n *= 2) {
    sizes.push_back(n);
  }
  return sizes;
}

// Throws std::runtime_error when a module does not do what it should.
std::vector<ModuleProfile> measure_all(const std::vector<bench::ModuleCase>& all, uint32_t rounds) {
  std::vector<std::unique_ptr<bench::ModuleBench>> rigs;
  for (const bench::ModuleCase& c : all) {
    rigs.push_back(std::make_unique<bench::ModuleBench>(c, batch_sizes()));
    const std::string wrong = rigs.back()->verify();
    if (!wrong.empty()) throw std::runtime_error(c.label + ": " + wrong);
  }
  for (uint32_t pass = 0; pass < kPasses; ++pass) {
    for (const auto& rig : rigs) rig->measure(rounds / kPasses);
  }
  std::vector<ModuleProfile> profiles;
  for (const auto& rig : rigs) profiles.push_back(rig->result());
  return profiles;
}

Interval figure(const ModuleProfile& p, double value,
                const std::function<double(const CostLaw::Line&)>& figure_of) {
  const auto [low, high] = batchplane::profile::interval_of(p.resampled, value, figure_of);
  return {value, low, high};
}

void report_case(bench::Report& report, const bench::ModuleCase& c, const ModuleProfile& p) {
  std::printf("%-34s ns per batch:", c.label.c_str());
  for (const CostLaw::Point& point : p.law.points()) {
    if ((point.size_pkts & (point.size_pkts - 1)) == 0) {
      std::printf("  %u: %.1f", point.size_pkts, point.ns);
    }
  }
  std::printf("  (R2 %.4f)%s%s\n", p.fit.r_squared, c.note.empty() ? "" : "  ", c.note.c_str());
  const CostLaw::Line& line = p.law.line();
  report.figure(c.label + ": of a batch", "ns",
                {line.cost_per_batch_ns, p.per_batch_ns.low, p.per_batch_ns.high});
  report.figure(c.label + ": of a packet", "ns",
                {line.cost_per_pkt_ns, p.per_pkt_ns.low, p.per_pkt_ns.high});
  const auto full = [](const CostLaw::Line& law) { return law.ns(kDensePkts) / kDensePkts; };
  report.figure(c.label + ": packets of full batches", "ns",
                figure(p, p.law.ns(kDensePkts) / kDensePkts, full));
  if (!c.has_target) return;
  // At 1 and at 32 packets, whichever is worse.
  const auto share = [&](const CostLaw::Line& law) {
    return std::max(law.ns(1) / c.target.ns(1), law.ns(kDensePkts) / c.target.ns(kDensePkts));
  };
  char text[64];
  std::snprintf(text, sizeof text, ": share of %g + %g n ns", c.target.line().cost_per_batch_ns,
                c.target.line().cost_per_pkt_ns);
  report.figure(c.label + text, "", figure(p, share(line), share), bench::Target{1.0});
}

// Every kind there is must be measured, or left out for a reason.
std::vector<std::string> missing_kinds(const std::vector<bench::ModuleCase>& all) {
  std::set<std::string> covered;
  for (const bench::ModuleCase& one : all) covered.insert(one.kind);
  return cases::faults_of(cases::Need::kCost, covered);
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("modules", options);
  std::vector<bench::ModuleCase> chosen = cases::cost_cases();
  for (const std::string& missing : missing_kinds(chosen)) {
    std::fprintf(stderr, "%s\n", missing.c_str());
    return 1;
  }
  std::erase_if(chosen, [&](const auto& c) { return !report.wants(c.label); });
  const std::vector<ModuleProfile> profiles = measure_all(chosen, options.trials);
  for (size_t i = 0; i < chosen.size(); ++i) report_case(report, chosen[i], profiles[i]);
  for (const cases::Without& one : cases::kinds_without(cases::Need::kCost)) {
    report.note(one.kind + " is not measured: " + one.why);
  }
  const std::string path = batchplane::Fib(batchplane::FibConfig{}).lookup_path();
  report.note("lookup path: " + path);
  const std::string table = bench::cost_table_json(chosen, profiles, path);
  report.attach("cost_table", table);
  if (!options.cost_table_path.empty()) {
    std::ofstream file(options.cost_table_path);
    file << table;
    if (!file) {
      std::fprintf(stderr, "cannot write %s\n", options.cost_table_path.c_str());
      return 1;
    }
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 400});
  return bench::guarded([&] { return run(options); });
}
