// SPDX-License-Identifier: BSD-3-Clause
// egress.cc - packet schedulers: ns per packet put in and taken out, 32 at a time, by number of flows.
//
// Loads: see egress/arbiter/steady_load.h.
#include <optional>
#include <string>
#include <vector>

#include "common/environment.h"
#include "common/load_contender.h"
#include "common/report.h"
#include "egress/arbiter/steady_load.h"
#include "egress/discipline/disciplines.h"

namespace {

using namespace batchplane::egress;

constexpr uint32_t kMemoryMb = 64;
struct Load {
  const char* name;
  bool is_saturated;
  bool is_mixed;
};
constexpr Load kLoads[] = {{"saturated, 64 B", true, false},
                           {"saturated, mixed", true, true},
                           {"coming and going, 64 B", false, false},
                           {"coming and going, mixed", false, true}};

// ns on a 2.6 GHz Xeon.
std::optional<bench::Target> target_of(std::string_view discipline, uint32_t flows) {
  const auto at_most = [](double ns) { return bench::Target{ns, true}; };
  if (discipline == "drr") return at_most(12);
  if (discipline == "qfq_plus") return at_most(flows > 10'000 ? 28 : 20);
  if (discipline == "qfq") return at_most(flows > 10'000 ? 40 : 25);
  if (discipline == "wf2q_plus" && flows <= 1'000) return at_most(flows <= 32 ? 40 : 80);
  return {};
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("egress", options);
  for (const uint32_t flows : {32U, 1'000U, 10'000U, 100'000U}) {
    for (const Load& load : kLoads) {
      const std::string label = std::to_string(flows) + " flows, " + load.name;
      if (!report.wants(label)) continue;
      const LoadShape shape{
          .flows = flows, .is_saturated = load.is_saturated, .is_mixed = load.is_mixed};
      std::vector<bench::Contender> contenders;
      for (const std::string_view name : {"drr", "qfq_plus", "qfq", "wf2q_plus"}) {
        with_discipline(name, [&]<Discipline D>() {
          contenders.push_back(bench::load_contender<SteadyLoad<D>>(name, shape));
        });
      }
      const auto results = bench::run_interleaved(contenders, options.trials, options.batches);
      report.rows(label, results);
      for (const bench::Result& result : results) {
        report.figure(result.name + ", " + label, "ns", bench::time_percentile(result, 0.1),
                      target_of(result.name, flows));
      }
    }
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 60, .batches = 1000});
  return bench::guarded([&] { return run(options); });
}
