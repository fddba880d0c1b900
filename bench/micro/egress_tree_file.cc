// SPDX-License-Identifier: BSD-3-Clause
// egress_tree_file.cc - a tree of 100,000 subscribers with four classes each, from a file: seconds until it can
// schedule, memory that it takes, microseconds a change.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "common/environment.h"
#include "common/report.h"
#include "modules/egress/egress_book.h"
#include "modules/egress/egress_params.h"

namespace {

using namespace batchplane;

constexpr uint32_t kSites = 100;
constexpr uint32_t kSubscribers = 100'000;
constexpr uint32_t kClasses = 4;
constexpr int kEdits = 10'000;

std::string write_tree() {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("bp_tree_" + std::to_string(getpid()))).string();
  std::ofstream out(path);
  out << "node,parent,flow,min_rate_bps,ceil_bps,weight,priority\n";
  for (uint32_t s = 0; s < kSites; ++s) out << "site" << s << ",,,,1000000000,1,\n";
  for (uint32_t s = 0; s < kSubscribers; ++s) {
    out << "sub" << s << ",site" << s % kSites << ",,100000,50000000,1,\n";
    for (uint32_t c = 0; c < kClasses; ++c) {
      out << ",sub" << s << "," << s * kClasses + c << ",,," << 1 + c << "," << c / 3 << "\n";
    }
  }
  return path;
}

double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  double all = 0;
  double resident = 0;
  statm >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

struct Costs {
  double load_s = 0;
  double memory_mb = 0;
  double edit_us = 0;
};

Costs measure(const std::string& path) {
  const TscClock& clock = TscClock::instance();
  const Dict given{{"discipline", kTreeDiscipline},
                   {"rate_bps", int64_t{10'000'000'000}},
                   {"tree_file", path},
                   {"max_flows", kSubscribers * kClasses},
                   {"max_nodes", kSubscribers + 2 * kSites},
                   {"total_limit_pkts", 262'144}};
  const double before_mb = resident_mb();
  const uint64_t begin_ns = clock.now_ns();
  const Args args(egress_params(), given, "link");
  const EgressSettings settings = egress_settings(args);
  const auto book = make_egress_book(args, settings);
  const auto scheduler = make_egress_scheduler(settings);
  const EgressCounts counts(settings.capacity.flows);
  book->configure_all(*scheduler);
  Costs costs{.load_s = static_cast<double>(clock.now_ns() - begin_ns) / 1e9};
  costs.memory_mb = resident_mb() - before_mb;
  const uint64_t edits_ns = clock.now_ns();
  for (int k = 0; k < kEdits; ++k) {
    book->replace(Dict{{"flow", k * 7}, {"parent", "sub" + std::to_string(k)}, {"weight", 3}});
    book->carry_out(*scheduler);
  }
  costs.edit_us = static_cast<double>(clock.now_ns() - edits_ns) / 1e3 / kEdits;
  return costs;
}

int run(const bench::Options& options) {
  bench::set_up(64, options.core);
  bench::Report report("egress_tree_file", options);
  const std::string path = write_tree();
  std::vector<double> load_s;
  std::vector<double> edit_us;
  double memory_mb = 0;
  for (uint32_t t = 0; t < options.trials; ++t) {
    const Costs costs = measure(path);
    load_s.push_back(costs.load_s);
    edit_us.push_back(costs.edit_us);
    // Later trials find memory that earlier ones gave back.
    if (t == 0) memory_mb = costs.memory_mb;
  }
  std::filesystem::remove(path);
  report.figure("load", "s", bench::spread(load_s), bench::Target{2, true});
  report.figure("memory", "MB", {memory_mb, memory_mb, memory_mb}, bench::Target{128, true});
  report.figure("a change", "us", bench::spread(edit_us), bench::Target{100, true});
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 5, .batches = 1});
  return bench::guarded([&] { return run(options); });
}
