// SPDX-License-Identifier: BSD-3-Clause
// egress_tree.cc - a scheduler of subscribers with four classes each: ns per packet put in and taken out, 32
// at a time, by number of subscribers.
//
// Loads: see bench/common/tree_load.h.
#include <string>
#include <vector>

#include "common/environment.h"
#include "common/report.h"
#include "common/tree_load.h"

namespace {

constexpr uint32_t kMemoryMb = 64;

// 64, 576 and 1500 bytes as 8 : 3 : 1.
constexpr double kMixBits = 8.0 * (8 * 64 + 3 * 576 + 1500) / 12;

struct Use {
  const char* name;
  bench::TreeUse use;
};
constexpr Use kUses[] = {{"coming and going", bench::TreeUse::kComing},
                         {"shares", bench::TreeUse::kShares},
                         {"minima", bench::TreeUse::kMinima},
                         {"ceilings", bench::TreeUse::kCeilings}};

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("egress_tree", options);
  for (const uint32_t subscribers : {32U, 1'000U, 4'000U, 100'000U}) {
    for (const bool is_mixed : {false, true}) {
      const std::string label =
          std::to_string(subscribers) + " x 4, " + (is_mixed ? "mixed" : "64 B");
      if (!report.wants(label)) continue;
      std::vector<bench::Contender> contenders;
      for (const Use& use : kUses) {
        contenders.push_back(bench::tree_contender(
            use.name, {.subscribers = subscribers, .use = use.use, .is_mixed = is_mixed}));
      }
      const auto results = bench::run_interleaved(contenders, options.trials, options.batches);
      report.rows(label, results);
      for (const bench::Result& result : results) {
        // ns on a 2.6 GHz Xeon.
        report.figure(result.name + ", " + label, "ns", bench::time_percentile(result, 0.1),
                      bench::Target{subscribers > 4'000 ? 75.0 : 35.0, true});
      }
    }
  }
  const std::string circuits = "10000 circuits, fq_codel";
  if (report.wants(circuits)) {
    const auto results =
        bench::run_interleaved({bench::tree_contender(circuits, {.subscribers = 10'000,
                                                                 .has_connections = true,
                                                                 .used_classes = 1,
                                                                 .pkts_of_leaf = 12})},
                               options.trials, options.batches);
    report.rows(circuits, results);
    const bench::Interval ns = bench::time_percentile(results[0], 0.1);
    const bench::Interval rate{kMixBits / ns.median, kMixBits / ns.high, kMixBits / ns.low};
    report.figure(circuits, "Gbit/s", rate, bench::Target{40.0, false});
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 30, .batches = 1000});
  return bench::guarded([&] { return run(options); });
}
