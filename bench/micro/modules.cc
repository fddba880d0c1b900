// SPDX-License-Identifier: BSD-3-Clause
// modules.cc - ns per batch of every module by batch size, its cost law, and the table of all of
// them.
//
// The engine's hop is not counted: what an empty module takes in the same loop, on the same
// packets, is measured in turn with it and taken off.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>

#include "common/environment.h"
#include "common/report.h"
#include "modules/cases.h"
#include "modules/cost_table.h"
#include "modules/fib.h"

namespace {

using bench::Interval;
using bench::Line;
using bench::Result;

constexpr uint32_t kFitPkts = 32;
constexpr uint32_t kResamples = 200;
constexpr uint32_t kMostBatches = 200;  // a TTL of 254 lasts so long
constexpr uint32_t kMemoryMb = 8192;
constexpr uint32_t kPasses = 8;

std::vector<uint32_t> batch_sizes() {
  std::vector<uint32_t> sizes;
  for (uint32_t n = 1; n <= kFitPkts; ++n) sizes.push_back(n);
  for (uint32_t n = 2 * kFitPkts; n <= batchplane::exec::kMaxBatchPkts; n *= 2) sizes.push_back(n);
  return sizes;
}

// Small batches are run more often, so that a trial is long against the reading of the clock.
uint32_t batches_for(uint32_t n_batches, uint32_t batch_pkts) {
  return n_batches * std::max(1U, 8 / batch_pkts);
}

struct Measured {
  std::vector<uint32_t> sizes;
  std::vector<Result> module;  // ns per packet, by size
  std::vector<Result> control;

  // ns that a batch spends in the module: 10th percentile of the trials chosen, less the control's.
  [[nodiscard]] double ns_of_batch(size_t s, const std::vector<uint32_t>& trials) const {
    std::vector<double> with;
    std::vector<double> without;
    for (const uint32_t t : trials) {
      with.push_back(module[s].ns_per_pkt[t]);
      without.push_back(control[s].ns_per_pkt[t]);
    }
    return (bench::percentile(std::move(with), 0.1) - bench::percentile(std::move(without), 0.1)) *
           sizes[s];
  }
};

// One pass: the trials are added to what earlier passes measured.
void measure(const bench::ModuleCase& c, bench::ModuleRig& rig, uint32_t trials, uint32_t batches,
             Measured& out) {
  std::vector<bench::Contender> contenders;
  for (const uint32_t n : out.sizes) {
    for (const bool is_control : {false, true}) {
      contenders.push_back(
          {.name = c.label,
           .run = [&rig, n,
                   is_control](uint32_t k) { return rig.run(batches_for(k, n), n, is_control); },
           .verify = [&rig] { return rig.verify(); },
           .prepare = [&rig, n, is_control] { rig.prepare(n, is_control); }});
    }
  }
  const auto results = bench::run_interleaved(contenders, trials, batches);
  for (size_t i = 0; i < results.size(); ++i) {
    Result& sum = (i % 2 == 0 ? out.module : out.control)[i / 2];
    sum.ns_per_pkt.insert(sum.ns_per_pkt.end(), results[i].ns_per_pkt.begin(),
                          results[i].ns_per_pkt.end());
  }
}

// In several passes over all modules, so that a slow spell of the machine, which lasts for
// seconds, does not take all trials of one.
std::vector<Measured> measure_all(const std::vector<bench::ModuleCase>& cases,
                                  const bench::Options& options) {
  std::vector<std::unique_ptr<bench::ModuleRig>> rigs;
  std::vector<Measured> all;
  for (const bench::ModuleCase& c : cases) {
    rigs.push_back(std::make_unique<bench::ModuleRig>(c));
    Measured& m = all.emplace_back(Measured{.sizes = batch_sizes()});
    m.module.resize(m.sizes.size());
    m.control.resize(m.sizes.size());
  }
  const uint32_t trials = std::max(options.trials / kPasses, 3U);
  for (uint32_t pass = 0; pass < kPasses; ++pass) {
    for (size_t i = 0; i < cases.size(); ++i) {
      measure(cases[i], *rigs[i], trials, options.batches, all[i]);
    }
  }
  return all;
}

enum Figure : size_t { kPerBatch, kPerPkt, kRSquared, kPerPktAt32, kShareOfTarget };

// The share of the target is that of the law at 1 and at 32 packets, whichever is worse.
std::vector<Interval> figures_of(const bench::ModuleCase& c, const Measured& m) {
  const auto n_trials = static_cast<uint32_t>(m.module.front().ns_per_pkt.size());
  return bench::bootstrap(n_trials, kResamples, [&](const std::vector<uint32_t>& trials) {
    std::vector<double> x;
    std::vector<double> y;
    for (uint32_t n = 1; n <= kFitPkts; ++n) {
      x.push_back(n);
      y.push_back(m.ns_of_batch(n - 1, trials));
    }
    const Line law = bench::fit_cost_law(x, y);
    const double share = c.has_target ? std::max(law.at(1) / c.target.at(1),
                                                 law.at(kFitPkts) / c.target.at(kFitPkts))
                                      : 0;
    return std::vector<double>{law.at_zero, law.slope, law.r_squared, y.back() / kFitPkts, share};
  });
}

bench::CostRow row_of(const bench::ModuleCase& c, const Measured& m,
                      const std::vector<Interval>& figures) {
  bench::CostRow row{.kind = c.kind,
                     .label = c.label,
                     .params = c.params,
                     .least_pkts = 1,
                     .most_pkts = kFitPkts,
                     .per_batch_ns = figures[kPerBatch],
                     .per_pkt_ns = figures[kPerPkt],
                     .r_squared = figures[kRSquared].median,
                     .note = c.note};
  std::vector<uint32_t> all(m.module.front().ns_per_pkt.size());
  for (uint32_t t = 0; t < all.size(); ++t) all[t] = t;
  for (size_t s = 0; s < m.sizes.size(); ++s) {
    const uint32_t n = m.sizes[s];
    if ((n & (n - 1)) == 0) row.points.emplace_back(n, m.ns_of_batch(s, all));
  }
  return row;
}

void report_case(bench::Report& report, const bench::ModuleCase& c, const bench::CostRow& row,
                 const std::vector<Interval>& figures) {
  std::printf("%-34s ns per batch:", c.label.c_str());
  for (const auto& [n, ns] : row.points) std::printf("  %u: %.1f", n, ns);
  std::printf("  (R2 %.4f)%s%s\n", row.r_squared, c.note.empty() ? "" : "  ", c.note.c_str());
  report.figure(c.label + ": cost per batch", "ns", row.per_batch_ns);
  report.figure(c.label + ": cost per packet", "ns", row.per_pkt_ns);
  report.figure(c.label + ": in batches of 32", "ns per packet", figures[kPerPktAt32]);
  if (!c.has_target) return;
  char text[64];
  std::snprintf(text, sizeof text, ": share of %g + %g n ns", c.target.per_batch_ns,
                c.target.per_pkt_ns);
  report.figure(c.label + text, "", figures[kShareOfTarget], bench::Target{1.0});
}

// Every kind there is must be measured, or left out for a reason.
std::string missing_kind(const std::vector<bench::ModuleCase>& cases) {
  for (const batchplane::ModuleInfo* info : batchplane::all_module_kinds()) {
    if (bench::kinds_left_out().contains(info->kind)) continue;
    if (std::ranges::none_of(cases, [&](const auto& c) { return c.kind == info->kind; })) {
      return info->kind;
    }
  }
  return "";
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("modules", options);
  std::vector<bench::ModuleCase> cases = bench::module_cases();
  if (const std::string kind = missing_kind(cases); !kind.empty()) {
    std::fprintf(stderr, "module kind '%s' is not measured: add it to bench/modules/cases.cc\n",
                 kind.c_str());
    return 1;
  }
  std::erase_if(cases, [&](const auto& c) { return !report.wants(c.label); });
  std::vector<bench::CostRow> rows;
  const std::vector<Measured> measured = measure_all(cases, options);
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::vector<Interval> figures = figures_of(cases[i], measured[i]);
    rows.push_back(row_of(cases[i], measured[i], figures));
    report_case(report, cases[i], rows.back(), figures);
  }
  for (const auto& [kind, why] : bench::kinds_left_out()) {
    report.note(kind + " is not measured: " + why);
  }
  const std::string path = batchplane::Fib(batchplane::FibConfig{}).lookup_path();
  report.note("lookup path: " + path);
  const std::string table = bench::cost_table_json(rows, path);
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
  bench::Options options =
      bench::parse_options(argc, argv, {.trials = 200, .batches = kMostBatches});
  options.batches = std::min(options.batches, kMostBatches);
  return bench::guarded([&] { return run(options); });
}
